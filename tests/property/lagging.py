"""An API server whose watches lag and whose writes may fail, as the model of `test_state`."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace

from hypothesis.stateful import RuleBasedStateMachine

from reserver.cluster.node import Node
from reserver.cluster.pod import Pod, PodName
from reserver.reservations.enums import Phase
from reserver.reservations.placement import joined
from reserver.reservations.quota import Quota
from reserver.reservations.quotas import Quotas
from reserver.reservations.reservation import Ref, Reservation, Written
from reserver.reservations.status import ShortNodes
from reserver.scheduling.state import State
from tests.builders import node, place
from tests.property.acknowledged import Acknowledged

CPUS = 8
WORKERS = ("worker-1", "worker-2")
SPACES = ("shop", "blog")
"""Namespaces whose pods have the same names."""


class LaggingApiServer(RuleBasedStateMachine):
    """The written objects, the part that each watch has shown, and the view of a new start.

    Attributes:
        revision: of the last write.
        pods: as they are written.
        store: the written reservations, and the revision of each.
        first_at: the revision of the first write of each identity.
        bound: all bindings so far: the pod and the revision.
        claimed: the UIDs of all pods whose binding says that it claims an identity.
        excused: reservations that may hold although owners took them: the order is lost.
        acknowledged: the backed reservations, with their held amounts by node.
        under_way: bindings that the API server has yet to carry out.
        watches: the events that each watch has yet to show.
        written: the revision of the last write that each watch is to show.
        shown: the last one that it has shown.
        limits: the quota of each namespace.
    """

    def __init__(self) -> None:
        super().__init__()
        self.revision = 1
        self.now = 100.0
        self.uids = 0
        self.nodes: dict[str, Node] = {worker: node(worker, cpu=str(CPUS)) for worker in WORKERS}
        self.pods: dict[PodName, Pod] = {}
        self.store: dict[Ref, tuple[Reservation, int]] = {}
        self.first_at: dict[str, int] = {}
        self.bound: list[tuple[Pod, int]] = []
        self.claimed: dict[str, set[str]] = {}
        self.excused: set[Ref] = set()
        self.acknowledged: Acknowledged = {}
        self.under_way: dict[str, tuple[Pod, str, tuple[str, ...]]] = {}
        self.watches: dict[str, deque[Callable[[], None]]] = {"pods": deque(), "store": deque()}
        self.written = {"pods": 1, "store": 1}
        self.shown = {"pods": 1, "store": 1}
        self.limits: dict[str, tuple[Quota, ...]] = {}
        self.state = self.listed()

    # What is written.

    def write(self, watch: str, seen: Callable[[State, int], None]) -> None:
        self.revision += 1
        at, state = self.revision, self.state
        self.written[watch] = at

        def shows() -> None:
            self.shown[watch] = at
            seen(state, at)

        self.watches[watch].append(shows)

    def reserved(self, written: Reservation) -> None:
        if written.ref in self.store and self.store[written.ref][0] == written:
            return  # To the API server this is no write.
        self.write("store", lambda state, at: state.ledger.put(written, Written(at, at)))
        self.store[written.ref] = written, self.revision
        self.first_at.setdefault(written.identity, self.revision)
        self.excused.discard(written.ref)

    def remove(self, ref: Ref) -> None:
        del self.store[ref]
        self.write("store", lambda state, _: state.ledger.drop(ref))

    def put_pod(self, changed: Pod) -> None:
        self.write("pods", lambda state, at: state.pod_seen(replace(changed, revision=at)))
        self.pods[changed.name] = replace(changed, revision=self.revision)

    def has_room(self, asked: Pod, worker: str, *, counts_in_flight: bool) -> bool:
        """Return whether kube-scheduler sees room; a new one counts no bindings in flight."""
        snapshot = self.state.snapshot
        row = snapshot.row(worker)
        column = snapshot.columns["cpu"]
        free = int(snapshot.allocatable[row, column] - snapshot.requested[row, column])
        if not counts_in_flight:
            uids = filter(self.state.assumption, self.under_way)
            counted = filter(None, map(snapshot.counted, uids))
            free += sum(each.pod.requests["cpu"] for each in counted if each.node == worker)
        return free >= asked.requests["cpu"]

    def bind(self, each: Pod, worker: str, claims: tuple[str, ...] = ()) -> None:
        self.put_pod(replace(each, node=worker, claims=frozenset(claims), nominated_node=""))
        self.bound.append((self.pods[each.name], self.revision))
        for identity in claims:
            self.claimed.setdefault(identity, set()).add(each.uid)

    def bind_elsewhere(self, each: Pod, worker: str) -> None:
        """Let another scheduler bind a pod; where Reserver is about to, that is as good."""
        self.bind(each, worker)
        _, node, claims = self.under_way.get(each.uid, (each, "", ()))
        for identity in claims if node == worker else ():
            self.claimed.setdefault(identity, set()).add(each.uid)
        self.watches["pods"].append(self.acknowledged.clear)

    def carry_out(self, uid: str, *, accepted: bool) -> bool:
        asked, worker, claims = self.under_way.pop(uid)
        now = self.pods.get(asked.name)
        if not accepted or now is None or now.uid != uid or now.node:
            return False
        self.bind(now, worker, claims)
        return True

    def answer(self, uid: str, *, accepted: bool) -> None:
        if self.carry_out(uid, accepted=accepted):
            self.state.confirm(uid)
            return
        self.some_come_back()
        self.state.forget(uid)

    def some_come_back(self) -> None:
        """Where more is held than there is room for, what comes back may stand before others."""
        if ShortNodes.of(self.state.snapshot).by_node:
            self.acknowledged.clear()

    def waiting(self) -> list[Pod]:
        return [each for _, each in sorted(self.pods.items()) if not each.node]

    # What is shown.

    def show(self, watch: str) -> None:
        events = self.watches[watch]
        events.popleft()()
        while events and events[0] in (self.acknowledged.clear, self.some_come_back):
            events.popleft()()

    def listed(self) -> State:
        """Return the state of a new process, from the written objects and recorded claims."""
        state = State(quotas=Quotas(is_open=False))
        before = getattr(self, "state", state).ledger
        for space, quotas in self.limits.items():
            state.ledger.quotas.limit(space, quotas)
        state.ledger.advance(self.now)
        for worker in self.nodes.values():
            state.node_seen(worker)
        for each in self.pods.values():
            state.pod_seen(each, listed=True)
        for ref, (written, _) in self.store.items():
            state.ledger.put(written, Written(0, self.written["store"]))
            known = before.get(ref)
            if known is not None:
                claims, landed = before.recorded(ref), before.landed(ref)
                state.ledger.past.recall(ref, known.digest, claims, landed, self.shown["store"])
                if not before.excess(ref):
                    state.ledger.was_admitted(ref, known.digest)
        state.ledger.past.end()
        state.is_complete = True
        for _ in state.ledger.open():
            pass
        return state

    def list_pods(self) -> None:
        for gone in self.state.pods.keys() - self.pods.keys():
            self.state.pod_gone(gone)
        for each in self.pods.values():
            self.state.pod_seen(each, listed=True)
        self.state.pods_listed(self.revision)

    def list_store(self) -> None:
        ledger = self.state.ledger
        for written, _ in self.store.values():
            if ledger.get(written.ref) != written:
                ledger.put(written, Written(0, self.written["store"]))
        for ref in set(ledger.refs()) - self.store.keys():
            ledger.drop(ref)

    # What Reserver does by itself.

    def place_all(self) -> None:
        """Place what names no node, as the placer does, and write it where it still stands."""
        ledger = self.state.ledger
        for ref in ledger.refs():
            kept, slots = ledger.wants_place(ref)
            known = ledger.get(ref)
            assert known is not None
            if slots:
                found = place(known, slots, self.state).parts
                if found:
                    ledger.place(ref, joined(kept, found))
            elif ledger.is_edited(ref):
                ledger.keep(ref)
            self._write_place(ref)

    def _write_place(self, ref: Ref) -> None:
        known = self.state.ledger.get(ref)
        written, at = self.store.get(ref, (None, 0))
        if known is None or written is None or known.identity != written.identity:
            return
        if known.placed and known.placed != written.placed:
            placed = replace(written, placed=known.placed)
            self.write("store", lambda state, at: state.ledger.put(placed, Written(at, at)))
            self.store[ref] = placed, at

    def tidy(self) -> None:
        """Remove ended reservations, as the cleaner does, if the store has the observed version."""
        for ref, (written, _) in tuple(self.store.items()):
            known = self.state.ledger.get(ref)
            is_known = known is not None and known.identity == written.identity
            if is_known and self.state.ledger.is_over(ref):
                expired = self.state.ledger.phase(ref) is Phase.EXPIRED
                assert expired or len(self.may_have_claimed(written)) >= written.slots
                self.remove(ref)

    # Who has claimed what.

    def may_have_claimed(self, written: Reservation) -> set[str]:
        """Return the UIDs of owners that were bound after it was written, or claim the same.

        A reservation that is written again keeps its claims (ADR 1).
        """
        first = self.first_at[written.identity]
        named = {pod.uid for pod, at in self.bound if pod.name in written.owners and at > first}
        return named | self.claimed.get(written.identity, set())

    def have_claimed(self, ref: Ref) -> set[str]:
        """Return the UIDs of pods that have certainly taken a slot of a written reservation."""
        written, at = self.store[ref]
        latest = {pod.name: (pod, bound_at) for pod, bound_at in self.bound}
        named = (latest[owner] for owner in written.owners if owner in latest)
        return {pod.uid for pod, bound_at in named if bound_at > at} | {
            pod.uid
            for pod in self.pods.values()
            if pod.node and written.identity in pod.claims and written.is_owned_by(pod)
        }

    def leaks(self) -> set[Ref]:
        """Return the reservations that miss a pod which has taken a slot for good."""
        return {
            ref
            for ref, (written, _) in self.store.items()
            if not written.reusable and not self.have_claimed(ref) <= self.known_claims(written)
        }

    def known_claims(self, written: Reservation) -> set[str]:
        """Return the UIDs of the pods with a slot, as the process has observed them."""
        known = self.state.ledger.get(written.ref)
        if known is None or known.identity != written.identity:
            return set()
        return set(self.state.ledger.claiming(written.ref))

    def unrecorded(self) -> Iterator[Reservation]:
        """Yield reusable reservations with claims that their pods' annotations lack."""
        living = {each.uid for each in self.pods.values() if not each.finished}
        for written, _ in self.store.values():
            if written.reusable:
                said = self.claimed.get(written.identity, set())
                if self.may_have_claimed(written) & living - said:
                    yield written
