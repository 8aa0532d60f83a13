"""Placing never takes more than there is, and refuses only what does not fit."""

from hypothesis import given, settings
from hypothesis import strategies as st

from reserver.cluster.node import Node
from reserver.reservations.enums import Strategy
from reserver.reservations.placement import Placement
from reserver.reservations.reservation import Reservation
from reserver.scheduling.state import State
from tests.builders import node, place, pod, reservation, state_of


@st.composite
def clusters(draw: st.DrawFn) -> State:
    nodes: list[Node] = [
        node(
            f"n{number}",
            cpu=f"{draw(st.integers(0, 8000))}m",
            memory=str(draw(st.integers(0, 8000))),
            pods=str(draw(st.integers(0, 6))),
        )
        for number in range(draw(st.integers(1, 6)))
    ]
    names = st.sampled_from([each.name for each in nodes])
    pods = [
        pod(f"p{number}", node=draw(names), cpu=f"{draw(st.integers(0, 4000))}m")
        for number in range(draw(st.integers(0, 6)))
    ]
    held = [
        reservation(f"h{number}", node=draw(names), cpu=f"{draw(st.integers(1, 4000))}m")
        for number in range(draw(st.integers(0, 3)))
    ]
    state = state_of(*nodes, *pods, *held)
    for name in draw(st.sets(names, max_size=2)):
        state.unreadable.note(("Pod", name), name)
    return state


@st.composite
def reservations(draw: st.DrawFn) -> Reservation:
    return reservation(
        "r",
        node="",
        slots=draw(st.integers(1, 12)),
        placement=Placement(strategy=draw(st.sampled_from(Strategy))),
        cpu=f"{draw(st.integers(1, 3000))}m",
        memory=str(draw(st.integers(0, 3000))),
    )


def room(state: State, wanted: Reservation) -> dict[str, int]:
    """Return for how many slots each node has room, counted one by one."""
    snapshot = state.snapshot
    found = {}
    for name in snapshot.node_names():
        row = snapshot.rows((name,))[0]
        free = (snapshot.allocatable - snapshot.requested - snapshot.held)[row]
        slots = 0
        while all(
            free[snapshot.columns[resource]] >= amount * (slots + 1)
            for resource, amount in wanted.resources.items()
            if amount
        ):
            slots += 1
        found[name] = slots if name not in snapshot.unreadable_nodes else 0
    return found


@settings(max_examples=5 * settings().max_examples)
@given(state=clusters(), wanted=reservations())
def test_all_slots_have_room_or_none_is_placed(state: State, wanted: Reservation) -> None:
    there_is = room(state, wanted)
    outcome = place(wanted, wanted.slots, state)
    if sum(there_is.values()) < wanted.slots:
        assert outcome.parts == ()
        assert outcome.why
        return
    assert sum(part.slots for part in outcome.parts) == wanted.slots
    assert len({part.node for part in outcome.parts}) == len(outcome.parts)
    assert all(0 < part.slots <= there_is[part.node] for part in outcome.parts)
    if wanted.placement.strategy is Strategy.PACK and max(there_is.values()) >= wanted.slots:
        assert len(outcome.parts) == 1


@settings(max_examples=4 * settings().max_examples)
@given(state=clusters(), wanted=st.lists(reservations(), min_size=1, max_size=5))
def test_what_is_placed_one_after_the_other_never_exceeds_a_node(
    state: State, wanted: list[Reservation]
) -> None:
    snapshot = state.snapshot
    before = snapshot.allocatable - snapshot.requested - snapshot.held
    for number, each in enumerate(wanted):
        one = reservation(
            f"r{number}", node="", slots=each.slots, placement=each.placement, cpu="1m"
        )
        state.ledger.put(one)
        outcome = place(one, one.slots, state)
        if outcome.parts:
            state.ledger.place(one.ref, outcome.parts)
    after = snapshot.allocatable - snapshot.requested - snapshot.held
    assert ((after >= 0) | (after == before)).all()
