"""The kubelets of all nodes: bound pods run at once, deleted pods vanish at once."""

from __future__ import annotations

import asyncio
from http import HTTPStatus

import msgspec
import structlog

from reserver.errors import ApiError
from reserver_demo.apiserver.status import Json
from reserver_demo.client import STRATEGIC_PATCH, ApiClient
from reserver_demo.clock import Clock, rfc3339
from reserver_demo.informer import Informer

log = structlog.get_logger()


class Kubelet:
    """Plays the kubelet of every node."""

    def __init__(self, client: ApiClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock

    async def run(self) -> None:
        """Look after the pods until cancelled."""
        async with asyncio.TaskGroup() as tasks:

            def act(_: Json | None, pod: Json | None) -> None:
                if pod is not None and pod["spec"].get("nodeName"):
                    tasks.create_task(self._settle(pod))

            informer = Informer(self._client, "/api/v1/pods", msgspec.json.decode, act, self._clock)
            await informer.run()

    async def _settle(self, pod: Json) -> None:
        metadata = pod["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        try:
            if "deletionTimestamp" in metadata:
                await self._client.send("DELETE", path, _final_deletion(metadata["uid"]))
            elif pod["status"].get("phase") == "Pending":
                status = running_status(pod, rfc3339(self._clock.now()))
                patch = {"metadata": {"uid": metadata["uid"]}, "status": status}
                await self._client.send("PATCH", f"{path}/status", patch, media=STRATEGIC_PATCH)
        except ApiError as error:
            # It went, or changed: then there is another event to act on.
            if error.status not in {HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT}:
                log.warning("pod_not_settled", pod=metadata["name"], error=str(error))


def _final_deletion(uid: str) -> Json:
    return {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}


def running_status(pod: Json, now: str) -> Json:
    """Return the status of a pod whose containers run and are ready."""
    conditions = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")
    return {
        "phase": "Running",
        "startTime": now,
        "conditions": [
            {"type": kind, "status": "True", "lastTransitionTime": now} for kind in conditions
        ],
        "containerStatuses": [
            {
                "name": container["name"],
                "image": container["image"],
                "imageID": "",
                "ready": True,
                "started": True,
                "restartCount": 0,
                "state": {"running": {"startedAt": now}},
            }
            for container in pod["spec"]["containers"]
        ],
    }
