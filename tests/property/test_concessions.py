"""The cached concessions equal those computed from each hold."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from reserver.reservations.reservation import Reservation
from reserver.scheduling.state import State
from tests.builders import BORROWER, NOW, node, pod, ref, reservation
from tests.builders import rule as owner_rule

NAMES = [f"worker-{number}" for number in range(4)]
nodes = st.sampled_from(NAMES)
numbers = st.integers(0, 5)
priorities = st.sampled_from([None, -5, 0, 5])
ASKING = [
    pod("asking", priority=priority, constraints=constraints, cpu="1")
    for priority in (-10, 0, 3, 10)
    for constraints in (BORROWER, pod("any").constraints)
]


class ConcessionsAgainstHolds(RuleBasedStateMachine):
    """Holds that yield and lend, on nodes that come and go."""

    def __init__(self) -> None:
        super().__init__()
        self.state = State()
        self.state.snapshot.lending.is_on = True
        self.now = NOW
        self.state.ledger.advance(self.now)

    @rule(name=nodes, gpu=st.booleans())
    def set_node(self, name: str, *, gpu: bool) -> None:
        made = node(name, cpu="64")
        more = {f"gpu.example/{name}": 4} if gpu else {}  # Another column, or fewer.
        self.state.node_seen(replace(made, allocatable={**made.allocatable, **more}))

    @rule(name=nodes)
    def remove_node(self, name: str) -> None:
        self.state.node_gone(name)

    @rule(number=numbers, name=nodes, below=priorities, above=priorities, cpu=st.integers(1, 4))
    def reserve(
        self, number: int, name: str, below: int | None, above: int | None, cpu: int
    ) -> None:
        made = reservation(
            f"r{number}", node=name, lends_below=below, yields_above=above, cpu=str(cpu)
        )
        self.state.ledger.put(made)

    @rule(number=numbers)
    def release(self, number: int) -> None:
        self.state.ledger.drop(ref(f"r{number}"))

    @rule(number=numbers, name=nodes, priority=st.sampled_from([-10, 0, 3]))
    def borrow(self, number: int, name: str, priority: int) -> None:
        on = self.bound_to(number, name)
        made = pod(f"b{number}", node=on, priority=priority, constraints=BORROWER, cpu="1")
        self.state.pod_seen(made)

    def bound_to(self, number: int, name: str) -> str:
        """Return the node of a borrower: a bound pod stays there."""
        known = self.state.pods.get(pod(f"b{number}").name)
        return known.node if known else name

    @rule(number=numbers)
    def end(self, number: int) -> None:
        self.state.pod_gone(pod(f"b{number}").name)

    @rule(name=nodes, seconds=st.integers(0, 3))
    def recall(self, name: str, seconds: int) -> None:
        self.state.ledger.recall(name, self.now + seconds)

    @rule(seconds=st.integers(1, 2))
    def wait(self, seconds: int) -> None:
        self.now += seconds
        self.state.ledger.advance(self.now)

    @invariant()
    def says_what_the_holds_say(self) -> None:
        snapshot, ledger = self.state.snapshot, self.state.ledger
        for asking in ASKING:
            cells = ledger.conceded(asking)
            wanted = ledger.yielding(asking, NAMES)
            for row in range(len(snapshot.exists)):
                for name, column in snapshot.columns.items():
                    on = next((each for each in NAMES if snapshot.row(each) == row), "")
                    amount = wanted.get(on, {}).get(name, 0)
                    assert (0 if cells is None else cells[column, row]) == amount, (asking, on)


TestConcessionsAgainstHolds = ConcessionsAgainstHolds.TestCase


class OwnSlots(ConcessionsAgainstHolds):
    """Some borrowers have slots of their own, which are not borrowed."""

    def __init__(self) -> None:
        super().__init__()
        self.made: dict[int, Reservation] = {}

    @rule(number=numbers, on=st.sets(nodes, min_size=1), below=priorities, reusable=st.booleans())
    def reserve_widely(
        self, number: int, on: set[str], below: int | None, *, reusable: bool
    ) -> None:
        self.made[number] = reservation(
            f"r{number}",
            node="",
            rules=[owner_rule(app="x")],
            placed=dict.fromkeys(sorted(on), 1),
            slots=len(on),
            lends_below=below,
            reusable=reusable,
            cpu="1",
        )
        self.state.ledger.put(self.made[number])

    @precondition(lambda self: self.made)
    @rule(data=st.data())
    def reserve_again(self, data: st.DataObject) -> None:
        self.state.ledger.put(self.made[data.draw(st.sampled_from(sorted(self.made)))])

    @precondition(lambda self: self.made)
    @rule(number=numbers, name=nodes, data=st.data())
    def claim(self, number: int, name: str, data: st.DataObject) -> None:
        """Have a borrower claim a reservation, which may be shown later."""
        claims = [self.made[data.draw(st.sampled_from(sorted(self.made)))]]
        on = self.bound_to(number, name)
        made = pod(f"b{number}", node=on, claims=claims, constraints=BORROWER, cpu="1")
        self.state.pod_seen(replace(made, labels={"app": "x"}))

    @invariant()
    def borrowers_are_those_that_a_count_finds(self) -> None:
        lending = self.state.snapshot.lending
        for name in NAMES:
            cached = list(lending.borrowers(name)), lending.borrowed(name), lending.held(name)
            lending.changed(name)
            found = list(lending.borrowers(name)), lending.borrowed(name), lending.held(name)
            assert cached == found, name


TestOwnSlots = OwnSlots.TestCase


def test_the_row_of_a_node_that_is_gone_concedes_nothing() -> None:
    machine = ConcessionsAgainstHolds()
    machine.set_node("worker-0", gpu=False)
    for number in (0, 1):
        machine.reserve(number, f"worker-{number}", None, -5, 2)
    machine.says_what_the_holds_say()
    machine.release(1)
    machine.says_what_the_holds_say()
