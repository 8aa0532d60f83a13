"""Bindings in flight may fail: what is held again then stays held."""

import pytest

from reserver.reservations.reservation import Written
from reserver.scheduling.bind import judge_bind
from tests.builders import NOW, parts, pod, ref
from tests.unit.reservations.test_placed import bind, holds, leaving, wanted, world, written


def test_the_former_place_is_held_while_bindings_at_the_new_one_may_fail() -> None:
    state = leaving()
    owners = [bind(state, name, on) for name, on in {"p1": "b", "p2": "b", "p3": "c"}.items()]
    assert holds(state) == {"a": 7}
    state.ledger.place(ref("r"), parts({"a": 3}))  # The API server has refused the new place.
    assert holds(state) == {"a": 7}
    for owner in owners:
        state.forget(owner.uid)
    assert holds(state) == {"a": 7}


@pytest.mark.parametrize(
    ("placed", "before", "after"),
    [({"a": 1, "b": 1}, {"a": 2}, {"a": 2}), ({"b": 1, "a": 1}, {}, {"b": 2})],
    ids=["the slot of the binding in flight", "the other slot"],
)
def test_a_claim_from_elsewhere_takes_the_last_slot_if_a_binding_fails(
    placed: dict[str, int], before: dict[str, int], after: dict[str, int]
) -> None:
    state = world(wanted(owners=("p1", "p2"), slots=2, placed=placed))
    first = bind(state, "p1", "b")
    written(state, "p2", "c")
    assert holds(state) == before
    state.forget(first.uid)
    assert holds(state) == after


def test_an_owner_takes_a_slot_that_is_held_while_a_binding_may_fail() -> None:
    state = world(wanted(slots=2, placed={"a": 1, "b": 1}))
    first = bind(state, "p1", "b")
    written(state, "p2", "c")
    owner = pod("p3", cpu="2")
    verdict = judge_bind(owner, "a", state, NOW)
    assert verdict.refusal is None
    state.assume(owner, "a", verdict.claims)
    assert holds(state) == {}
    state.forget(first.uid)
    assert holds(state) == {}


def test_a_place_of_another_reserver_is_held_while_a_binding_may_fail() -> None:
    state = world(wanted(owners=("p1",), slots=1, placed={"a": 1}))
    first = bind(state, "p1", "a")
    state.ledger.put(wanted(owners=("p1",), slots=1, placed={"b": 1}), Written(5, 5))
    assert holds(state) == {"b": 2}
    state.confirm(first.uid)
    assert holds(state) == {}


def test_a_claim_of_an_own_slot_leaves_what_is_held_for_a_failing_binding() -> None:
    state = world(wanted(slots=4, placed={"a": 3, "b": 1}))
    first = bind(state, "p1", "b")
    written(state, "p2", "c")
    assert holds(state) == {"a": 6}
    bind(state, "p3", "a")
    assert holds(state) == {"a": 4}
    state.confirm(first.uid)
    assert holds(state) == {"a": 2}


def test_a_slot_that_comes_back_is_held_at_the_former_place_again() -> None:
    """The new place is not written yet."""
    seat = wanted(owners=("p1",), slots=1, placed={"a": 1}, reusable=True)
    state = world(seat, pod("p1", cpu="2"))
    state.ledger.place(ref("r"), parts({"b": 1}))
    written(state, "p1", "b")
    assert holds(state) == {}
    state.pod_gone(pod("p1").name)
    assert holds(state) == {"a": 2, "b": 2}
