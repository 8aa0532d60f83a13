"""Bindings and resizes in flight: decided, and not shown by a watch yet.

A pod is assumed from the decision of Bind until the watch shows its binding. kube-scheduler counts
it on its node from choosing the node until it hears that the binding failed. A seat that it refuses
for lack of room meanwhile is not lost.

An API server writes a resize onto the very revision of the pod that it asked the webhook about, or
not at all: it compares, and asks anew. So the pod's next revision shows the growth, or there is
none. Until then it is no more than a claim, and perhaps a made-up one: it counts as far as there is
room that nobody holds, and gives way to what the watch shows meanwhile (docs/adr/0059).
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
    """A binding that was decided and that the watch has yet to show.

    Attributes:
        pod: the pod as it was when the binding was decided.
        node: where it goes.
        claims: the identities of the reservations that it claims.
        is_written: the API server has accepted the binding.
        is_gone: the pod was deleted, and its claims are taken back until the binding is answered.
    """

    pod: Pod
    node: str
    claims: tuple[str, ...] = ()
    is_written: bool = False
    is_gone: bool = False


def slots_of(pod: Pod, node: str, claims: tuple[str, ...], ledger: Ledger) -> Mapping[str, int]:
    """Return what the slots hold on a node that a pod claims."""
    slots: Counter[str] = Counter()
    for seat in ledger.seats(pod) if claims else ():
        if seat.node == node and seat.identity in claims:
            slots.update(seat.resources)
    return slots


def with_rest(pod: Pod, node: str, slots: Mapping[str, int], snapshot: Snapshot) -> Pod:
    """Return a pod that takes its request, and also the free rest of its slots."""
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
"""How long kube-scheduler may go on counting a pod whose binding failed, in seconds. It hears of it
within milliseconds; but the pod that it is just trying has a snapshot from before."""


class InFlightBinds:
    """The nodes where kube-scheduler counts pods that may not get there."""

    def __init__(self) -> None:
        self._asked: dict[str, int] = {}
        self._failed_at: dict[str, float] = {}

    def asked(self, node: str) -> None:
        """Count a pod as undecided from its Bind call on, until `decided` is called."""
        self._asked[node] = self._asked.get(node, 0) + 1

    def decided(self, node: str) -> None:
        """Count it no longer."""
        self._asked[node] -= 1
        if not self._asked[node]:
            del self._asked[node]

    def failed(self, node: str, now: float) -> None:
        """Note that a binding was refused or failed at `now` (unix seconds)."""
        self._failed_at.pop(node, None)
        self._failed_at[node] = now
        while abs(now - next(iter(self._failed_at.values()))) >= FORGETTING_S:
            del self._failed_at[next(iter(self._failed_at))]

    def drop(self, node: str) -> None:
        """Forget a node."""
        self._failed_at.pop(node, None)

    def has(self, node: str, now: float) -> bool:
        """Return whether there may be such a pod on a node at `now` (unix seconds)."""
        failed_at = self._failed_at.get(node, float("-inf"))
        return node in self._asked or abs(now - failed_at) < FORGETTING_S


@dataclass(slots=True, eq=False)
class PendingResize:
    """The growth of a pod's request.

    Attributes:
        pod: the pod as the watch shows it.
        more: what it is to have more.
        counted: how much of that counts as requested.
        owed: how much of it goes into room that is held and yields to the pod.
    """

    pod: Pod
    more: dict[str, int]
    counted: dict[str, int]
    owed: dict[str, int]


class PendingResizes:
    """The growth of bound pods, until the watch shows what became of it."""

    def __init__(self, snapshot: Snapshot) -> None:
        """Begin with none, on the snapshot of a state."""
        self._snapshot = snapshot
        self._on: dict[str, dict[str, PendingResize]] = {}

    def __len__(self) -> int:
        """Return how many pods grow."""
        return sum(map(len, self._on.values()))

    def of(self, pod: Pod) -> PendingResize | None:
        """Return the growth of a pod."""
        here = self._on.get(pod.node)
        return here.get(pod.uid) if here else None

    def began(
        self, pod: Pod, requests: Mapping[str, int], yielded: Mapping[str, int]
    ) -> PendingResize:
        """Note that a pod was let grow; it may have been before, and either may come.

        Args:
            pod: the pod as the watch shows it.
            requests: what it is to request.
            yielded: what is held on its node and yields to it.
        """
        before = self.of(pod)
        more = dict(before.more) if before else {}
        for name, amount in requests.items():
            more[name] = max(more.get(name, 0), amount - pod.requests.get(name, 0))
        more = {name: amount for name, amount in more.items() if amount > 0}
        counted = {name: max(0, min(n, self.free(pod, name))) for name, n in more.items()}
        owed = {
            name: max(0, min(n - counted[name], yielded.get(name, 0))) for name, n in more.items()
        }
        growth = PendingResize(pod, more, counted, owed)
        self._on.setdefault(pod.node, {})[pod.uid] = growth
        return growth

    def free(self, pod: Pod, resource: str) -> int:
        """Return what is free for a pod on its node beside all holds; negative for what lacks."""
        growth = self.of(pod)
        own = growth.counted.get(resource, 0) if growth else 0
        return self._free(pod.node, resource) + own

    def owed(self, node: str, but: str = "") -> Mapping[str, int]:
        """Return what pods grow by on a node into holds that yield to them, all but one UID."""
        total: Counter[str] = Counter()
        for uid, growth in self._on.get(node, {}).items():
            if uid != but:
                total.update(growth.owed)
        return total

    def ended(self, growth: PendingResize) -> bool:
        """Forget a growth; return False if it is over, or the pod was let grow again since."""
        if self.of(growth.pod) is not growth:
            return False
        self.drop(growth.pod)
        return True

    def drop(self, pod: Pod) -> None:
        """Forget the growth of a pod."""
        here = self._on.get(pod.node, {})
        if here.pop(pod.uid, None) is not None and not here:
            del self._on[pod.node]

    def grown(self, pod: Pod) -> Pod:
        """Return a pod as it counts; forget its growth if this is what became of it."""
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
        """Have growth give way to what the watch shows of a node or its pods within the block.

        It gets no more room by that than was free before, but what others have left it takes.
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
        """Count more of a growth, or less, as far as it goes; return how much less."""
        was = growth.counted.get(resource, 0)
        most = growth.more.get(resource, 0) - growth.owed.get(resource, 0)
        growth.counted[resource] = now = max(0, min(was + more, most))
        if now != was:
            self._snapshot.count(self.grown(growth.pod), growth.pod.node)
        return was - now

    def _free(self, node: str, resource: str) -> int:
        amounts = self._snapshot.amounts(node, resource)
        return amounts.allocatable - amounts.requested - amounts.held
