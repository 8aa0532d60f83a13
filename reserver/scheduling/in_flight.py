"""Bindings and resizes in flight: decided, but not shown by a watch yet.

A pod is assumed from the decision of Bind until the watch shows its binding. kube-scheduler counts
the pod on its node from its own choice until it hears that the binding failed. A seat that it
refuses for lack of room meanwhile is not lost.

The API server writes a resize only onto the revision of the pod that it sent to the webhook, or
calls the webhook again. So the pod's next revision shows the growth, or there is none. Until then
the growth is only a claim, perhaps a false one: it counts as far as there is unheld room, and gives
way to pods that the watch shows meanwhile (docs/adr/0059).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace

from reserver.cluster.pod import Pod
from reserver.cluster.snapshot import Snapshot
from reserver.reservations.ledger import Ledger


@dataclass(slots=True)
class AssumedPod:
    """A decided binding that the watch has yet to show.

    Attributes:
        pod: the judged version of the pod.
        node: its node.
        claims: the identities of the claimed reservations.
        is_written: the API server has accepted the binding.
        is_gone: the pod was deleted, and its claims are taken back until the binding has a result.
    """

    pod: Pod
    node: str
    claims: tuple[str, ...] = ()
    is_written: bool = False
    is_gone: bool = False


def slots_of(pod: Pod, node: str, claims: tuple[str, ...], ledger: Ledger) -> Mapping[str, int]:
    """Return the resources of the slots that a pod claims on a node."""
    slots: Counter[str] = Counter()
    for seat in ledger.seats(pod) if claims else ():
        if seat.node == node and seat.identity in claims:
            slots.update(seat.resources)
    return slots


def with_rest(pod: Pod, node: str, slots: Mapping[str, int], snapshot: Snapshot) -> Pod:
    """Return a pod whose requests include the free rest of its slots."""
    requests = dict(pod.requests)
    row = snapshot.row(node)
    if row is None:
        return pod
    free = snapshot.allocatable[row] - snapshot.requested[row] - snapshot.held[row]
    for name, amount in slots.items():
        column = snapshot.columns.get(name)
        if column is not None:
            rest = min(amount - requests.get(name, 0), int(free[column]))
            requests[name] = requests.get(name, 0) + max(0, rest)
    return replace(pod, requests=requests)


FORGETTING_S = 1.0
"""Seconds for which kube-scheduler may still count a pod whose binding failed. It hears of the
failure within milliseconds; but its current scheduling cycle uses an older snapshot."""


class InFlightBinds:
    """The nodes on which kube-scheduler counts pods that may not be bound there."""

    def __init__(self) -> None:
        self._asked: dict[str, int] = {}
        self._failed_at: dict[str, float] = {}

    def asked(self, node: str) -> None:
        """Count an undecided Bind call for a node, until `decided` is called."""
        self._asked[node] = self._asked.get(node, 0) + 1

    def decided(self, node: str) -> None:
        """Stop counting a Bind call."""
        self._asked[node] -= 1
        if not self._asked[node]:
            del self._asked[node]

    def failed(self, node: str, now: float) -> None:
        """Record a refused or failed binding at `now` (unix seconds)."""
        self._failed_at.pop(node, None)
        self._failed_at[node] = now
        while abs(now - next(iter(self._failed_at.values()))) >= FORGETTING_S:
            del self._failed_at[next(iter(self._failed_at))]

    def drop(self, node: str) -> None:
        """Forget a node."""
        self._failed_at.pop(node, None)

    def has(self, node: str, now: float) -> bool:
        """Return whether kube-scheduler may count such a pod on a node at `now` (unix seconds)."""
        failed_at = self._failed_at.get(node, float("-inf"))
        return node in self._asked or abs(now - failed_at) < FORGETTING_S


@dataclass(slots=True, eq=False)
class PendingResize:
    """The growth of a pod's requests.

    Attributes:
        pod: the watched pod.
        more: the additional amounts.
        counted: the part of them that counts as requested.
        owed: the part of them that goes into held room that yields to the pod.
    """

    pod: Pod
    more: dict[str, int]
    counted: dict[str, int]
    owed: dict[str, int]


class PendingResizes:
    """The growth of bound pods, until the watch shows the result."""

    def __init__(self, snapshot: Snapshot) -> None:
        """Begin without growth, on the snapshot of a state."""
        self._snapshot = snapshot
        self._on: dict[str, dict[str, PendingResize]] = {}

    def __len__(self) -> int:
        """Return the number of growing pods."""
        return sum(map(len, self._on.values()))

    def of(self, pod: Pod) -> PendingResize | None:
        """Return the growth of a pod; None without one."""
        here = self._on.get(pod.node)
        return here.get(pod.uid) if here else None

    def began(
        self, pod: Pod, requests: Mapping[str, int], yielded: Mapping[str, int]
    ) -> PendingResize:
        """Record an admitted growth; after an earlier one either may be written.

        A review may name other resources each time, which no kubelet can grant: they are left out.

        Args:
            pod: the watched pod.
            requests: its coming requests.
            yielded: the amounts of its node's holds that yield to it.
        """
        before = self.of(pod)
        more = dict(before.more) if before else {}
        for name, amount in requests.items():
            more[name] = max(more.get(name, 0), amount - pod.requests.get(name, 0))
        offered = self._snapshot.columns
        more = {name: amount for name, amount in more.items() if amount > 0 and name in offered}
        counted = {name: max(0, min(n, self.free(pod, name))) for name, n in more.items()}
        owed = {
            name: max(0, min(n - counted[name], yielded.get(name, 0))) for name, n in more.items()
        }
        growth = PendingResize(pod, more, counted, owed)
        self._on.setdefault(pod.node, {})[pod.uid] = growth
        return growth

    def free(self, pod: Pod, resource: str) -> int:
        """Return a pod's free amount on its node next to all holds; negative if lacking."""
        growth = self.of(pod)
        own = growth.counted.get(resource, 0) if growth else 0
        return self._free(pod.node, resource) + own

    def owed(self, node: str, but: str = "") -> Mapping[str, int]:
        """Return the amounts that pods on a node owe to yielding holds, except for one UID."""
        total: Counter[str] = Counter()
        for uid, growth in self._on.get(node, {}).items():
            if uid != but:
                total.update(growth.owed)
        return total

    def ended(self, growth: PendingResize) -> bool:
        """Remove a growth; return False if it is over, or a later growth has replaced it."""
        if self.of(growth.pod) is not growth:
            return False
        self.drop(growth.pod)
        return True

    def drop(self, pod: Pod) -> None:
        """Remove the growth of a pod."""
        here = self._on.get(pod.node, {})
        if here.pop(pod.uid, None) is not None and not here:
            del self._on[pod.node]

    def grown(self, pod: Pod) -> Pod:
        """Return a pod with its counted growth; drop the growth if the pod shows the result."""
        growth = self.of(pod)
        if growth is None:
            return pod
        wanted = {
            name: growth.pod.requests.get(name, 0) + amount for name, amount in growth.more.items()
        }
        has_grown = all(pod.requests.get(name, 0) >= amount for name, amount in wanted.items())
        if pod.revision > growth.pod.revision or has_grown:
            self.drop(pod)
            return pod
        more = {
            name: max(pod.requests.get(name, 0), growth.pod.requests.get(name, 0) + amount)
            for name, amount in growth.counted.items()
        }
        return replace(pod, requests={**pod.requests, **more})

    def giving_way(self, node: str) -> AbstractContextManager[None]:
        """Reduce growth by the room that changes of the node within the block take.

        Growth also takes room that such changes free.
        """
        return self._giving_way(node) if node in self._on else nullcontext()

    @contextmanager
    def _giving_way(self, node: str) -> Iterator[None]:
        resources = {name for growth in self._on.get(node, {}).values() for name in growth.more}
        before = {name: min(0, self._free(node, name)) for name in resources}
        yield
        for name, was in before.items():
            growths = tuple(self._on.get(node, {}).values())
            lacking = was - min(0, self._free(node, name))
            for growth in reversed(growths):
                lacking -= self._count(growth, name, -max(0, lacking))
            for growth in growths:
                self._count(growth, name, max(0, self._free(node, name)))

    def _count(self, growth: PendingResize, resource: str, more: int) -> int:
        """Change the counted part of a growth within its bounds; return the decrease."""
        was = growth.counted.get(resource, 0)
        most = growth.more.get(resource, 0) - growth.owed.get(resource, 0)
        growth.counted[resource] = now = max(0, min(was + more, most))
        if now != was:
            self._snapshot.count(self.grown(growth.pod), growth.pod.node)
        return was - now

    def _free(self, node: str, resource: str) -> int:
        amounts = self._snapshot.amounts(node, resource)
        return amounts.allocatable - amounts.requested - amounts.held
