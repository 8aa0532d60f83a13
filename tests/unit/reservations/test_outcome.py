"""The outcome of an ended reservation."""

import pytest

from reserver.reservations.entry import EndedClaim
from reserver.reservations.enums import Outcome
from reserver.reservations.outcome import Ending
from tests.builders import NOW, node, pod, reservation, rule, state_of


@pytest.mark.parametrize(
    ("outcome", "pods", "said"),
    [
        (Outcome.CLAIMED, ["a", "b", "c"], "claimed by a, b, c"),
        (Outcome.CLAIMED, ["a", "b", "c", "d", "e"], "claimed by a, b, c and 2 more"),
        (Outcome.CLAIMED, ["", "b"], "claimed by b"),
        (Outcome.CLAIMED, [""], "claimed"),
        (Outcome.EXPIRED, [], "expired unclaimed"),
        (Outcome.EXPIRED, ["a"], "expired with 1 of 3 slots claimed by a"),
        (Outcome.EXPIRED, [""], "expired with 1 of 3 slots claimed"),
        (Outcome.IDLE, [], "released when idle, unclaimed"),
        (Outcome.IDLE, ["a"], "released when idle, with 1 of 3 slots claimed by a"),
        (Outcome.REMOVED, [], "removed unclaimed"),
        (Outcome.REMOVED, ["a"], "removed with 1 of 3 slots claimed by a"),
    ],
)
def test_an_ending_says_who_claimed_it(outcome: Outcome, pods: list[str], said: str) -> None:
    claims = tuple(EndedClaim(f"uid-{number}", name) for number, name in enumerate(pods))
    assert str(Ending(reservation("r", slots=3), outcome, NOW, claims=claims)) == said


def test_a_reusable_reservation_was_used_by_those_who_gave_its_slots_back() -> None:
    shared, extended = (
        reservation("r", owners=[], rules=[rule(app="web")], slots=3, reusable=True, expires=at)
        for at in (NOW + 9, NOW + 60)
    )
    state = state_of(node("worker-1", cpu="4"), shared)
    owners = [
        pod(name, labels={"app": "web"}, node="worker-1", claims=[shared], cpu="1")
        for name in ("a", "b", "c")
    ]
    for owner in owners[:2]:
        state.pod_seen(owner)
    for owner in owners[:2]:
        state.pod_gone(owner.name)
    ending = Ending.of(shared, state.ledger, NOW)
    assert str(ending) == "removed with 2 of 3 slots claimed by shop/a, shop/b"
    state.pod_seen(owners[2])
    state.ledger.put(extended)
    ending = Ending.of(extended, state.ledger, NOW)
    assert (ending.claimed, len(ending.claims)) == (2, 2)


def test_of_many_who_gave_slots_back_some_are_named() -> None:
    shared = reservation("r", owners=[], rules=[rule(app="web")], slots=20, reusable=True)
    state = state_of(node("worker-1", cpu="4"), shared)
    owners = [
        pod(f"p{number}", labels={"app": "web"}, node="worker-1", claims=[shared])
        for number in range(20)
    ]
    for owner in owners:
        state.pod_seen(owner)
    for owner in owners:
        state.pod_gone(owner.name)
    ending = Ending.of(shared, state.ledger, NOW)
    assert (ending.claimed, len(ending.claims)) == (20, 10)


def test_what_the_ledger_knows_is_what_became_of_it() -> None:
    shared = reservation("r", owners=[], rules=[rule(app="web")], slots=2, cpu="1", expires=NOW + 9)
    state = state_of(node("worker-1", cpu="4"), shared)
    ledger = state.ledger
    assert Ending.of(shared, ledger, NOW).outcome is Outcome.REMOVED
    for name in ("a", "b"):
        owner = pod(name, labels={"app": "web"}, node="worker-1", claims=[shared], cpu="1")
        state.pod_seen(owner)
        if name == "a":
            ledger.advance(NOW + 10)
            assert Ending.of(shared, ledger, NOW).outcome is Outcome.EXPIRED
    ending = Ending.of(shared, ledger, NOW, NOW - 60, {"uid-b": NOW - 5})
    assert ending.outcome is Outcome.CLAIMED
    assert ending.claims == (
        EndedClaim("uid-a", "shop/a", "worker-1"),
        EndedClaim("uid-b", "shop/b", "worker-1", NOW - 5),
    )
    assert Ending.of(reservation("unknown"), ledger, NOW).outcome is Outcome.REMOVED
