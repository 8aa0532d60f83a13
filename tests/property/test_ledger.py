from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from reserver.base.clock import Moment
from reserver.cluster.pod import PodName
from reserver.cluster.snapshot import Snapshot
from reserver.reservations.entry import identified
from reserver.reservations.enums import Phase
from reserver.reservations.ledger import Ledger
from reserver.reservations.node_holds import Hold
from reserver.reservations.reservation import Ref, Reservation, Written
from tests.builders import node, pod, reservation

WORKERS = ("worker-1", "worker-2", "worker-3")
PODS = ("a", "b", "c")
SPACES = ("shop", "blog")
"""They have the same names."""
spaces = st.sampled_from(SPACES)
times = st.none() | st.integers(0, 40).map(float)


@st.composite
def reservations(draw: st.DrawFn) -> Reservation:
    space, owners = draw(spaces), draw(st.sets(st.sampled_from(PODS), min_size=1))
    made = reservation(
        draw(st.sampled_from(["r1", "r2"])),
        node=draw(st.sampled_from(WORKERS)),
        owners=owners,
        slots=draw(st.integers(1, 3)),
        starts=draw(times),
        expires=draw(times),
        yields_above=draw(st.sampled_from([None, 7])),
        cpu=str(draw(st.integers(1, 4))),
    )
    own = tuple(PodName(space, owner) for owner in sorted(owners))
    return identified(replace(made, ref=made.ref._replace(namespace=space), owners=own))


class LedgerAgainstRecomputation(RuleBasedStateMachine):
    """The ledger, and what follows from the reservations, the claims and the time."""

    def __init__(self) -> None:
        super().__init__()
        self.snapshot = self._workers()
        self.ledger = Ledger(self.snapshot)
        self.now = Moment(0.0)
        self.revision = 0
        self.written: dict[Ref, Reservation] = {}
        self.ever: list[Reservation] = []
        self.claims: set[tuple[str, PodName, str]] = set()

    @staticmethod
    def _workers() -> Snapshot:
        snapshot = Snapshot()
        for worker in WORKERS:
            snapshot.set_node(node(worker, cpu="64"))
        return snapshot

    @rule(written=reservations())
    def put(self, written: Reservation) -> None:
        self.revision += 1
        self.ledger.put(written, Written(self.revision, self.revision + 1))
        self.written[written.ref] = written
        self.ever.append(written)

    @precondition(lambda self: self.ever)
    @rule(data=st.data())
    def put_again(self, data: st.DataObject) -> None:
        again = data.draw(st.sampled_from(self.ever))
        self.ledger.put(again)
        self.written[again.ref] = again

    @precondition(lambda self: self.written)
    @rule(data=st.data(), key=st.sampled_from(["r1", "r2"]))
    def move(self, data: st.DataObject, key: str) -> None:
        """Write a reservation in a second place, as it is done before it goes from the first."""
        first = self.written[data.draw(st.sampled_from(sorted(self.written)))]
        ref = Ref(first.ref.namespace, "", key)
        self.put(replace(first, ref=ref, origin=first.record))

    @precondition(lambda self: self.written)
    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        ref = data.draw(st.sampled_from(sorted(self.written)))
        self.ledger.drop(ref)
        del self.written[ref]

    @precondition(lambda self: self.ever)
    @rule(data=st.data(), space=spaces, owner=st.sampled_from(PODS), number=st.integers(0, 1))
    def claim(self, data: st.DataObject, space: str, owner: str, number: int) -> None:
        identity = data.draw(st.sampled_from(self.ever)).identity
        uid = f"{space}-{owner}-{number}"
        self.ledger.claim(identity, pod(owner, namespace=space, uid=uid))
        self.claims.add((identity, PodName(space, owner), uid))

    @precondition(lambda self: self.claims)
    @rule(data=st.data())
    def unclaim(self, data: st.DataObject) -> None:
        _, _, uid = data.draw(st.sampled_from(sorted(self.claims)))
        self.ledger.unclaim(uid)
        self.claims = {claim for claim in self.claims if claim[2] != uid}

    @rule(step=st.integers(-5, 15))
    def advance(self, step: int) -> None:
        self.now = Moment(self.now + step, self.now.set_back + (step < 0))
        self.ledger.advance(self.now)

    @rule(ago=st.integers(0, 50), set_back=st.integers(0, 2))
    def decide_with_a_moment_that_is_over(self, ago: int, set_back: int) -> None:
        """A caller has kept the value over an await; the clock may have been set back meanwhile."""
        before = max(0, self.now.set_back - set_back)
        over = Moment(self.now - ago if before == self.now.set_back else 90.0, before)
        self.ledger.advance(over)

    @invariant()
    def holds_what_follows(self) -> None:
        held = dict.fromkeys(WORKERS, 0)
        once = {written.identity: written for written in self.written.values()}
        for written in once.values():
            held[written.node] += self._left(written) * written.resources["cpu"]
        for worker in WORKERS:
            cell = self.snapshot.held[self.snapshot.row(worker), self.snapshot.columns["cpu"]]
            assert held[worker] == self.ledger.held_on(worker).get("cpu", 0) == cell
        for owner in (PodName(space, each) for space in SPACES for each in PODS):
            asks = pod(owner.name, namespace=owner.namespace)
            seats = [r.identity for r in self.ledger.seats(asks)]
            active = (r for r in once.values() if self._left(r) and owner in r.owners)
            assert sorted(seats) == sorted(r.identity for r in active)

    @invariant()
    def knows_what_is_behind_each_hold(self) -> None:
        for worker in WORKERS:
            holding = [*self.ledger.holding_on(worker)]
            holds = [h for r in holding if (h := self.ledger._register[r.ref].hold_on(worker))]
            for each in holds:
                behind = [h for h in holds if self._is_behind(h, each)]
                total = sum(hold.amounts["cpu"] for hold in behind)
                assert self.ledger.held_after(worker, each.reservation).get("cpu", 0) == total

    @staticmethod
    def _is_behind(hold: Hold, other: Hold) -> bool:
        if hold.yields != other.yields:
            return hold.yields
        return hold.since.first > other.since.last

    @invariant()
    def is_the_same_when_it_is_rebuilt(self) -> None:
        rebuilt = Ledger(self._workers())
        for identity, owner, uid in self.claims:
            rebuilt.claim(identity, pod(owner.name, namespace=owner.namespace, uid=uid))
        for written in self.written.values():
            rebuilt.put(written)
        rebuilt.advance(self.now)
        for worker in WORKERS:
            assert rebuilt.held_on(worker) == self.ledger.held_on(worker)
        assert dict(_phases(rebuilt)) == dict(_phases(self.ledger))

    def _left(self, written: Reservation) -> int:
        claims = sum(
            identity == written.identity and pod in written.owners
            for identity, pod, _ in self.claims
        )
        active = written.phase(claims, self.now) is Phase.ACTIVE
        return written.slots - claims if active else 0


def _phases(ledger: Ledger) -> list[tuple[Ref, Phase]]:
    return [(reservation.ref, phase) for reservation, phase in ledger]


TestLedgerAgainstRecomputation = LedgerAgainstRecomputation.TestCase
