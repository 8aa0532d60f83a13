"""What decisions are made on, against an API server whose watches lag and whose writes may fail."""

import dataclasses
from collections import deque
from collections.abc import Callable

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from reserver.cluster.node import Node
from reserver.cluster.pod import Pod, PodName
from reserver.reservations.reservation import Ref, Reservation, Written
from reserver.reservations.status import ShortNodes
from reserver.reservations.terms import Phase
from reserver.scheduling.bind import judge_bind
from reserver.scheduling.state import State
from reserver.wire.spec.identity import identified
from tests.builders import name, node, pod, reservation

CPUS = 8
WORKERS = ("worker-1", "worker-2")
NAMES = ("a", "b", "c")
KEYS = ("r1", "r2", "r3")
names, workers, keys = (st.sampled_from(each) for each in (NAMES, WORKERS, KEYS))


class StateBesideApiServer(RuleBasedStateMachine):
    """Managers write, pods come and go, kube-scheduler binds; each watch shows it when it likes."""

    def __init__(self) -> None:
        super().__init__()
        self.revision = 1
        self.now = 100.0
        self.uids = 0
        self.nodes: dict[str, Node] = {worker: node(worker, cpu=str(CPUS)) for worker in WORKERS}
        self.pods: dict[PodName, Pod] = {}
        self.store: dict[Ref, tuple[Reservation, int]] = {}
        self.first_at: dict[str, int] = {}
        self.bound_at: dict[PodName, int] = {}
        self.excused: set[Ref] = set()
        self.acknowledged: dict[Ref, Reservation] = {}
        self.under_way: dict[str, tuple[Pod, str, tuple[str, ...]]] = {}
        self.watches: dict[str, deque[Callable[[], None]]] = {"pods": deque(), "store": deque()}
        self.state = self._listed()

    def _write(self, watch: str, seen: Callable[[State, int], None]) -> None:
        self.revision += 1
        at, state = self.revision, self.state
        self.watches[watch].append(lambda: seen(state, at))

    def _listed(self) -> State:
        state = State()
        state.ledger.advance(self.now)
        for worker in self.nodes.values():
            state.node_seen(worker)
        for each in self.pods.values():
            state.pod_seen(each, listed=True)
        for written, _ in self.store.values():
            state.ledger.put(written, Written(0, self.revision))
        state.is_complete = True
        return state

    # The manager.

    @rule(
        key=keys,
        worker=workers,
        owner=names,
        cpu=st.integers(1, 6),
        wait=st.sampled_from([0, 0, 20]),
        ttl=st.integers(1, 60),
        reusable=st.booleans(),
    )
    def reserve(  # noqa: PLR0913 - the fields of a reservation
        self, key: str, worker: str, owner: str, cpu: int, wait: int, ttl: int, *, reusable: bool
    ) -> None:
        starts = self.now + wait
        self._reserve(
            reservation(
                key,
                node=worker,
                owners=[owner],
                starts=starts if wait else None,
                expires=starts + ttl,
                reusable=reusable,
                cpu=str(cpu),
            )
        )

    @precondition(lambda self: self.store)
    @rule(data=st.data(), more=st.integers(1, 60))
    def extend(self, data: st.DataObject, more: int) -> None:
        before, _ = self.store[data.draw(st.sampled_from(sorted(self.store)))]
        assert before.expires_at is not None
        self._reserve(
            identified(
                Reservation(
                    ref=before.ref,
                    digest="",
                    node=before.node,
                    owners=before.owners,
                    resources=before.resources,
                    starts_at=before.starts_at,
                    expires_at=before.expires_at + more,
                    reusable=before.reusable,
                )
            )
        )

    def _reserve(self, written: Reservation) -> None:
        if written.ref in self.store and self.store[written.ref][0] == written:
            return  # To the API server this is no write.
        self._write("store", lambda state, at: state.ledger.put(written, Written(at, at)))
        self.store[written.ref] = written, self.revision
        self.first_at.setdefault(written.identity, self.revision)
        self.excused.discard(written.ref)

    @precondition(lambda self: self.store)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        self._remove(data.draw(st.sampled_from(sorted(self.store))))

    def _remove(self, ref: Ref) -> None:
        del self.store[ref]
        self._write("store", lambda state, _: state.ledger.drop(ref))

    # Pods and nodes.

    @rule(pod_name=names, cpu=st.integers(1, 6))
    def create(self, pod_name: str, cpu: int) -> None:
        if name(pod_name) not in self.pods:
            self.uids += 1
            made = pod(pod_name, uid=f"uid-{self.uids}", cpu=str(cpu))
            self._put_pod(made)

    def _put_pod(self, changed: Pod) -> None:
        self._write(
            "pods",
            lambda state, at: state.pod_seen(dataclasses.replace(changed, revision=at)),
        )
        self.pods[changed.name] = dataclasses.replace(changed, revision=self.revision)

    @precondition(lambda self: self.pods)
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        ends = self.pods[data.draw(st.sampled_from(sorted(self.pods)))]
        if ends.node and not ends.finished:
            self._put_pod(dataclasses.replace(ends, finished=True))

    @precondition(lambda self: self.pods)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        gone = data.draw(st.sampled_from(sorted(self.pods)))
        uid = self.pods.pop(gone).uid

        def seen(state: State, _: int) -> None:
            known = state.pods.get(gone)
            if known is None or known.uid == uid:  # Else its successor was read (`kube.views`).
                state.pod_gone(gone)

        self._write("pods", seen)

    @rule(worker=workers)
    def node_comes_or_goes(self, worker: str) -> None:
        if worker in self.nodes:
            del self.nodes[worker]
            self.acknowledged.clear()
            self.state.node_gone(worker)
        else:
            self.nodes[worker] = node(worker, cpu=str(CPUS))
            self.state.node_seen(self.nodes[worker])

    @rule(step=st.integers(1, 30))
    def time_passes(self, step: int) -> None:
        self.now += step
        self.state.ledger.advance(self.now)

    # Bindings.

    @precondition(lambda self: self.pods and self.nodes)
    @rule(data=st.data())
    def decide(self, data: st.DataObject) -> None:
        asked = self.pods[data.draw(st.sampled_from(sorted(self.pods)))]
        worker = data.draw(st.sampled_from(sorted(self.nodes)))
        if asked.node or self.state.assumption(asked.uid) or not self._has_room(asked, worker):
            return  # kube-scheduler does not ask.
        known = self.state.pods.get(asked.name)
        if known is None or known.uid != asked.uid:
            self.state.pod_seen(asked)  # It is read.
        verdict = judge_bind(asked, worker, self.state, self.now)
        if verdict.refusal is None:
            self.state.assume(asked, worker, verdict.claims)
            self.under_way[asked.uid] = asked, worker, verdict.claims

    def _has_room(self, asked: Pod, worker: str) -> bool:
        snapshot = self.state.snapshot
        row = snapshot.row(worker)
        column = snapshot.columns["cpu"]
        free = int(snapshot.allocatable[row, column] - snapshot.requested[row, column])
        return free >= asked.requests["cpu"]

    def _backed(self) -> set[Ref]:
        short_nodes = ShortNodes.of(self.state.snapshot)
        ledger = self.state.ledger
        return {r.ref for r, _ in ledger if short_nodes.status(r, ledger).is_backed}

    @precondition(lambda self: self.under_way)
    @rule(data=st.data(), accepted=st.booleans())
    def api_server_answers(self, data: st.DataObject, *, accepted: bool) -> None:
        self._answer(data.draw(st.sampled_from(sorted(self.under_way))), accepted=accepted)

    def _answer(self, uid: str, *, accepted: bool) -> None:
        if self._carry_out(uid, accepted=accepted):
            self.state.confirm(uid)
        else:
            self.state.forget(uid)
            # Where more is held than there is room for, what comes back may stand before others.
            if ShortNodes.of(self.state.snapshot).by_node:
                self.acknowledged.clear()

    def _carry_out(self, uid: str, *, accepted: bool) -> bool:
        asked, worker, claims = self.under_way.pop(uid)
        now = self.pods.get(asked.name)
        if not accepted or now is None or now.uid != uid or now.node:
            return False
        self._put_pod(dataclasses.replace(now, node=worker, claims=frozenset(claims)))
        self.bound_at[asked.name] = self.revision
        return True

    @precondition(lambda self: self.pods and self.nodes)
    @rule(data=st.data())
    def another_scheduler_binds(self, data: st.DataObject) -> None:
        each = self.pods[data.draw(st.sampled_from(sorted(self.pods)))]
        worker = data.draw(st.sampled_from(sorted(self.nodes)))
        if not each.node:
            self._put_pod(dataclasses.replace(each, node=worker))
            self.bound_at[each.name] = self.revision
            self.watches["pods"].append(self.acknowledged.clear)

    # Reserver.

    @rule(watch=st.sampled_from(["pods", "store"]))
    def watch_shows(self, watch: str) -> None:
        if self.watches[watch]:
            self._show(watch)
        self._tidy()

    def _show(self, watch: str) -> None:
        events = self.watches[watch]
        events.popleft()()
        while events and events[0] == self.acknowledged.clear:
            events.popleft()()

    def _tidy(self) -> None:
        """Remove what is over, as the cleaner does, if it stands in the store as it is known."""
        for ref, (written, _) in tuple(self.store.items()):
            if self.state.ledger.get(ref) == written and self.state.ledger.is_over(ref):
                expired = self.state.ledger.phase(ref) is Phase.EXPIRED
                assert expired or self._is_claimed(written)
                self._remove(ref)

    def _is_claimed(self, written: Reservation) -> bool:
        """Return whether an owner was bound after it was written, or claims the same.

        Written again, after something else or nothing stood there, it keeps its claims (ADR 1).
        """
        first = self.first_at[written.identity]
        pods = self.state.pods.values()
        return any(self.bound_at.get(owner, 0) > first for owner in written.owners) or any(
            written.identity in each.claims and written.is_owned_by(each) for each in pods
        )

    @rule()
    def pods_are_listed_anew(self) -> None:
        """The API server has forgotten what the watch was to show next: 410, perhaps in a Bind."""
        self.watches["pods"].clear()
        self.excused |= self._leaks()
        self.acknowledged.clear()  # What another scheduler has bound may be among it.
        for gone in self.state.pods.keys() - self.pods.keys():
            self.state.pod_gone(gone)
        for each in self.pods.values():
            self.state.pod_seen(each, listed=True)
        self.state.pods_listed(self.revision)
        self._tidy()

    @rule()
    def the_store_is_listed_anew(self) -> None:
        self.watches["store"].clear()
        self.acknowledged.clear()  # In which order they were written cannot be told any more.
        ledger = self.state.ledger
        news = {ref for ref, (written, _) in self.store.items() if ledger.get(ref) != written}
        for ref in news:
            ledger.put(self.store[ref][0], Written(0, self.revision))
        self.excused |= self._leaks() & news  # It may have been written after the binding (ADR 6).
        for ref in {r.ref for r, _ in ledger} - self.store.keys():
            ledger.drop(ref)
        self._tidy()

    @rule(data=st.data())
    def crash(self, data: st.DataObject) -> None:
        """A binding under way may have been carried out, and nobody is left to hear of it."""
        for uid in tuple(self.under_way):
            self._carry_out(uid, accepted=data.draw(st.booleans()))
        for events in self.watches.values():
            events.clear()
        claims = {identity for each in self.pods.values() for identity in each.claims}
        self.excused |= {r for r in self._leaks() if self.store[r][0].identity not in claims}
        self.acknowledged.clear()  # In which order they were written cannot be told any more.
        self.state = self._listed()
        self._tidy()

    @rule()
    def settle(self) -> None:
        """Once all is told, the ledger is what a new one would be: nothing lost, nothing leaked."""
        for uid in tuple(self.under_way):
            self._answer(uid, accepted=True)
        while any(self.watches.values()):
            for watch in self.watches:
                while self.watches[watch]:
                    self._show(watch)
                    self.what_was_acknowledged_as_backed_stays_so()
            self._tidy()
        fresh = self._listed()
        for worker in set(WORKERS) - self._nodes_of_unrecorded_claims():
            assert fresh.ledger.held_on(worker) == self.state.ledger.held_on(worker)
        assert {r.ref for r, _ in self.state.ledger} == self.store.keys()
        assert self._leaks() <= self.excused

    def _nodes_of_unrecorded_claims(self) -> set[str]:
        """Return where slots that come back are claimed by pods whose claims say nothing of it.

        A status records these, which a new ledger has from there.
        """
        return {
            written.node
            for written, at in self.store.values()
            if written.reusable
            for owner in self.pods.keys() & written.owners
            if self.bound_at.get(owner, 0) > at and written.identity not in self.pods[owner].claims
        }

    def _leaks(self) -> set[Ref]:
        """Return what still stands though an owner was bound after it was written."""
        return {
            ref
            for ref, (written, at) in self.store.items()
            if not written.reusable
            and any(self.bound_at.get(owner, 0) > at for owner in written.owners)
        }

    @invariant()
    def what_was_acknowledged_as_backed_stays_so(self) -> None:
        """Whatever is bound and whatever managers write after it; until somebody takes the room."""
        ledger, backed = self.state.ledger, self._backed()
        for ref, before in tuple(self.acknowledged.items()):
            now = ledger.get(ref)
            if (
                now is None
                or ledger.phase(ref) is not Phase.ACTIVE
                or not now.holds_no_more_than(before)
            ):
                del self.acknowledged[ref]
        assert self.acknowledged.keys() <= backed
        for ref in backed:
            written = ledger.get(ref)
            assert written is not None
            self.acknowledged[ref] = written

    @invariant()
    def holds_what_is_written_and_known(self) -> None:
        for reservation_, phase in self.state.ledger:
            is_held = any(
                each.ref == reservation_.ref
                for each in self.state.ledger.holding_on(reservation_.node)
            )
            assert is_held is (phase in {Phase.ACTIVE, Phase.FAILED})


TestStateBesideApiServer = StateBesideApiServer.TestCase
