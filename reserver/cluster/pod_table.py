"""The pods on nodes, bound or being bound, as columns to match selectors against.

Each pod has a slot; a query such as "pods with these labels in each zone" is a few operations on
arrays over all slots, whatever the number of workloads.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain, islice
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from reserver.cluster.byte_cache import ByteCache
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
_KNOWN_BYTES = 16 * 2**20
_ENTRY_BYTES = 1024
_ANY_LABELS = None
"""The topic of a term that requires no value of any label."""

Slots = NDArray[np.intp]

V = TypeVar("V", bound=Hashable)


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
        self._claims_on: defaultdict[int, dict[int, tuple[PodName, ...]]] = defaultdict(dict)
        self._known: ByteCache[Hashable, Slots] = ByteCache(_KNOWN_BYTES)
        self.uids: list[str] = []
        self._used = 0
        self._free: list[int] = []

    def add(self, pod: Pod, row: int) -> int:
        """Add a pod to the node of a row; return its slot."""
        slot = self._free.pop() if self._free else self._next_slot()
        self._forget()
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
        self._forget()
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
        self._forget()
        self._drop_claims(slot)
        self.rows[slot], self.uids[slot] = ABSENT, ""
        if pod.constraints.anti_affinity:
            self._anti_affinity.put(slot, None)
        if pod.constraints.host_ports:
            self._ports.put(slot, None)
        self._namespaces.put(slot, None)
        self._labels.put(slot, None)
        self._free.append(slot)

    @contextmanager
    def without(self, slot: int) -> Iterator[None]:
        """Hide the pod of a slot until the block ends."""
        claims = self._drop_claims(slot)
        row, self.rows[slot] = self.rows[slot], ABSENT
        try:
            yield
        finally:
            self.rows[slot] = row
            self._take_claims(slot, claims)

    def matching(self, namespaces: Iterable[str] | None, selector: Selector) -> Slots:
        """Return the slots of the pods that are selected.

        Args:
            namespaces: namespaces of the pods; None for all.
            selector: selects the labels of the pods.
        """
        among = None if namespaces is None else frozenset(namespaces)
        return self._found((among, selector), partial(self._matching, among, selector))

    def _matching(self, namespaces: frozenset[str] | None, selector: Selector) -> Bools:
        spaces = self._namespaces
        meant = spaces.present() if namespaces is None else spaces.among(namespaces)
        return meant & self._labels.matching(selector)

    def _found(self, key: Hashable, find: Callable[[], Bools]) -> Slots:
        """Return the slots that are found, until a pod comes or goes: moves change none."""
        known = self._known.get(key)
        if known is None:
            known = np.flatnonzero(find())
            self._known.put(key, known, known.nbytes + _ENTRY_BYTES)
        return known

    def _forget(self) -> None:
        if self._known.size:
            self._known.clear()

    def rows_of(self, slots: Slots) -> Ids:
        """Return the row of each of these pods that is not hidden."""
        rows = self.rows[slots]
        found: Ids = rows[rows != ABSENT]
        return found

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
            yield key, self._having("anti-affinity", self._anti_affinity, ids)

    def rows_taking(self, ports: Iterable[HostPort]) -> Ids:
        """Return the rows of pods whose host ports conflict with these."""
        ports = tuple(ports)
        ids = [
            number
            for number, taken in self._ports.about(_port_numbers(ports))
            if any(own.conflicts(port) for own in ports for port in taken)
        ]
        return self._having("ports", self._ports, set(ids))

    def _having(self, name: str, column: Categorical[V], ids: set[int]) -> Ids:
        slots = self._found((name, frozenset(ids)), partial(column.having, ids))
        return self.rows_of(slots)

    def uses(self, claim: PodName) -> bool:
        """Return whether a pod uses a PersistentVolumeClaim."""
        return claim in self._claims

    def claims_on(self, row: int) -> Iterator[PodName]:
        """Yield the PersistentVolumeClaims that the pods on the node of a row use."""
        return chain.from_iterable(self._claims_on.get(row, {}).values())

    def _add_rare(self, slot: int, pod: Pod) -> None:
        """Add the properties that few pods have."""
        constraints = pod.constraints
        if constraints.anti_affinity:
            self._anti_affinity.put(slot, constraints.anti_affinity)
        if constraints.host_ports:
            self._ports.put(slot, constraints.host_ports)
        if pod.volume_claims:
            self._take_claims(slot, tuple(pod.claim_names()))

    def _take_claims(self, slot: int, claims: tuple[PodName, ...]) -> None:
        if claims:
            self._claims_on[int(self.rows[slot])][slot] = claims
            self._claims.update(claims)

    def _drop_claims(self, slot: int) -> tuple[PodName, ...]:
        row = int(self.rows[slot])
        there = self._claims_on.get(row)
        if there is None or not (claims := there.pop(slot, ())):
            return ()
        if not there:
            del self._claims_on[row]
        for claim in claims:
            self._claims[claim] -= 1
            if not self._claims[claim]:
                del self._claims[claim]
        return claims

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
