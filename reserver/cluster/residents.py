"""The pods on nodes, bound or being bound, as columns that selectors are applied to.

Each pod has a slot; a question such as "how many pods with these labels are in each zone" is a few
operations on arrays over all slots, whatever the number of workloads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from reserver.cluster.columns import ABSENT, Bools, Column, Ids
from reserver.cluster.constraints import HostPort, PodTerm
from reserver.cluster.labels import LabelTable, Selector
from reserver.cluster.pod import Pod, PodName

_FIRST_SIZE = 64


class Residents:
    """The pods on nodes.

    Attributes:
        rows: int32 array, slots: the row of the pod's node in the snapshot, `ABSENT` for a slot
            that no pod has.
        anti_affinity: the required anti-affinity of the pods that have any.
        ports: the host ports of the pods that take any.
        terminating: bool array, slots: the pod is being deleted.
    """

    def __init__(self) -> None:
        """Begin without pods."""
        self.rows: Ids = np.full(_FIRST_SIZE, ABSENT, dtype=np.int32)
        self.terminating: Bools = np.zeros(_FIRST_SIZE, dtype=np.bool_)
        self.anti_affinity: Column[tuple[PodTerm, ...]] = Column(_FIRST_SIZE)
        self.ports: Column[tuple[HostPort, ...]] = Column(_FIRST_SIZE)
        self._namespaces: Column[str] = Column(_FIRST_SIZE)
        self._labels = LabelTable(_FIRST_SIZE)
        self._claims: Counter[PodName] = Counter()
        self._used = 0
        self._free: list[int] = []

    def add(self, pod: Pod, row: int) -> int:
        """Take a pod on the node of a row; return its slot."""
        slot = self._free.pop() if self._free else self._next_slot()
        constraints = pod.constraints
        self.rows[slot] = row
        self.terminating[slot] = pod.terminating
        self.anti_affinity.put(slot, constraints.anti_affinity or None)
        self.ports.put(slot, constraints.host_ports or None)
        self._namespaces.put(slot, pod.name.namespace)
        self._labels.put(slot, pod.labels)
        self._claims.update(pod.claim_names())
        return slot

    def remove(self, slot: int, pod: Pod) -> None:
        """Let go of a pod, which has this slot."""
        self.rows[slot] = ABSENT
        self.anti_affinity.put(slot, None)
        self.ports.put(slot, None)
        self._namespaces.put(slot, None)
        self._labels.put(slot, None)
        for claim in pod.claim_names():
            self._claims[claim] -= 1
            if not self._claims[claim]:
                del self._claims[claim]
        self._free.append(slot)

    def matching(self, namespaces: Iterable[str] | None, selector: Selector) -> Bools:
        """Return, for each slot, whether it has a pod that is meant.

        Args:
            namespaces: where the pods live; None for anywhere.
            selector: their labels.
        """
        if namespaces is None:
            meant: Bools = self.rows != ABSENT
        else:
            meant = self._namespaces.among(namespaces)
        return meant & self._labels.matching(selector)

    def uses(self, claim: PodName) -> bool:
        """Return whether a pod uses a PersistentVolumeClaim."""
        return claim in self._claims

    def _next_slot(self) -> int:
        slot, size = self._used, len(self.rows)
        self._used += 1
        if slot == size:
            self.rows = np.pad(self.rows, (0, size), constant_values=ABSENT)
            self.terminating = np.pad(self.terminating, (0, size))
            for table in (self.anti_affinity, self.ports, self._namespaces, self._labels):
                table.grow(2 * size)
        return slot
