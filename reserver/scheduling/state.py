"""The state that decisions read: capacity, pods bound or being bound, and the ledger.

Watches and pending bindings update it, only between decisions: on one event loop, deciding and
assuming without an ``await`` in between is atomic and needs no lock. The terms (assume, forget) and
the rules are those of kube-scheduler's backend/cache/cache.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from types import MappingProxyType
from typing import Protocol

from reserver.base.pacer import Pacer
from reserver.cluster.pod import Pod, PodName
from reserver.errors import NotReady
from reserver.reservations.enums import Policy
from reserver.reservations.ledger import Ledger
from reserver.reservations.reservation import Ref
from reserver.scheduling.capacity_state import CapacityState
from reserver.scheduling.pending_pods import Waiting, offered, remembered

ANOTHERS = "a reservation of another namespace"


class State(CapacityState):
    """Capacity, pods and the ledger, kept consistent with each other and the watches."""

    @property
    def pods(self) -> Mapping[PodName, Pod]:
        """The watched pods, by name."""
        return MappingProxyType(self._pods)

    def fork(self) -> State:
        """Return a copy with the present amounts, for private trials."""
        forked = copy(self)
        forked.snapshot = self.snapshot.fork()
        return forked

    @contextmanager
    def changing(self, identity: str) -> Iterator[None]:
        """Let no pod claim a reservation until the block ends: a new spec inherits no claims."""
        self.in_change[identity] += 1
        try:
            yield
        finally:
            self.in_change -= Counter([identity])

    def name_for(self, ref: Ref, pod: Pod) -> str:
        """Return a reservation's name for a message to a pod; another namespace's is not named.

        A tenant may read the message, and must not learn about other namespaces' reservations. The
        words are constant for a pod and a reservation, so they cause no retry of kube-scheduler.
        """
        is_named = ref.namespace == pod.name.namespace or ref.namespace in self.public_namespaces
        return f"reservation {ref}" if is_named else ANOTHERS

    def has_shown_pods(self, revision: float) -> bool:
        """Return whether the watch of pods has reached a resourceVersion."""
        return revision <= self._shown

    def pods_shown(self, revision: int) -> None:
        """Record that the watch of pods has reached a resourceVersion."""
        self._shown = max(self._shown, revision)

    def pods_listed(self, revision: int) -> None:
        """Handle the end of a list of all pods at a resourceVersion."""
        self.pods_shown(revision)
        for pod in tuple(self._read.values()):
            if pod.revision <= revision:
                self.pod_gone(pod.name)  # Read during the list, and deleted before its end.
        over = [uid for uid, waiting in self.waiting.items() if not self._is_pending(waiting.pod)]
        for uid in over:  # Created and deleted while no watch was running.
            del self.waiting[uid]

    def pod_read(self, pod: Pod) -> bool:
        """Store a pod that was read before the watch showed it; return False if it is gone.

        It is gone if the watch has reached its revision without showing it: its deletion was shown
        while the answer was on its way, and would not be shown again.
        """
        if 0 < pod.revision <= self._shown:
            return False
        self._take_pod(pod, listed=False)
        self._read[pod.uid] = pod
        return True

    def pod_seen(self, pod: Pod, *, listed: bool = False) -> None:
        """Store a pod from the watch or, with `listed`, from a list after missed events."""
        if not listed:
            self.pods_shown(pod.revision)
        self._read.pop(pod.uid, None)
        self._take_pod(pod, listed=listed)

    def _take_pod(self, pod: Pod, *, listed: bool) -> None:
        pod = pod.bounded(self.snapshot.columns)
        before = self._pods.get(pod.name)
        if before is not None and before.uid != pod.uid:
            if before.revision > pod.revision:
                return  # The new pod was read before the watch showed the deletion.
            self.pod_gone(before.name)
            before = None
        self._pods[pod.name] = pod
        self.ledger.succession.seen(pod, before, listed=listed)
        self.nominations.seen(pod, before)
        if before is not None and before.nominated_node != pod.nominated_node:
            self.listener.on_node_changed(before.nominated_node)
        if pod.node:
            self._take_bound(pod, before, listed=listed)
        else:  # Perhaps older than a pending binding, whose assumption stays.
            self.gangs.seen(pod)
            self._take_waiting(pod, before)

    def _take_bound(self, pod: Pod, before: Pod | None, *, listed: bool) -> None:
        assumption = self._assumed.pop(pod.uid, None)
        self.gangs.drop(pod)
        self.waiting.pop(pod.uid, None)
        if assumption is None or assumption.is_written or assumption.node == pod.node:
            self.ledger.written(pod.uid)
        else:
            self.ledger.unclaim(pod.uid)  # Another scheduler was faster.
        if pod.finished:
            self.pending_resizes.drop(pod)
            self.snapshot.uncount(pod.uid)
        else:
            self._place_written(pod, pod.node)
        self.listener.on_node_changed(pod.node)
        was_bound = before.node != "" if before else listed and not self.is_complete
        with self.snapshot.borrowed_once():
            for identity in tuple(pod.claims):
                self.ledger.claim(identity, pod)
            if not was_bound:
                self.ledger.bound(pod, exact=not listed, after=self._shown)
            if pod.finished:
                self.ledger.pod_over(pod)

    def _take_waiting(self, pod: Pod, before: Pod | None) -> None:
        """Update a waiting pod, or record one that an earlier process refused.

        Its seats are checked again, as they may have become usable meanwhile.
        """
        waiting = self.waiting.get(pod.uid)
        if waiting is not None:
            if waiting.pod.revision < pod.revision:
                self.waiting[pod.uid] = replace(waiting, pod=pod)  # Perhaps nominated since.
        elif pod.is_refused and not (before and before.is_refused) and pod.uid not in self._assumed:
            self._wait(Waiting(pod, None))
            if self.is_complete:
                for seat in self.ledger.seats(pod):
                    self.listener.on_capacity_freed(seat.node)

    def pod_gone(self, name: PodName) -> None:
        """Remove a deleted pod; its claims stay."""
        pod = self._pods.pop(name, None)
        if pod is None:
            return
        self._read.pop(pod.uid, None)
        self.waiting.pop(pod.uid, None)
        self.nominations.drop(pod.uid)
        self.gangs.drop(pod)
        self.ledger.succession.gone(pod)
        assumption = self._assumed.get(pod.uid)
        if assumption is not None and not assumption.is_written:
            # The result of its binding decides about the claims. As a rule the binding fails, and
            # kube-scheduler already gives the room to other pods: it is held meanwhile.
            assumption.is_gone = True
            self._uncount(pod.uid)
            self.ledger.unclaim(pod.uid)
            return
        self._assumed.pop(pod.uid, None)
        self.pending_resizes.drop(pod)
        self._uncount(pod.uid)
        self.ledger.pod_gone(pod)

    def judged(
        self, pod: Pod, names: Sequence[str], *, waits: bool, for_seat: bool = False
    ) -> None:
        """Record whether a pod waits because of holds, after a Filter call with `names`.

        A deleted pod does not wait; a pod that Reserver's watch has yet to show does.
        """
        if waits and self._is_pending(pod):
            kept_by = self.ledger.keeper(pod)
            if kept_by and kept_by.policy is Policy.REQUIRE and not for_seat:
                kept_by = None  # Its group has taken all its seats: it may go elsewhere.
            self._wait(Waiting(pod, offered(names, self._node_name), kept_by=kept_by))
        else:
            self.waiting.pop(pod.uid, None)
        known = self._pods.get(pod.name)
        if known is None or not known.nominated_node:
            self.nominations.drop(pod.uid)  # The expected preemption did not happen.

    def answered(self, pod: Pod, nodes: Sequence[str], now: float) -> None:
        """Count a pod of a PodGroup on its answered node from `now` until it is bound."""
        (node, *_), spent = nodes, self.gangs.attempt(pod, now).spent
        row = self.snapshot.row(node)
        is_guarded = row is not None and bool(self.snapshot.guarded[row])
        seats = self.ledger.seats(pod, (node,), spent) if is_guarded else ()
        self.gangs.answered(pod, node if is_guarded else "", seats, now)

    def judged_preemption(
        self, pod: Pod, nodes: Sequence[str], spared: Mapping[str, tuple[str, ...]]
    ) -> None:
        """Record the nodes on which pods may be evicted for a pod, and the spared victims.

        kube-scheduler nominates one of `nodes` next; until the watch shows it, all of them count.
        """
        if not self._is_pending(pod):
            return
        if nodes:
            self.nominations.expect(pod, nodes)
        if spared:
            refused = self.waiting.get(pod.uid)
            names, kept_by = (refused.names, refused.kept_by) if refused else ((), None)
            kept, is_more = remembered(spared, self._pod_uid)
            self._wait(Waiting(pod, names, kept, is_more, kept_by))

    def _wait(self, waiting: Waiting) -> None:
        waiting = replace(waiting, pod=waiting.pod.bounded(self.snapshot.columns))
        uid = waiting.pod.uid
        if uid not in self.waiting:
            self.listener.on_pod_refused(uid)
        self.waiting[uid] = waiting

    def _node_name(self, name: str) -> str:
        """Return the stored copy of a node's name."""
        node = self._nodes.get(name)
        return node.name if node else name

    def _pod_uid(self, uid: str) -> str:
        """Return the stored copy of a pod's UID."""
        counted = self.snapshot.counted(uid)
        return counted.pod.uid if counted else uid

    def _is_pending(self, pod: Pod) -> bool:
        known = self._pods.get(pod.name)
        if known is None or known.uid != pod.uid:
            return pod.revision > self._shown  # The watch has yet to show it; else it is gone.
        return not known.node


class Readiness(Protocol):
    """Whether the state is up to date (`reserver.process.readiness`)."""

    def obstacles(self) -> tuple[str, ...]:
        """Return the reasons why the state is not up to date; empty if it is."""

    async def caught_up(self) -> None:
        """Wait until no watch lacks known events, for five seconds at most.

        Raises:
            NotReady: a watch still lacks events.
        """

    async def agrees(self) -> bool:
        """Return whether etcd, read a moment ago, is not behind the state, which is ready."""


def require_ready(readiness: Readiness) -> None:
    """Check that the state is up to date.

    Raises:
        NotReady: the state is not up to date.
    """
    if obstacles := readiness.obstacles():
        raise NotReady(f"reserver does not see the cluster yet: {'; '.join(obstacles)}")


async def up_to_date(readiness: Readiness, ledger: Ledger, clock: Callable[[], float]) -> None:
    """Wait until the watches have caught up, and due reservations have started and ended.

    Raises:
        NotReady: the state is not up to date.
    """
    await readiness.caught_up()
    while ledger.is_due(clock()):
        await Pacer().run(ledger.advancing(clock()))
        await readiness.caught_up()
    require_ready(readiness)
