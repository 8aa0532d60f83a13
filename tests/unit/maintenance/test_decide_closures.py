"""Nodes that are closed to placements because of a window or their conditions."""

import pytest

from reserver.cluster.node import NodeCondition
from reserver.maintenance.decide import COMING, IN_HAND, NOT_READY, MaintenanceDecision
from reserver.maintenance.model import REASON
from reserver.scheduling.closures import Closure
from tests.unit.maintenance.deciding import (
    DONE,
    DRAIN_AT,
    START,
    A,
    B,
    decided,
    held,
    node,
    not_ready,
)


def closures_of(name: str, found: MaintenanceDecision) -> list[Closure]:
    return [closure for closure, nodes in found.closures.items() if name in nodes]


def test_closures_are_firm_where_all_nodes_go_at_once() -> None:
    rolling, whole = decided([A, B], DRAIN_AT - 1), decided([A], DRAIN_AT - 1)
    assert [each.is_firm for each in closures_of("a", rolling)] == [False]
    assert [each.is_firm for each in closures_of("a", whole)] == [True]
    (coming,) = rolling.closures
    assert (coming.why, coming.since) == (COMING, DRAIN_AT)
    assert rolling.closures[coming] == {"a", "b"}
    now = closures_of("a", decided([held("a"), B]))
    assert [(each.why, each.is_vacated) for each in now] == [(IN_HAND, True)]
    assert not closures_of("a", decided([held("a", DONE), B]))


@pytest.mark.parametrize(
    ("reason", "status", "is_closed"),
    [("NodeProblem", "True", True), ("NodeProblem", "False", False), (REASON, "True", False)],
)
def test_conditions_of_others_close_a_node(reason: str, status: str, *, is_closed: bool) -> None:
    seen = node("a", conditions={"DrainInProgress": NodeCondition(status, reason)})
    found = decided([seen], windows={})
    assert any(each.is_vacated for each in closures_of("a", found)) is is_closed


def test_a_node_that_is_not_ready_for_a_while_closes() -> None:
    seen = node("a", **not_ready(since=START))
    before = decided([seen], START + 299, {}, not_ready_s=300)
    assert not before.closures
    assert before.next_at == START + 300
    after = decided([seen], START + 300, {}, not_ready_s=300)
    assert [each.why for each in closures_of("a", after)] == [NOT_READY]
    assert not decided([seen], START + 300, {}).closures
