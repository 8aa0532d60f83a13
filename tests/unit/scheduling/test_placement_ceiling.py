"""The placement of a tenant's reservation below the ceiling of each node."""

from dataclasses import replace

import pytest

from reserver.reservations.ceiling import CeilingLimits
from reserver.reservations.reservation import Reservation
from tests.builders import demanding, place, reservation, state_of
from tests.unit.scheduling.slots import APART, WEB, wanted, workers

HALF = CeilingLimits({}, lambda *_: None, 50)
"""A ceiling of half of each node."""

TENANTS = reservation("s", node="a", cpu="2")


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (wanted(), {"a": 1}),
        (wanted(2), {"b": 2}),
        (wanted(3), {"a": 1, "b": 2}),
        (wanted(3, placement=demanding(affinity=(APART,)), rules=(WEB,)), {}),
        (wanted(2, placement=demanding(anti_affinity=(APART,)), rules=(WEB,)), {"a": 1, "b": 1}),
    ],
)
def test_a_tenant_gets_no_slot_above_the_ceiling_of_a_node(
    asked: Reservation, expected: dict[str, int]
) -> None:
    two = workers(a="8", b="8")
    state = state_of(*two)
    state.ledger.quotas.ceiling.limit(HALF)
    state.ledger.put(TENANTS)
    assert dict(place(asked, asked.slots, state).parts) == expected


def test_what_is_placed_counts_below_the_ceiling_and_the_reason_names_it() -> None:
    state = state_of(*workers(a="8", b="8"))
    state.ledger.quotas.ceiling.limit(HALF)
    first, second = wanted(4), replace(wanted(), ref=TENANTS.ref, origin="s")
    state.ledger.put(first)
    state.ledger.place(first.ref, place(first, 4, state).parts)
    assert state.ledger.quotas.ceiling.on_nodes["b"]["cpu"] == 4000
    assert place(second, 1, state).why == "0/2 nodes are available: 2 node(s) at the tenantCeiling."
    state.ledger.drop(first.ref)
    assert not state.ledger.quotas.ceiling.on_nodes
    assert place(second, 1, state).parts
