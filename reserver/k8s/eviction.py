"""A request to evict a pod, and the API server's reply."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from http import HTTPStatus
from typing import NamedTuple

from reserver.cluster.pod import PodName
from reserver.errors import ApiError
from reserver.k8s.client import ApiClient

_IN_BACKGROUND = ("Eviction triggered evacuation", "Evacuation in progress")
"""Replies of a webhook that moves the pod by other means, such as KubeVirt's."""

_MANY_BUDGETS = "more than one PodDisruptionBudget"
"""The reply for a pod that can never be evicted (pkg/registry/core/pod/storage)."""

_OTHER_UID = "UID in precondition"
"""The reply for a new pod with the name of the old one (apiserver/pkg/storage/errors.go)."""


class Reply(Enum):
    """The API server's answer to an eviction request."""

    ACCEPTED = auto()
    """The pod is being deleted."""

    IN_BACKGROUND = auto()
    """A webhook will move the pod by other means."""

    GONE = auto()
    """The pod does not exist, or another pod has its name."""

    BLOCKED = auto()
    """The pod's PodDisruptionBudget does not allow the eviction now."""

    REFUSED = auto()
    """The eviction will never be allowed."""

    OVERTAKEN = auto()
    """Another client changed the pod concurrently, so the eviction was not decided."""

    UNSURE = auto()
    """There was no answer: the eviction may have been carried out."""


class Eviction(NamedTuple):
    """A request to evict a pod: path and body."""

    path: str
    body: dict[str, object]


def eviction(
    pod: PodName, uid: str, grace_period_s: int | None, annotations: Mapping[str, str]
) -> Eviction:
    """Return the request to evict a pod, but not a later pod of that name.

    The annotations show webhooks the origin and the reason. Without `grace_period_s` the pod's own
    grace period applies.
    """
    options: dict[str, object] = {"preconditions": {"uid": uid}}
    if grace_period_s is not None:
        options["gracePeriodSeconds"] = grace_period_s
    body: dict[str, object] = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {
            "name": pod.name,
            "namespace": pod.namespace,
            "annotations": dict(annotations),
        },
        "deleteOptions": options,
    }
    return Eviction(f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/eviction", body)


async def evict(client: ApiClient, request: Eviction) -> tuple[Reply, str]:
    """Send a request once; return the reply, and the error message."""
    try:
        await client.create(request.path, request.body)
    except ApiError as exc:
        return _reply(exc), str(exc)
    return Reply.ACCEPTED, ""


def _reply(exc: ApiError) -> Reply:
    if exc.is_absent or _OTHER_UID in exc.message:
        return Reply.GONE
    if exc.status == HTTPStatus.TOO_MANY_REQUESTS:
        is_begun = any(text in exc.message for text in _IN_BACKGROUND)
        return Reply.IN_BACKGROUND if is_begun else Reply.BLOCKED
    if _MANY_BUDGETS in exc.message or (exc.is_definite and not exc.is_conflict):
        return Reply.REFUSED
    return Reply.OVERTAKEN if exc.is_definite else Reply.UNSURE
