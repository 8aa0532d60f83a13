"""The ceiling on all tenants, from settings and nodes to limits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reserver.process.tenant_ceiling import TenantCeiling
from reserver.scheduling.state import State
from reserver.settings.serve import Settings
from tests.builders import amounts, node, state_of


def of(settings: Settings) -> tuple[TenantCeiling, State]:
    offered = {"cpu": "4", "memory": "8Gi", "example.com/gpu": "1"}
    names = ("worker-0", "worker-1", "worker-2")
    state = state_of(*(replace(node(name), allocatable=amounts(offered)) for name in names))
    return TenantCeiling(state, settings), state


BUFFERS = {"keep_held_nodes": True, "capacity_buffers": True}


@pytest.mark.parametrize(
    ("given", "share"),
    [
        ({}, "80%"),
        ({"tenant_ceiling_cluster": "none"}, "none"),
        ({"tenant_ceiling_cluster": "5%"}, "5%"),
        (BUFFERS, "none"),
        (BUFFERS | {"tenant_ceiling_cluster": "50%"}, "50%"),
    ],
)
def test_there_is_a_ceiling_unless_autoscalers_are_asked_for_nodes(
    given: dict[str, object], share: str
) -> None:
    assert Settings(**given).cluster_ceiling == share  # type: ignore[arg-type]


def test_a_share_of_devices_and_whole_nodes_is_rounded_up() -> None:
    ceiling, state = of(Settings(tenant_ceiling_node="80%"))
    ceiling.look()
    limits = state.ledger.quotas.ceiling.limits
    assert limits.cluster["cpu"] == 9600
    assert limits.cluster["nodes"] == 3
    assert limits.cluster["example.com/gpu"] == 3
    assert limits.of_node("worker-0", "example.com/gpu") == 1
    assert limits.of_node("worker-0", "cpu") == 3200


def test_limits_follow_nodes_and_settings() -> None:
    ceiling, state = of(Settings())
    ceiling.look()
    quota = state.ledger.quotas.ceiling.quota
    assert quota.hard["held.cpu"] == 9600
    state.node_seen(node("worker-3", cpu="8"))
    ceiling.look()
    assert state.ledger.quotas.ceiling.quota.hard["held.cpu"] == 16000
    ceiling.follow(Settings(tenant_ceiling_cluster="none"))
    ceiling.look()
    assert not state.ledger.quotas.ceiling.quota.hard
