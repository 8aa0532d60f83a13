"""Evicts pods if their budgets allow it: pkg/registry/core/pod/storage/eviction.go."""

from __future__ import annotations

from dataclasses import replace
from http import HTTPStatus

from reserver_demo.apiserver.binding import set_condition
from reserver_demo.apiserver.deletion import DeleteOptions, check_record, delete
from reserver_demo.apiserver.registry import Registry
from reserver_demo.apiserver.resources import BUDGET_RESOURCE, POD_RESOURCE
from reserver_demo.apiserver.selectors import selects
from reserver_demo.apiserver.status import Json, StatusError, bad_request
from reserver_demo.apiserver.store import Key, Stored

_VIOLATED = "Cannot evict pod as it would violate the pod's disruption budget."
_RETRY_AFTER_S = 10


def evict(registry: Registry, key: Key, eviction: Json, options: DeleteOptions) -> None:
    """Delete a pod gracefully, with the condition DisruptionTarget.

    Raises:
        StatusError: 400, 404, 409 for a failed precondition, or 429 for a budget.
    """
    if eviction.get("metadata", {}).get("name") != key.name:
        raise bad_request("name in URL does not match name in Eviction object")
    stored = registry.get(POD_RESOURCE, key)
    check_record(POD_RESOURCE, stored, options)
    _use_budget(registry, stored, dry_run=options.dry_run)
    if not options.dry_run:
        pod = stored.copy()
        why = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",
        }
        set_condition(registry, pod, why)
        registry.write(POD_RESOURCE, pod, dry_run=False)
    delete(registry, POD_RESOURCE, key, replace(options, revision=None))


def _use_budget(registry: Registry, pod: Stored, *, dry_run: bool) -> None:
    """Count an eviction against the pod's budget, if any.

    Raises:
        StatusError: 429 if the budget allows no eviction, 500 for several budgets.
    """
    content = pod.content
    if content["status"].get("phase") in {"Pending", "Succeeded", "Failed"}:
        return
    if "deletionTimestamp" in content["metadata"]:
        return
    found = _budgets(registry, content)
    if len(found) > 1:
        problem = "This pod has more than one PodDisruptionBudget, which the eviction subresource"
        raise StatusError(HTTPStatus.INTERNAL_SERVER_ERROR, "", f"{problem} does not support.")
    for budget in found:
        _count(registry, budget, dry_run=dry_run)


def _budgets(registry: Registry, pod: Json) -> list[Stored]:
    metadata = pod["metadata"]
    return [
        budget
        for budget in registry.store.collection(BUDGET_RESOURCE.plural).items()
        if budget.key.namespace == metadata["namespace"]
        and "selector" in budget.content["spec"]
        and selects(budget.content["spec"]["selector"], metadata.get("labels", {}))
    ]


def _count(registry: Registry, budget: Stored, *, dry_run: bool) -> None:
    name, status = budget.key.name, budget.content["status"]
    if status.get("observedGeneration", 0) < budget.content["metadata"]["generation"]:
        why = f"The disruption budget {name} is still being processed by the server."
        raise _too_many(why, _RETRY_AFTER_S)
    if status["disruptionsAllowed"] <= 0:
        wanted, there = status["desiredHealthy"], status["currentHealthy"]
        raise _too_many(
            f"The disruption budget {name} needs {wanted} healthy pods and has {there} currently"
        )
    changed = budget.copy()
    changed["status"]["disruptionsAllowed"] -= 1
    registry.write(BUDGET_RESOURCE, changed, dry_run=dry_run)


def _too_many(why: str, retry_after_s: int = 0) -> StatusError:
    details: Json = {"causes": [{"reason": "DisruptionBudget", "message": why}]}
    if retry_after_s:
        details["retryAfterSeconds"] = retry_after_s
    return StatusError(HTTPStatus.TOO_MANY_REQUESTS, "TooManyRequests", _VIOLATED, details)
