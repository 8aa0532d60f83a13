"""The state of decisions, with an API server whose watches lag and whose writes may fail."""

from dataclasses import replace
from functools import partial

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from reserver.cluster.labels import equals
from reserver.cluster.pod import Controller, Pod, PodName
from reserver.reservations.entry import identified
from reserver.reservations.enums import Phase
from reserver.reservations.owner import OwnerRule
from reserver.reservations.quota import Quota
from reserver.reservations.reservation import Reservation
from reserver.scheduling.bind import judge_bind
from reserver.scheduling.filter import filter_nodes
from reserver.scheduling.state import State
from tests.builders import node, pod, reservation
from tests.property.acknowledged import assert_still_backed
from tests.property.lagging import CPUS, SPACES, WORKERS, LaggingApiServer

NAMES = ("a", "b")
spaces, workers, names = (st.sampled_from(each) for each in (SPACES, WORKERS, NAMES))
MATCHED = {
    "label": OwnerRule(namespace="", selector=equals({"app": "web"})),
    "group": OwnerRule(namespace="", controller=Controller("PodGroup", "g")),
}


@st.composite
def reservations(draw: st.DrawFn, now: float) -> Reservation:
    """Draw a reservation of either namespace, for pods of its own."""
    space = draw(spaces)
    starts = now + draw(st.sampled_from([0, 0, 20]))
    made = reservation(
        draw(st.sampled_from(["r1", "r2"])),
        node=draw(st.sampled_from([*WORKERS, *WORKERS, ""])),
        owners=(),
        slots=draw(st.sampled_from([1, 1, 2, 3])),
        starts=starts if starts > now else None,
        expires=starts + draw(st.integers(1, 60)),
        require=draw(st.booleans()),
        yields_above=draw(st.sampled_from([None, None, 5])),
        reusable=draw(st.booleans()),
        cpu=str(draw(st.integers(1, 6))),
    )
    who = draw(st.sampled_from(["named", "named", *MATCHED]))
    owners = draw(st.sets(names, min_size=1, max_size=2)) if who == "named" else ()
    rules = () if who == "named" else (replace(MATCHED[who], namespace=space),)
    return identified(
        replace(
            made,
            ref=made.ref._replace(namespace=space),
            owners=tuple(PodName(space, each) for each in owners),
            rules=rules,
        )
    )


@st.composite
def pods(draw: st.DrawFn) -> Pod:
    """Draw a pod of either namespace."""
    made = pod(
        draw(names),
        namespace=draw(spaces),
        priority=draw(st.sampled_from([0, 10])),
        labels={"app": draw(st.sampled_from(["web", "db"]))},
        cpu=str(draw(st.integers(1, 6))),
    )
    return replace(made, group=draw(st.sampled_from(["", "g"])))


class StateBesideApiServer(LaggingApiServer):
    """Managers write, pods come and go, kube-scheduler binds; each watch shows it when it likes."""

    @initialize(data=st.data(), created=st.lists(pods(), min_size=2, max_size=4))
    def begin(self, data: st.DataObject, created: list[Pod]) -> None:
        for made in created:
            self.create(made)
        for each in data.draw(st.lists(reservations(self.now), min_size=1, max_size=4)):
            self.reserved(each)
        self.settle()

    # The manager.

    @rule(data=st.data())
    def reserve(self, data: st.DataObject) -> None:
        self.reserved(data.draw(reservations(self.now)))

    @precondition(lambda self: self.store)
    @rule(data=st.data(), more=st.integers(1, 60))
    def extend(self, data: st.DataObject, more: int) -> None:
        before, _ = self.store[data.draw(st.sampled_from(sorted(self.store)))]
        assert before.expires_at is not None
        later = replace(before, expires_at=before.expires_at + more, placed=())
        self.reserved(identified(later))

    @precondition(lambda self: self.store)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        self.remove(data.draw(st.sampled_from(sorted(self.store))))

    @precondition(lambda self: self.store)
    @rule(space=spaces, cpu=st.sampled_from([None, 4, 9]))
    def limit(self, space: str, cpu: int | None) -> None:
        quotas = () if cpu is None else (Quota(name="limit", hard={"held.cpu": 1000 * cpu}),)
        self.limits[space] = quotas
        self.state.ledger.quotas.limit(space, quotas)
        for _ in self.state.ledger.admit(space):
            pass

    # Pods and nodes.

    @precondition(lambda self: len(self.pods) < len(SPACES) * len(NAMES))
    @rule(made=pods())
    def create(self, made: Pod) -> None:
        if made.name not in self.pods:
            self.uids += 1
            self.put_pod(replace(made, uid=f"uid-{self.uids}"))

    @precondition(lambda self: self.pods)
    @rule(data=st.data(), finishes=st.booleans())
    def end(self, data: st.DataObject, *, finishes: bool) -> None:
        """Finish a pod, or delete it."""
        gone = self.pods[data.draw(st.sampled_from(sorted(self.pods)))]
        if finishes and gone.node and not gone.finished:
            self.put_pod(replace(gone, finished=True))
            self.watches["pods"].append(self.some_come_back)
            return
        del self.pods[gone.name]

        def seen(state: State, _: int) -> None:
            known = state.pods.get(gone.name)
            if known is None or known.uid == gone.uid:  # Else its successor was read.
                state.pod_gone(gone.name)

        self.write("pods", seen)
        self.watches["pods"].append(self.some_come_back)

    @precondition(lambda self: self.waiting())
    @rule(data=st.data(), worker=workers)
    def nominate(self, data: st.DataObject, worker: str) -> None:
        """kube-scheduler has preempted for a pod, or Reserver has steered it."""
        waits = data.draw(st.sampled_from(self.waiting()))
        self.put_pod(replace(waits, nominated_node=worker))

    @precondition(lambda self: self.store or not self.nodes)
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

    @precondition(lambda self: self.waiting() and self.nodes)
    @rule(
        data=st.data(),
        asks_filter=st.booleans(),
        counts_in_flight=st.booleans(),
        accepted=st.sampled_from([True, None, False]),
    )
    def decide(
        self,
        data: st.DataObject,
        *,
        asks_filter: bool,
        counts_in_flight: bool,
        accepted: bool | None,
    ) -> None:
        """Bind is asked at once after Filter, or long after it."""
        asked = data.draw(st.sampled_from(self.waiting()))
        has_room = partial(self.has_room, asked, counts_in_flight=counts_in_flight)
        nodes = list(filter(has_room, sorted(self.nodes)))
        if self.state.assumption(asked.uid) or not nodes:
            return  # kube-scheduler does not ask.
        known = self.state.pods.get(asked.name)
        if known is None or known.uid != asked.uid:
            assert self.state.pod_read(asked)
        if asks_filter:
            verdict = filter_nodes(asked, nodes, self.state, self.now)
            nodes = list(verdict.nodes)
            self.state.judged(asked, nodes, waits=verdict.waits_for is not None)
            if not nodes:
                return
        worker = data.draw(st.sampled_from(nodes))
        bound = judge_bind(asked, worker, self.state, self.now)
        assert not (asks_filter and bound.refusal)
        if bound.refusal is None:
            self.state.assume(asked, worker, bound.claims)
            self.under_way[asked.uid] = asked, worker, bound.claims
            if accepted is not None:
                self.answer(asked.uid, accepted=accepted)

    @precondition(lambda self: self.under_way)
    @rule(data=st.data(), accepted=st.booleans())
    def api_server_answers(self, data: st.DataObject, *, accepted: bool) -> None:
        self.answer(data.draw(st.sampled_from(sorted(self.under_way))), accepted=accepted)

    @precondition(lambda self: self.waiting() and self.nodes)
    @rule(data=st.data())
    def another_scheduler_binds(self, data: st.DataObject) -> None:
        each = data.draw(st.sampled_from(self.waiting()))
        self.bind_elsewhere(each, data.draw(st.sampled_from(sorted(self.nodes))))

    # Reserver.

    @precondition(lambda self: any(self.watches.values()))
    @rule(watch=st.sampled_from(["pods", "store"]), number=st.integers(1, 5))
    def watch_shows(self, watch: str, number: int) -> None:
        for _ in range(number):
            if self.watches[watch]:
                self.show(watch)
            self.what_was_acknowledged_as_backed_stays_so()
        self.tidy()
        self.place_all()

    @precondition(lambda self: any(self.watches.values()))
    @rule(watch=st.sampled_from(["pods", "store"]))
    def is_listed_anew(self, watch: str) -> None:
        """The API server has forgotten the next event of the watch: 410, perhaps in a Bind."""
        self.watches[watch].clear()
        # What another scheduler has bound may be among it, or the order of writes is lost.
        self.acknowledged.clear()
        self.list_pods() if watch == "pods" else self.list_store()
        self.shown[watch] = self.revision
        self.excused |= self.leaks()  # It may have been written after the binding (ADR 6).
        self.tidy()

    @precondition(lambda self: self.under_way or any(self.watches.values()))
    @rule(data=st.data())
    def crash(self, data: st.DataObject) -> None:
        """A binding under way may have been carried out, and its answer is lost."""
        for uid in tuple(self.under_way):
            self.carry_out(uid, accepted=data.draw(st.booleans()))
        for events in self.watches.values():
            events.clear()
        self.acknowledged.clear()  # In which order they were written cannot be told any more.
        self.state = self.listed()
        self.shown = dict.fromkeys(self.shown, self.revision)
        self.excused |= self.leaks()
        self.tidy()

    @precondition(lambda self: self.under_way or any(self.watches.values()))
    @rule()
    def settle(self) -> None:
        """After all events, the ledger equals a new one: no claim is lost, no hold is leaked."""
        for uid in tuple(self.under_way):
            self.answer(uid, accepted=True)
        while any(self.watches.values()):
            for watch in self.watches:
                while self.watches[watch]:
                    self.show(watch)
                    self.what_was_acknowledged_as_backed_stays_so()
            self.tidy()
            self.place_all()
        ledger = self.state.ledger
        assert set(ledger.refs()) == self.store.keys()
        assert self.leaks() <= self.excused
        for written, _ in self.store.values():
            assert self.known_claims(written) <= self.may_have_claimed(written)
        if not any(ledger.excess(ref) for ref in self.store):  # Else the turns are other ones.
            self._is_what_a_start_makes_of_it()

    def _is_what_a_start_makes_of_it(self) -> None:
        fresh, unsure = self.listed(), set[str]()
        for each in self.unrecorded():
            unsure |= {part.node for part in each.parts}
        for worker in set(WORKERS) - unsure:
            assert fresh.ledger.held_on(worker) == self.state.ledger.held_on(worker)

    @invariant()
    def what_was_acknowledged_as_backed_stays_so(self) -> None:
        """Later bindings and writes do not change it; until another scheduler takes the room."""
        assert_still_backed(self.state, self.acknowledged)

    @invariant()
    def holds_what_is_written_and_known(self) -> None:
        ledger = self.state.ledger
        for each, phase in ledger:
            is_held = any(ledger.holding(each.ref).values())
            if each.node:
                assert is_held is (phase in {Phase.ACTIVE, Phase.FAILED})
            else:
                assert is_held or phase is not Phase.ACTIVE
                assert not is_held or phase in {Phase.ACTIVE, Phase.PENDING}


TestStateBesideApiServer = StateBesideApiServer.TestCase
