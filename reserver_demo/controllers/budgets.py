"""PodDisruptionBudgets: the allowed disruptions (pkg/controller/disruption)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from reserver_demo.apiserver.selectors import selects
from reserver_demo.apiserver.status import Json
from reserver_demo.controllers.effects import Change, key_of, with_conditions
from reserver_demo.controllers.made_pods import controller_uid, is_active, is_ready
from reserver_demo.controllers.percent import of_total


def reconciled(
    budget: Json, pods: Sequence[Json], scales: Mapping[str, int], now: str
) -> Iterator[Change]:
    """Yield the status of a budget; `scales` are the desired replicas by UID of the controller."""
    namespace, selector = budget["metadata"]["namespace"], budget["spec"].get("selector")
    chosen = [
        pod
        for pod in pods
        if selector is not None
        and pod["metadata"]["namespace"] == namespace
        and selects(selector, pod["metadata"].get("labels", {}))
    ]
    expected, desired = _expected_and_desired(budget["spec"], chosen, scales)
    healthy = sum(is_active(pod) and is_ready(pod) for pod in chosen)
    allowed = max(healthy - desired, 0) if expected else 0
    generation = budget["metadata"]["generation"]
    condition = {
        "type": "DisruptionAllowed",
        "status": "True" if allowed else "False",
        "reason": "SufficientPods" if allowed else "InsufficientPods",
        "message": "",
        "observedGeneration": generation,
    }
    status = {
        "observedGeneration": generation,
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
        "conditions": with_conditions(budget["status"], [condition], now),
    }
    yield Change("poddisruptionbudgets", key_of(budget), {"status": status}, "status")


def _expected_and_desired(
    spec: Json, chosen: Sequence[Json], scales: Mapping[str, int]
) -> tuple[int, int]:
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    if isinstance(least, int):
        return len(chosen), least
    expected = sum(scales.get(uid, 0) for uid in {controller_uid(pod) for pod in chosen})
    if least is not None:
        return expected, of_total(least, expected, up=True)
    if most is not None:
        return expected, max(expected - of_total(most, expected, up=True), 0)
    return expected, 0
