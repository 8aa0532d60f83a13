"""Placements, moves, claims and records in any order: the ledger holds the rest."""

from collections.abc import Iterable
from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from reserver.base.clock import Moment
from reserver.reservations.enums import Phase
from reserver.reservations.ledger import Ledger
from reserver.reservations.placement import Part, Parts, clipped
from reserver.reservations.reservation import NOT_YET, Ref, Reservation, Written
from reserver.scheduling.state import State
from tests.builders import node, pod, reservation

WORKERS = ("a", "b", "c")
PODS = ("p", "q", "r")
KEYS = ("r1", "r2")
parts = st.lists(
    st.builds(Part, st.sampled_from(WORKERS), st.integers(1, 3)), unique_by=lambda part: part.node
).map(tuple)


@st.composite
def reservations(draw: st.DrawFn) -> Reservation:
    wanted = reservation(
        draw(st.sampled_from(KEYS)),
        node="",
        owners=draw(st.sets(st.sampled_from(PODS), min_size=1)),
        slots=draw(st.integers(1, 3)),
        expires=draw(st.none() | st.integers(1, 20).map(float)),
        cpu=str(draw(st.integers(1, 2))),
        refill_up_to=draw(st.sampled_from((0, 3, 4))),
    )
    return replace(wanted, placed=clipped(draw(parts), wanted.most_slots))


class PlacedLedger(RuleBasedStateMachine):
    """The ledger of reservations that name no node."""

    def __init__(self) -> None:
        super().__init__()
        self.state = self._workers()
        self.now = Moment(0.0)
        self.revision = 0
        self.claims: dict[tuple[str, str], tuple[str, str]] = {}

    @property
    def ledger(self) -> Ledger:
        return self.state.ledger

    @staticmethod
    def _workers() -> State:
        state = State()
        for worker in WORKERS:
            state.node_seen(node(worker, cpu="64"))
        return state

    def _known(self, key: str) -> Reservation | None:
        return self.ledger.get(Ref("shop", "store", key))

    def _write(self) -> Written:
        self.revision += 1
        return Written(self.revision, self.revision)

    @rule(written=reservations(), seen=st.booleans())
    def put(self, written: Reservation, *, seen: bool) -> None:
        self.ledger.put(written, self._write() if seen else NOT_YET)

    @rule(key=st.sampled_from(KEYS), to=parts)
    def place(self, key: str, to: Parts) -> None:
        known = self._known(key)
        if known is not None:
            self.ledger.place(known.ref, clipped(to, known.most_slots))

    @rule(key=st.sampled_from(KEYS), bare=st.booleans())
    def record(self, key: str, *, bare: bool) -> None:
        """Show an entry again, with its place or as its manager writes it."""
        known = self._known(key)
        if known is not None:
            before = known.placed
            self.ledger.put(replace(known, placed=() if bare else before), self._write())
            assert self.ledger.placed(known) == before

    @rule(key=st.sampled_from(KEYS), to=parts)
    def other_records(self, key: str, to: Parts) -> None:
        """Show an entry as another reserver has placed it."""
        known = self._known(key)
        if known is not None:
            there = clipped(to, known.most_slots)
            before = self.ledger.recorded_place(known.ref)
            self.ledger.put(replace(known, placed=there), self._write())
            if there and there != before:
                assert self.ledger.placed(known) == there

    @rule(key=st.sampled_from(KEYS), owner=st.sampled_from(PODS), on=st.sampled_from(WORKERS))
    def claim(self, key: str, owner: str, on: str) -> None:
        known = self._known(key)
        if known is not None and (known.identity, owner) not in self.claims:
            self.ledger.claim(known.identity, pod(owner, node=on))
            self.claims[known.identity, owner] = (owner, on)

    @precondition(lambda self: self.claims)
    @rule(data=st.data())
    def unclaim(self, data: st.DataObject) -> None:
        _, owner = data.draw(st.sampled_from(sorted(self.claims)))
        self.ledger.unclaim(f"uid-{owner}")
        self.claims = {key: claim for key, claim in self.claims.items() if key[1] != owner}

    @rule(worker=st.sampled_from(WORKERS), there=st.booleans())
    def come_or_go(self, worker: str, *, there: bool) -> None:
        if there:
            self.state.node_seen(node(worker, cpu="64"))
        else:
            self.state.node_gone(worker)

    @rule(key=st.sampled_from(KEYS))
    def drop(self, key: str) -> None:
        self.ledger.drop(Ref("shop", "store", key))

    @rule(step=st.integers(-2, 5))
    def advance(self, step: int) -> None:
        self.now = Moment(self.now + step, self.now.set_back + (step < 0))
        self.ledger.advance(self.now)

    @invariant()
    def every_slot_is_held_claimed_or_unplaced(self) -> None:
        totals = dict.fromkeys(WORKERS, 0)
        for known, phase in self.ledger:
            holding = self.ledger.holding(known.ref)
            held = {n: amounts.get("pods", 0) for n, amounts in holding.items()}
            for name, number in held.items():
                totals[name] += number * known.resources["cpu"]
                assert 0 <= number <= dict(known.placed)[name]
            if phase in {Phase.CLAIMED, Phase.EXPIRED}:
                assert not any(held.values())
                continue
            claims = len(self.ledger.claimants(known.ref))
            there = sum(n for name, n in held.items() if self.state.snapshot.has_node(name))
            _, unplaced = self.ledger.wants_place(known.ref)
            if known.refill_up_to:
                assert there + unplaced == min(known.slots, known.refill_up_to - claims)
                in_force = bool(sum(held.values()))
                assert (unplaced > 0 and not in_force) is (phase is Phase.PENDING)
                continue
            assert there + unplaced + claims == known.slots
            assert (unplaced > 0) is (phase is Phase.PENDING)
        for worker in WORKERS:
            more = self.ledger.held_on(worker).get("cpu", 0) - totals[worker]
            assert more == 0 or 0 < more <= self._written_on(worker)

    def _written_on(self, worker: str) -> int:
        """Return the amount of the slots that entries have on a node, claimed or not."""
        return sum(
            dict(self.ledger.recorded_place(known.ref)).get(worker, 0) * known.resources["cpu"]
            for known, _ in self.ledger
        )

    def _rebuilt(self, known: Iterable[Reservation]) -> Ledger:
        rebuilt = self._workers().ledger
        for (identity, _), (owner, on) in self.claims.items():
            rebuilt.claim(identity, pod(owner, node=on))
        for each in known:
            rebuilt.put(each)
        rebuilt.advance(self.now)
        return rebuilt

    @invariant()
    def is_the_same_when_it_is_rebuilt(self) -> None:
        rebuilt = self._rebuilt(known for known, _ in self.ledger)
        for known, _ in self.ledger:
            assert rebuilt.holding(known.ref) == self.ledger.holding(known.ref)

    @invariant()
    def what_the_next_process_will_hold_is_held(self) -> None:
        """It begins with the written places."""
        rebuilt = self._rebuilt(
            replace(known, placed=self.ledger.recorded_place(known.ref)) for known, _ in self.ledger
        )
        for worker in WORKERS:
            then = rebuilt.held_on(worker).get("cpu", 0)
            assert then <= self.ledger.held_on(worker).get("cpu", 0)


TestPlacedLedger = PlacedLedger.TestCase
