"""The state that decisions read: capacity, pods bound or being bound, and the ledger.

It is fed by the watches and by the bindings under way, and changes only between decisions: on one
event loop, deciding and assuming with no ``await`` between them is atomic and needs no lock. The
words (assume, forget) and the rules are those of kube-scheduler's backend/cache/cache.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
    """Capacity, pods and the ledger, kept consistent with each other, as watches show them."""

    @property
    def pods(self) -> Mapping[PodName, Pod]:
        """The pods as the watch last showed them."""
        return MappingProxyType(self._pods)

    def fork(self) -> State:
        """Return a copy with the amounts of now, to try things that nobody else sees."""
        forked = copy(self)
        forked.snapshot = self.snapshot.fork()
        return forked

    def name_for(self, ref: Ref, pod: Pod) -> str:
        """Return a reservation's name for a message to a pod, or that it is another namespace's.

        A tenant may read it, and must not learn what other namespaces reserve. The words are
        constant for a pod and a reservation, so they do not make kube-scheduler try again.
        """
        is_named = ref.namespace == pod.name.namespace or ref.namespace in self.public_namespaces
        return f"reservation {ref}" if is_named else ANOTHERS

    def has_shown_pods(self, revision: float) -> bool:
        """Return whether all pods have been shown as of a resourceVersion."""
        return revision <= self._shown

    def pods_shown(self, revision: int) -> None:
        """Note that all pods have been shown as of a resourceVersion."""
        self._shown = max(self._shown, revision)

    def pods_listed(self, revision: int) -> None:
        """Note that a list showed all pods as of a resourceVersion."""
        self.pods_shown(revision)
        for pod in tuple(self._read.values()):
            if pod.revision <= revision:
                self.pod_gone(pod.name)  # Read while the list was made, from before its end.
        over = [uid for uid, waiting in self.waiting.items() if not self._is_pending(waiting.pod)]
        for uid in over:  # Created and deleted again while no watch was there to show it.
            del self.waiting[uid]

    def pod_read(self, pod: Pod) -> bool:
        """Take a pod that was read, because no watch has shown it; return False if it is gone.

        It is if the watch has come to what was read, or beyond, and does not show it: its end was
        shown while the answer was on its way, and nothing would end it again.
        """
        if 0 < pod.revision <= self._shown:
            return False
        self._take_pod(pod, listed=False)
        self._read[pod.uid] = pod
        return True

    def pod_seen(self, pod: Pod, *, listed: bool = False) -> None:
        """Take a pod as the watch shows it, or as a list shows it after changes were missed."""
        if not listed:
            self.pods_shown(pod.revision)
        self._read.pop(pod.uid, None)
        self._take_pod(pod, listed=listed)

    def _take_pod(self, pod: Pod, *, listed: bool) -> None:
        pod = pod.bounded(self.snapshot.columns)
        before = self._pods.get(pod.name)
        if before is not None and before.uid != pod.uid:
            if before.revision > pod.revision:
                return  # Its successor was read before the watch came to its end.
            self.pod_gone(before.name)
            before = None
        self._pods[pod.name] = pod
        self.ledger.succession.seen(pod, before, listed=listed)
        self.nominations.seen(pod, before)
        if before is not None and before.nominated_node != pod.nominated_node:
            self.listener.on_node_changed(before.nominated_node)
        if pod.node:
            self._take_bound(pod, before, listed=listed)
        else:  # Perhaps an event from before a binding under way; the assumption knows better.
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
        for identity in tuple(pod.claims):
            self.ledger.claim(identity, pod)
        was_bound = before.node != "" if before else listed and not self.is_complete
        if not was_bound:
            self.ledger.bound(pod, exact=not listed)
        if pod.finished:
            self.ledger.pod_over(pod)

    def _take_waiting(self, pod: Pod, before: Pod | None) -> None:
        """Take a pending pod as it waits, if it does; perhaps for what an earlier process refused.

        Its seats are looked at once more: what it waits for may have come meanwhile.
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
        """Note that a pod was deleted; its claims stay."""
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
            # The answer to its binding decides what becomes of the claims. As a rule that fails,
            # and kube-scheduler gives the room to others already: it is held meanwhile.
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
        """Note whether a pod waits because of holds, after a Filter call with `names`.

        kube-scheduler may ask for a pod that is gone already, which does not wait, and for one that
        Reserver's own watch has yet to show, which does.
        """
        if waits and self._is_pending(pod):
            kept_by = self.ledger.keeper(pod)
            if kept_by and kept_by.policy is Policy.REQUIRE and not for_seat:
                kept_by = None  # Others of its group have all of its seats, so it may go elsewhere.
            self._wait(Waiting(pod, offered(names, self._node_name), kept_by=kept_by))
        else:
            self.waiting.pop(pod.uid, None)
        known = self._pods.get(pod.name)
        if known is None or not known.nominated_node:
            self.nominations.drop(pod.uid)  # Nothing came of the preemption that was expected.

    def answered(self, pod: Pod, nodes: Sequence[str], now: float) -> None:
        """Count a pod of a PodGroup where it was answered at `now`, until it is bound."""
        (node, *_), spent = nodes, self.gangs.attempt(pod, now).spent
        row = self.snapshot.row(node)
        is_guarded = row is not None and bool(self.snapshot.guarded[row])
        seats = self.ledger.seats(pod, (node,), spent) if is_guarded else ()
        self.gangs.answered(pod, node if is_guarded else "", seats, now)

    def judged_preemption(
        self, pod: Pod, nodes: Sequence[str], spared: Mapping[str, tuple[str, ...]]
    ) -> None:
        """Note where pods may be evicted for a pod, and where which pods are spared.

        kube-scheduler nominates one of `nodes` next; until the watch shows which, it may be any.
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
            return pod.revision > self._shown  # Yet to be shown; else it is gone.
        return not known.node


class Readiness(Protocol):
    """How well the state shows the cluster (`reserver.process.readiness`)."""

    def obstacles(self) -> tuple[str, ...]:
        """Return what keeps the state from being good enough to decide on; empty if nothing."""

    async def caught_up(self) -> None:
        """Wait until no watch is known to have missed anything, for five seconds at most.

        Raises:
            NotReady: something still lacks then.
        """

    async def agrees(self) -> bool:
        """Return whether etcd, asked a moment ago at most, is not behind the state."""


def require_ready(readiness: Readiness) -> None:
    """Check that the state is good enough to decide on.

    Raises:
        NotReady: it is not.
    """
    if obstacles := readiness.obstacles():
        raise NotReady(f"reserver does not see the cluster yet: {'; '.join(obstacles)}")


async def up_to_date(readiness: Readiness, ledger: Ledger, clock: Callable[[], float]) -> None:
    """Return once no watch is known to have missed anything, and due holds have begun and ended.

    Raises:
        NotReady: the state is not good enough to decide on.
    """
    await readiness.caught_up()
    while ledger.is_due(clock()):
        await Pacer().run(ledger.advancing(clock()))
        await readiness.caught_up()
    require_ready(readiness)
