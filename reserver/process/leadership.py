"""Leadership of one replica: its Lease, and the label by which Services find its pod."""

from __future__ import annotations

import asyncio
import socket
import time
from uuid import uuid4

import structlog

from reserver.base.clock import elapsed
from reserver.errors import ApiError, InvalidInput
from reserver.k8s.client import ApiClient
from reserver.k8s.lease import Lease
from reserver.k8s.objects.objects import ObjectList, decode, metadata_of
from reserver.k8s.serving_pod import COMPONENT, SERVING
from reserver.settings.serve import Settings

log = structlog.get_logger(__name__)

LEASE = "reserver"
"""Name of the Lease, in the namespace of the labelled stores."""

_LABELLED = {"labelSelector": f"{SERVING}=true,{COMPONENT}"}
_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_LEADER = ("true", "1")
"""Label and deletion cost of the leader's pod, which makes a ReplicaSet delete it last."""

_LOOK_S = 10.0
_RETRY_S = 1.0


def lease_of(settings: Settings, client: ApiClient) -> Lease | None:
    """Return the Lease that replicas share; None for a single replica."""
    if not settings.leader_elect:
        return None
    identity = f"{socket.gethostname()}_{uuid4()}"
    return Lease(client, (settings.namespace, LEASE), identity, time.time, elapsed)


def label_of(settings: Settings, client: ApiClient) -> LeaderLabel | None:
    """Return the label of the leader's pod; None if no Service selects by it."""
    if not (settings.leader_elect and settings.pod_name):
        return None
    return LeaderLabel(client, settings.namespace, settings.pod_name)


class LeaderLabel:
    """The label ``reserver.io/serving``: on the leader's pod, and on no other.

    It is written with ``pods/status``, which accepts labels: the right to patch pods would also
    allow changing their images.
    """

    def __init__(self, client: ApiClient, namespace: str, pod: str) -> None:
        """Write the labels of a namespace; `pod` is the name of this process's pod."""
        self._client = client
        self._pods = f"/api/v1/namespaces/{namespace}/pods"
        self._own = pod
        self._problem = ""

    async def clear(self) -> None:
        """Remove the label of this pod: its container may have led before it was restarted."""
        while not await self._written(self._own, None):  # noqa: ASYNC110
            await asyncio.sleep(_RETRY_S)

    async def keep(self) -> None:
        """Keep the label on this pod, and off all others, until cancelled."""
        while True:
            pause_s = _LOOK_S if await self._settled() else _RETRY_S
            await asyncio.sleep(pause_s)

    async def _settled(self) -> bool:
        try:
            found = decode(ObjectList, await self._client.get(self._pods, _LABELLED)).items
            labelled = [metadata_of(each).name for each in found or ()]
        except (ApiError, InvalidInput) as exc:
            self._log_problem(exc)
            return False
        done = self._own in labelled or await self._written(self._own, _LEADER)
        others = [await self._written(name, None) for name in labelled if name != self._own]
        return done and all(others)

    async def _written(self, pod: str, state: tuple[str, str] | None) -> bool:
        label, cost = state or (None, None)
        metadata = {"labels": {SERVING: label}, "annotations": {_DELETION_COST: cost}}
        try:
            await self._client.patch(f"{self._pods}/{pod}/status", {"metadata": metadata})
        except ApiError as exc:
            if exc.is_absent and pod != self._own:
                return True
            self._log_problem(exc)
            return exc.is_absent
        self._problem = ""
        return True

    def _log_problem(self, error: Exception) -> None:
        if str(error) != self._problem:  # One line for each new reason, not for each attempt.
            log.warning("leader's pod cannot be labelled, retrying", why=str(error))
        self._problem = str(error)
