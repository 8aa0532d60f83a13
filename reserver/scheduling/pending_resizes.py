"""Pods whose resize was let through: each counts as larger until the watch shows what became of it.

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


@dataclass(slots=True, eq=False)
class PendingResize:
    """What a pod is to request beyond what it does.

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
