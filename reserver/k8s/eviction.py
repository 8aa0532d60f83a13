"""One request to evict a pod, and what the API server answers to it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from http import HTTPStatus
from typing import NamedTuple

from reserver.cluster.pod import PodName
from reserver.errors import ApiError
from reserver.k8s.client import ApiClient

_IN_BACKGROUND = ("Eviction triggered evacuation", "Evacuation in progress")
"""What a webhook answers that moves the pod by its own means, such as KubeVirt's."""

_MANY_BUDGETS = "more than one PodDisruptionBudget"
"""What the API server says of a pod that it can never evict (pkg/registry/core/pod/storage)."""

_OTHER_UID = "UID in precondition"
"""What it says of a pod that has taken the place of another (apiserver/pkg/storage/errors.go)."""


class Reply(Enum):
    """The API server's answer to an eviction request."""

    ACCEPTED = auto()
    """The pod ends."""

    IN_BACKGROUND = auto()
    """A webhook will move it by its own means."""

    GONE = auto()
    """There is no such pod, or another one has its name."""

    BLOCKED = auto()
    """Its PodDisruptionBudget does not allow it now."""

    REFUSED = auto()
    """It will not be allowed."""

    OVERTAKEN = auto()
    """Somebody wrote the pod meanwhile, so that nothing was decided."""

    UNSURE = auto()
    """No answer: it may have been carried out."""


class Eviction(NamedTuple):
    """A request to evict a pod: where it goes, and what it says."""

    path: str
    body: dict[str, object]


def eviction(
    pod: PodName, uid: str, grace_period_s: int | None, annotations: Mapping[str, str]
) -> Eviction:
    """Return the request to evict a pod, and no later one of its name.

    The annotations tell webhooks who asks and why. Without a grace period the pod's own counts.
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
    """Send a request once; return the reply, and what it says."""
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
