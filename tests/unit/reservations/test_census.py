"""A census counts who holds what, and lets other work run meanwhile."""

from __future__ import annotations

from reserver.base.pacer import outcome
from reserver.process import hold_metrics
from reserver.reservations.enums import Phase
from tests.builders import NAMESPACE, NOW, node, ref, reservation, state_of

W1 = node("worker-1", cpu="4", memory="4Gi")


def test_a_census_counts_the_phases_and_the_holds_without_room() -> None:
    state = state_of(W1, reservation("a", cpu="2"), reservation("ghost", node="ghost"))
    state.ledger.put(reservation("later", starts=NOW + 9))
    state.ledger.put(reservation("over", node="ghost", expires=NOW))
    found = outcome(hold_metrics.take(state.snapshot, state.ledger, ("cpu",)))
    expected = {Phase.ACTIVE: 1, Phase.FAILED: 1, Phase.PENDING: 1, Phase.EXPIRED: 1}
    assert found.phases == expected
    assert found.unbacked == {NAMESPACE: 1}  # Ended reservations hold nothing.
    assert found.held == {"cpu": {NAMESPACE: 2000}}


def test_reservations_may_come_and_go_meanwhile() -> None:
    state = state_of(W1, reservation("a"), reservation("b"))
    counting = hold_metrics.take(state.snapshot, state.ledger, ("cpu",))
    next(counting)
    state.ledger.drop(ref("b"))
    state.ledger.put(reservation("c"))
    assert outcome(counting).phases == {Phase.ACTIVE: 1}


def test_a_census_of_many_gives_way_again_and_again() -> None:
    state = state_of(W1, *(reservation(f"r{number}") for number in range(100)))
    assert len(list(hold_metrics.take(state.snapshot, state.ledger, ()))) >= 100 / 50
