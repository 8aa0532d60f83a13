"""A reservation that Reserver places, in the ledger: held where it is, claimed slot by slot."""

from dataclasses import replace

import pytest

from reserver.cluster.pod import Pod
from reserver.reservations.enums import Phase
from reserver.reservations.reservation import NOT_YET, Ref, Reservation, Written
from reserver.reservations.status import ReservationState, ShortNodes
from reserver.scheduling.state import State
from tests.builders import NOW, held, node, parts, pod, ref, reservation, state_of

WORKERS = tuple(node(name, cpu="8") for name in ("a", "b", "c"))
OWNERS = ("p1", "p2", "p3")


def wanted(**more: object) -> Reservation:
    said = {"node": "", "owners": OWNERS, "slots": 3, "cpu": "2"} | more
    return reservation("r", **said)  # type: ignore[arg-type]


def world(*things: Reservation | Pod) -> State:
    return state_of(*WORKERS, *things)


def holds(state: State) -> dict[str, int]:
    return {name: held(state, name) // 1000 for name in "abc" if held(state, name)}


def bind(state: State, name: str, on: str) -> Pod:
    """Bind an owner to any node, as Bind does."""
    owner = pod(name, cpu="2")
    claims = tuple(r.identity for r in state.ledger.naming(owner.name))
    state.assume(owner, on, claims)
    return owner


def written(state: State, name: str, on: str) -> None:
    state.confirm(bind(state, name, on).uid)


def status(state: State, reservation: Reservation) -> ReservationState:
    return ShortNodes.of(state.snapshot).status(reservation, state.ledger)


def test_it_holds_nothing_before_it_is_placed_and_says_that_it_waits() -> None:
    state = world(wanted())
    assert holds(state) == {}
    assert state.ledger.phase(ref("r")) is Phase.PENDING
    assert state.ledger.wants_place(ref("r")) == ((), 3)
    state.ledger.cannot_place(ref("r"), "0/3 nodes are available.")
    assert status(state, wanted())[:3] == (Phase.PENDING, False, "0/3 nodes are available.")


def test_it_holds_from_the_decision_and_says_so_once_that_is_written() -> None:
    state = world(wanted())
    state.ledger.place(ref("r"), parts({"a": 2, "b": 1}))
    assert holds(state) == {"a": 4, "b": 2}
    assert state.ledger.phase(ref("r")) is Phase.ACTIVE
    assert status(state, wanted()).phase is Phase.PENDING
    recorded = wanted(placed={"a": 2, "b": 1})
    state.ledger.put(recorded, Written(5, 5))
    assert status(state, recorded) == ReservationState(Phase.ACTIVE, is_backed=True)
    assert recorded.identity == wanted().identity


def test_the_place_that_is_written_is_the_place() -> None:
    """Of two Reservers that decide, one writes first."""
    state = world(wanted())
    state.ledger.place(ref("r"), parts({"a": 3}))
    state.ledger.put(wanted(placed={"c": 3}), Written(5, 5))
    assert holds(state) == {"c": 6}


@pytest.mark.parametrize(
    ("again", "left"), [(wanted(), {}), (wanted(placed={"a": 3}), {"a": 6})], ids=["none", "before"]
)
def test_what_was_written_before_does_not_undo_a_decision(
    again: Reservation, left: dict[str, int]
) -> None:
    state = world(wanted(placed={"a": 3}))
    state.ledger.place(ref("r"), parts({"b": 3}))
    state.ledger.put(again, Written(5, 5))
    assert holds(state) == {"b": 6, **left}
    assert state.ledger.placed(again) == parts({"b": 3})


def leaving(**more: object) -> State:
    """Return the state once a reservation has left a node, and its new place is not written."""
    state = world(wanted(placed={"a": 3}, **more), reservation("s", node="a", cpu="1"))
    state.ledger.place(ref("r"), parts({"b": 2, "c": 1}))
    return state


def test_until_its_new_place_is_written_nobody_takes_the_former() -> None:
    """If this process ends before, or the API server refuses the place, it is there again."""
    state = leaving()
    assert holds(state) == {"a": 7, "b": 4, "c": 2}
    assert [seat.node for seat in state.ledger.seats(pod("p1"))] == ["b", "c"]
    state.ledger.put(wanted(placed={"b": 2, "c": 1}), Written(5, 5))
    assert holds(state) == {"a": 1, "b": 4, "c": 2}


def test_slots_that_leave_a_node_are_held_there_beside_those_that_stay() -> None:
    state = world(wanted(placed={"a": 3}))
    state.ledger.place(ref("r"), parts({"a": 1, "c": 2}))
    assert holds(state) == {"a": 6, "c": 4}
    state.ledger.put(wanted(placed={"a": 1, "c": 2}), Written(5, 5))
    assert holds(state) == {"a": 2, "c": 4}


def test_the_former_place_is_held_for_no_more_slots_than_are_unclaimed() -> None:
    state = leaving()
    written(state, "p1", "b")
    assert holds(state) == {"a": 5, "b": 2, "c": 2}
    written(state, "p2", "b")
    written(state, "p3", "c")
    assert holds(state) == {"a": 1}


def test_a_place_that_is_taken_back_keeps_its_turn() -> None:
    state = world()
    state.ledger.put(wanted(placed={"a": 3}), Written(1, 1))
    state.ledger.put(reservation("s", node="a", cpu="1"), Written(2, 2))
    state.ledger.place(ref("r"), parts({"b": 3}))
    state.ledger.place(ref("r"), parts({"a": 3}))
    assert holds(state) == {"a": 7}
    assert state.ledger.held_after("a", wanted()) == {"cpu": 1000, "pods": 1}


def test_an_edit_of_the_written_place_is_held_there() -> None:
    state = leaving()
    state.ledger.put(wanted(placed={"a": 3}, expires=NOW + 500), Written(5, 5))
    assert holds(state) == {"a": 7}


@pytest.mark.parametrize("end", ["deleted", "expired", "placed by name"])
def test_the_former_place_ends_with_the_reservation(end: str) -> None:
    state = leaving(expires=NOW + 100)
    if end == "deleted":
        state.ledger.drop(ref("r"))
    elif end == "expired":
        state.ledger.advance(NOW + 100)
    else:
        state.ledger.put(wanted(node="c", expires=NOW + 100), Written(5, 5))
    assert holds(state) == {"a": 1, **({"c": 6} if end == "placed by name" else {})}


def test_each_owner_claims_one_slot_of_one_part() -> None:
    state = world(wanted(placed={"a": 2, "b": 1}))
    assert [seat.node for seat in state.ledger.seats(pod("p1"))] == ["a", "b"]
    bind(state, "p1", "a")
    assert holds(state) == {"a": 2, "b": 2}
    bind(state, "p2", "a")
    assert holds(state) == {"b": 2}
    assert [seat.node for seat in state.ledger.seats(pod("p3"))] == ["b"]
    bind(state, "p3", "b")
    assert state.ledger.phase(ref("r")) is Phase.CLAIMED


def test_an_owner_that_lands_elsewhere_gives_the_last_part_back() -> None:
    state = world(wanted(placed={"a": 2, "b": 1}))
    uid = bind(state, "p1", "c").uid
    assert holds(state) == {"a": 4, "b": 2}  # Its binding may fail.
    state.confirm(uid)
    assert holds(state) == {"a": 4}


def test_a_claim_that_is_taken_back_is_held_again_where_it_was() -> None:
    state = world(wanted(placed={"a": 2, "b": 1}))
    state.forget(bind(state, "p1", "a").uid)
    assert holds(state) == {"a": 4, "b": 2}


def test_when_its_node_goes_what_is_left_wants_a_place() -> None:
    state = world(wanted(placed={"a": 2, "b": 1}))
    bind(state, "p1", "a")
    state.node_gone("a")
    assert state.ledger.phase(ref("r")) is Phase.PENDING
    assert state.ledger.wants_place(ref("r")) == (parts({"a": 1, "b": 1}), 1)
    state.ledger.place(ref("r"), parts({"a": 1, "b": 1, "c": 1}))
    assert holds(state) == {"a": 2, "b": 2, "c": 2}
    assert state.ledger.phase(ref("r")) is Phase.ACTIVE
    state.ledger.put(wanted(placed={"a": 1, "b": 1, "c": 1}), Written(5, 5))
    assert holds(state) == {"b": 2, "c": 2}


def test_a_node_that_comes_back_is_its_place_again() -> None:
    state = world(wanted(placed={"a": 3}))
    state.node_gone("a")
    state.node_seen(WORKERS[0])
    assert state.ledger.phase(ref("r")) is Phase.ACTIVE
    assert holds(state) == {"a": 6}


@pytest.mark.parametrize(
    ("more", "at", "phase"),
    [
        ({"expires": 100.0}, 100.0, Phase.EXPIRED),
        ({"starts": 100.0}, 99.0, Phase.PENDING),
        ({"starts": 100.0}, 100.0, Phase.PENDING),
    ],
    ids=["expired", "before it starts", "as it starts"],
)
def test_it_wants_a_place_only_while_it_should_hold(
    more: dict[str, float], at: float, phase: Phase
) -> None:
    state = state_of(*WORKERS, now=0.0)
    state.ledger.put(wanted(**more))
    state.ledger.advance(at)
    assert state.ledger.phase(ref("r")) is phase
    assert state.ledger.wants_place(ref("r"))[1] == (3 if at == more.get("starts") else 0)


def test_who_has_to_land_there_waits_for_the_place_and_others_do_not() -> None:
    state = world(wanted(require=True))
    assert state.ledger.awaited_by(pod("p1")) is not None
    assert state.ledger.awaited_by(pod("stranger")) is None
    state.ledger.place(ref("r"), parts({"a": 3}))
    assert state.ledger.awaited_by(pod("p1")) is None
    assert world(wanted()).ledger.awaited_by(pod("p1")) is None


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (wanted(expires=9e9), {"a": 4, "b": 2}),
        (wanted(slots=2), {"a": 4}),
        (wanted(slots=4), {"a": 4, "b": 2}),
        (wanted(cpu="3"), {"a": 6, "b": 3}),
        (wanted(node="c"), {"c": 6}),
        (wanted(placed={"c": 3}, cpu="1"), {"c": 3}),
    ],
    ids=["other expiry", "fewer slots", "more slots", "more of each", "a node", "another place"],
)
def test_an_edit_begins_where_it_was(after: Reservation, expected: dict[str, int]) -> None:
    state = world(wanted(placed={"a": 2, "b": 1}))
    state.ledger.put(after)
    assert holds(state) == expected
    assert state.ledger.is_edited(ref("r")) is not bool(after.node)
    if not after.node and after.slots < 4:
        assert status(state, after).phase is Phase.PENDING
        state.ledger.keep(ref("r"))
        as_placed = replace(after, placed=state.ledger.placed(after))
        assert status(state, as_placed) == ReservationState(Phase.ACTIVE, is_backed=True)


def test_a_copy_is_placed_where_the_reservation_is_and_takes_over() -> None:
    state = world(wanted())
    copy = replace(wanted(), ref=Ref.of_object("shop", "r"), origin=str(ref("r")))
    state.ledger.place(ref("r"), parts({"b": 3}))
    state.ledger.put(copy)
    assert state.ledger.placed(copy) == parts({"b": 3})
    assert holds(state) == {"b": 6}
    assert state.ledger.wants_place(copy.ref) == ((), 0)
    state.ledger.drop(ref("r"))
    assert holds(state) == {"b": 6}
    assert state.ledger.phase(copy.ref) is Phase.ACTIVE


def test_a_copy_that_knows_the_place_tells_the_first() -> None:
    state = world(wanted())
    copy = replace(wanted(placed={"b": 3}), ref=Ref.of_object("shop", "r"), origin=str(ref("r")))
    state.ledger.put(copy)
    assert holds(state) == {"b": 6}


def test_it_stands_behind_what_holds_there_until_its_place_is_written() -> None:
    state = world(reservation("first", node="a", owners=("x",), cpu="1"), wanted())
    state.ledger.place(ref("r"), parts({"a": 3}))
    first = state.ledger.get(ref("first"))
    assert first is not None
    state.ledger.put(reservation("early", node="a", owners=("x",), cpu="1"), Written(1, 1))
    early = state.ledger.get(ref("early"))
    assert early is not None
    assert state.ledger.held_after("a", early) == {"cpu": 6000, "pods": 3}


def test_one_that_is_being_written_with_its_place_holds_there() -> None:
    state = world()
    state.ledger.put(wanted(placed={"a": 3}), NOT_YET)
    assert holds(state) == {"a": 6}
    state.ledger.put(wanted(placed={"a": 3}), Written(4, 4))
    assert status(state, wanted(placed={"a": 3})).is_backed


def test_a_claim_of_a_pod_that_is_gone_is_one_of_its_node_after_a_restart() -> None:
    before = world(wanted(placed={"a": 2, "b": 1}))
    owner = replace(pod("p1", node="a", cpu="2"), claims=frozenset({wanted().identity}))
    before.pod_seen(replace(owner, revision=3))
    before.pod_gone(owner.name)
    assert holds(before) == {"a": 2, "b": 2}
    ledger = before.ledger
    claims, landed = ledger.recorded(ref("r")), ledger.landed(ref("r"))
    after = world()
    after.ledger.put(wanted(placed={"a": 2, "b": 1}), Written(0, 2))
    after.ledger.past.recall(ref("r"), wanted().digest, claims, landed)
    assert holds(after) == {"a": 2, "b": 2}
