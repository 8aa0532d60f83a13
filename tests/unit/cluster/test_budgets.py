"""PodDisruptionBudgets protect pods as the eviction API does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from reserver.cluster.budgets import Budgets
from reserver.cluster.pod import Pod, PodHealth
from reserver.k8s.objects.budgets import BudgetObject
from reserver.k8s.objects.objects import decode
from reserver.k8s.objects.pods import PodObject
from tests.builders import pod

WEB = {"app": "web"}
READY = {"type": "Ready", "status": "True"}
NOT_READY = {"type": "Ready", "status": "False", "reason": "ContainersNotReady"}


def budgets(*statuses: dict[str, int], policy: str | None = None) -> Budgets:
    spec = {"selector": {"matchLabels": WEB}, "unhealthyPodEvictionPolicy": policy}
    documents = [
        {"metadata": {"name": f"b{n}", "namespace": "shop"}, "spec": spec, "status": status}
        for n, status in enumerate(statuses)
    ]
    return Budgets(
        decode(BudgetObject, msgspec.json.encode(document)).value() for document in documents
    )


def web(health: PodHealth) -> Pod:
    return replace(pod("web-0", node="worker-1", labels=WEB), health=health)


@pytest.mark.parametrize(
    ("phase", "conditions", "health"),
    [
        ("Running", [NOT_READY, READY], PodHealth.READY),
        ("Running", [NOT_READY], PodHealth.UNREADY),
        ("Running", [], PodHealth.UNREADY),
        ("Unknown", [NOT_READY], PodHealth.UNREADY),
        ("Pending", [NOT_READY], PodHealth.NOT_RUNNING),
        ("Failed", [], PodHealth.NOT_RUNNING),
        ("Succeeded", [], PodHealth.NOT_RUNNING),
    ],
)
def test_the_health_of_a_pod_follows_from_phase_and_ready(
    phase: str, conditions: list[dict[str, Any]], health: PodHealth
) -> None:
    document = {
        "metadata": {"name": "web-0", "namespace": "shop", "uid": "1"},
        "spec": {"nodeName": "worker-1", "containers": []},
        "status": {"phase": phase, "conditions": conditions},
    }
    assert decode(PodObject, msgspec.json.encode(document)).value().health is health


ENOUGH = {"disruptionsAllowed": 0, "currentHealthy": 2, "desiredHealthy": 2}
TOO_FEW = {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 2}
NOT_COUNTED = {"disruptionsAllowed": 0}


@pytest.mark.parametrize(
    ("health", "policy", "status", "is_refused"),
    [
        (PodHealth.READY, None, ENOUGH, True),
        (PodHealth.READY, "AlwaysAllow", ENOUGH, True),
        (PodHealth.UNREADY, None, ENOUGH, False),
        (PodHealth.UNREADY, "IfHealthyBudget", ENOUGH, False),
        (PodHealth.UNREADY, "IfHealthyBudget", TOO_FEW, True),
        (PodHealth.UNREADY, None, NOT_COUNTED, True),
        (PodHealth.UNREADY, "AlwaysAllow", TOO_FEW, False),
        (PodHealth.UNREADY, "FutureValue", ENOUGH, True),
        (PodHealth.NOT_RUNNING, None, TOO_FEW, False),
    ],
)
def test_an_unready_pod_may_leave_where_the_eviction_api_lets_it(
    *, health: PodHealth, policy: str | None, status: dict[str, int], is_refused: bool
) -> None:
    left = budgets(status, policy=policy)

    assert bool(left.refusal(web(health))) is is_refused


def test_an_eviction_that_needs_no_budget_spends_none() -> None:
    left = budgets({"disruptionsAllowed": 1, "currentHealthy": 3, "desiredHealthy": 2})
    left.spend(web(PodHealth.UNREADY))
    left.spend(web(PodHealth.NOT_RUNNING))
    assert not left.refusal(web(PodHealth.READY))

    left.spend(web(PodHealth.READY))

    assert left.refusal(web(PodHealth.READY))
    assert not left.refusal(web(PodHealth.UNREADY))


def test_two_budgets_refuse_an_unready_pod_as_well() -> None:
    left = budgets(ENOUGH, ENOUGH, policy="AlwaysAllow")

    assert "2 PodDisruptionBudgets" in left.refusal(web(PodHealth.UNREADY))
    assert not left.refusal(web(PodHealth.NOT_RUNNING))


def test_no_budget_protects_a_pod_that_is_being_deleted() -> None:
    left = budgets({"disruptionsAllowed": 1})
    leaving = replace(web(PodHealth.READY), terminating=True)
    left.spend(leaving)
    assert not left.refusal(web(PodHealth.READY))

    left.spend(web(PodHealth.READY))

    assert not left.refusal(leaving)
