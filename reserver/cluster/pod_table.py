"""The pods on nodes, bound or being bound, as columns to match selectors against.

Each pod has a slot; a query such as "pods with these labels in each zone" is a few operations on
arrays over all slots, whatever the number of workloads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice

import numpy as np
from numpy.typing import NDArray

from reserver.cluster.categorical import ABSENT, Bools, Categorical, Ids, IndexedCategorical
from reserver.cluster.constraints import HostPort, PodTerm
from reserver.cluster.labels import Labels, LabelTable, Selector
from reserver.cluster.pod import Pod, PodName

MOST_ASKED = 10_000
"""Most anti-affinity terms that are tested against one pod. With more terms, a verdict on a node
may be wrong, which costs an attempt; without a bound, one tenant's pods could slow every call."""

DAEMON_SET = ("apps/v1", "DaemonSet")
"""apiVersion and kind of Kubernetes' own daemon controller."""

_FIRST_SIZE = 64
_ANY_LABELS = None
"""The topic of a term that requires no value of any label."""


class PodTable:
    """The pods on nodes.

    Attributes:
        rows: int32 array, slots: the row of the pod's node in the snapshot, `ABSENT` for a free
            slot.
        terminating: bool array, slots: the pod is being deleted.
        uids: list, slots: the pod's UID, empty for a free slot.
        daemons: the controllers whose pods belong to their node, by ``apiVersion`` and kind.
        belonging: bool array, slots: the pod belongs to its node (`daemons`).
    """

    def __init__(self) -> None:
        """Begin without pods."""
        self.daemons = frozenset({DAEMON_SET})
        self.rows: Ids = np.full(_FIRST_SIZE, ABSENT, dtype=np.int32)
        self.terminating: Bools = np.zeros(_FIRST_SIZE, dtype=np.bool_)
        self.belonging: Bools = np.zeros(_FIRST_SIZE, dtype=np.bool_)
        self._anti_affinity: IndexedCategorical[tuple[PodTerm, ...]]
        self._anti_affinity = IndexedCategorical(_FIRST_SIZE, _labels_meant)
        self._ports: IndexedCategorical[tuple[HostPort, ...]]
        self._ports = IndexedCategorical(_FIRST_SIZE, _port_numbers)
        self._namespaces: Categorical[str] = Categorical(_FIRST_SIZE)
        self._labels = LabelTable(_FIRST_SIZE)
        self._claims: Counter[PodName] = Counter()
        self._claims_of: dict[int, tuple[PodName, ...]] = {}
        self.uids: list[str] = []
        self._used = 0
        self._free: list[int] = []

    def add(self, pod: Pod, row: int) -> int:
        """Add a pod to the node of a row; return its slot."""
        slot = self._free.pop() if self._free else self._next_slot()
        self.rows[slot] = row
        self.terminating[slot] = pod.terminating
        self.belonging[slot] = self.belongs(pod)
        self.uids[slot] = pod.uid
        self._namespaces.put(slot, pod.name.namespace)
        self._labels.put(slot, pod.labels)
        self._add_rare(slot, pod)
        return slot

    def add_all(self, pods: Sequence[Pod], rows: NDArray[np.intp]) -> range:
        """Add pods to the nodes of rows at once; return their slots."""
        slots = range(self._used, self._used + len(pods))
        self._used = slots.stop
        while self._used > len(self.rows):
            self._grow()
        self.uids += [pod.uid for pod in pods]
        new = slice(slots.start, slots.stop)
        self.rows[new] = rows
        self.terminating[new] = [pod.terminating for pod in pods]
        self.belonging[new] = [self.belongs(pod) for pod in pods]
        self._namespaces.fill(new, [pod.name.namespace for pod in pods])
        self._labels.fill(slots, [pod.labels for pod in pods])
        for slot, pod in zip(slots, pods, strict=True):
            self._add_rare(slot, pod)
        return slots

    def belongs(self, pod: Pod) -> bool:
        """Return whether a pod belongs to its node: a mirror pod or a pod of a daemon controller.

        The creator of a pod may name any controller. The garbage collector deletes a pod whose
        DaemonSet does not exist, but ignores kinds that the API server does not serve.
        """
        return pod.is_mirror or (pod.controller_version, pod.controller.kind) in self.daemons

    def remove(self, slot: int, pod: Pod) -> None:
        """Remove a pod from its slot."""
        self.rows[slot], self.uids[slot] = ABSENT, ""
        if pod.constraints.anti_affinity:
            self._anti_affinity.put(slot, None)
        if pod.constraints.host_ports:
            self._ports.put(slot, None)
        self._namespaces.put(slot, None)
        self._labels.put(slot, None)
        for claim in self._claims_of.pop(slot, ()):
            self._claims[claim] -= 1
            if not self._claims[claim]:
                del self._claims[claim]
        self._free.append(slot)

    def matching(self, namespaces: Iterable[str] | None, selector: Selector) -> Bools:
        """Return, for each slot, whether its pod is selected.

        Args:
            namespaces: namespaces of the pods; None for all.
            selector: selects the labels of the pods.
        """
        if namespaces is None:
            candidates: Bools = self.rows != ABSENT
        else:
            candidates = self._namespaces.among(namespaces)
        return candidates & self._labels.matching(selector)

    @property
    def guests(self) -> Bools:
        """Return, for each slot, whether it has a pod that does not belong to its node."""
        found: Bools = (self.rows != ABSENT) & ~self.belonging
        return found

    def guests_on(self, rows: Bools) -> list[str]:
        """Return the UIDs of the guests on the rows where the mask is true."""
        slots = np.flatnonzero(self.guests)
        return [self.uids[slot] for slot in slots[rows[self.rows[slots]]]]

    def rows_rejecting(
        self, labels: Labels, rejects: Callable[[PodTerm], bool]
    ) -> Iterator[tuple[str, Ids]]:
        """Yield, by topology key, the rows of pods whose anti-affinity rejects a pod.

        Args:
            labels: labels of the rejected pod.
            rejects: whether a term of a required anti-affinity selects this pod. At most
                `MOST_ASKED` terms are tested, first the terms that name a label of the pod.
        """
        ids_by_key: dict[str, set[int]] = {}
        named = self._anti_affinity.about(labels.items())
        candidates = chain(named, self._anti_affinity.about([_ANY_LABELS]))
        asked = ((number, term) for number, terms in candidates for term in terms)
        for number, term in islice(asked, MOST_ASKED):
            if rejects(term):
                ids_by_key.setdefault(term.topology_key, set()).add(number)
        for key, ids in ids_by_key.items():
            yield key, self.rows[self._anti_affinity.having(ids)]

    def rows_taking(self, ports: Iterable[HostPort]) -> Ids:
        """Return the rows of pods whose host ports conflict with these."""
        ports = tuple(ports)
        ids = [
            number
            for number, taken in self._ports.about(_port_numbers(ports))
            if any(own.conflicts(port) for own in ports for port in taken)
        ]
        return self.rows[self._ports.having(ids)]

    def uses(self, claim: PodName) -> bool:
        """Return whether a pod uses a PersistentVolumeClaim."""
        return claim in self._claims

    def claims_by_row(self) -> Iterator[tuple[int, tuple[PodName, ...]]]:
        """Yield the PersistentVolumeClaims of each pod that uses any, with the row of its node."""
        return ((int(self.rows[slot]), claims) for slot, claims in self._claims_of.items())

    def _add_rare(self, slot: int, pod: Pod) -> None:
        """Add the properties that few pods have."""
        constraints = pod.constraints
        if constraints.anti_affinity:
            self._anti_affinity.put(slot, constraints.anti_affinity)
        if constraints.host_ports:
            self._ports.put(slot, constraints.host_ports)
        if pod.volume_claims:
            names = self._claims_of[slot] = tuple(pod.claim_names())
            self._claims.update(names)

    def _next_slot(self) -> int:
        slot = self._used
        self._used += 1
        self.uids.append("")
        if slot == len(self.rows):
            self._grow()
        return slot

    def _grow(self) -> None:
        size = len(self.rows)
        self.rows = np.pad(self.rows, (0, size), constant_values=ABSENT)
        self.terminating = np.pad(self.terminating, (0, size))
        self.belonging = np.pad(self.belonging, (0, size))
        for table in (self._anti_affinity, self._ports, self._namespaces, self._labels):
            table.grow(2 * size)


def _labels_meant(terms: Iterable[PodTerm]) -> Iterator[tuple[str, str] | None]:
    """Yield label pairs of which every pod selected by the terms has at least one."""
    for term in terms:
        requirements = term.selector.requirements
        positive = next((each for each in requirements if each.operator == "In"), None)
        if positive is None:
            yield _ANY_LABELS
        else:
            yield from ((positive.key, value) for value in positive.values)


def _port_numbers(ports: Iterable[HostPort]) -> Iterator[tuple[str, int]]:
    return ((port.protocol, port.port) for port in ports)
