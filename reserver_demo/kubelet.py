"""The kubelets of all nodes: bound pods run at once, deleted pods vanish at once.

There are no real containers. A pod whose first container has the command `sleep SECONDS`, `true` or
`false` ends accordingly; other pods run until they are deleted.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import NamedTuple

import msgspec
import structlog

from reserver.errors import ApiError
from reserver_demo.apiserver.status import Json
from reserver_demo.client import STRATEGIC_PATCH, ApiClient
from reserver_demo.clock import Clock, rfc3339
from reserver_demo.informer import Informer

log = structlog.get_logger()


class PodEnding(NamedTuple):
    """The end of a pod: seconds after its start, and exit status."""

    after_s: float
    exit_status: int


class Kubelet:
    """The kubelet of every node."""

    def __init__(self, client: ApiClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._ending: set[str] = set()

    async def run(self) -> None:
        """Manage the pods until cancelled."""
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
            elif pod["status"].get("phase") == "Running" and (end := ending(pod)):
                await self._end(pod, path, end)
        except ApiError as error:
            # The pod was deleted or changed, so another event follows.
            if error.status not in {HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT}:
                log.warning("pod_not_settled", pod=metadata["name"], error=str(error))

    async def _end(self, pod: Json, path: str, end: PodEnding) -> None:
        uid = pod["metadata"]["uid"]
        if uid in self._ending:
            return
        self._ending.add(uid)
        try:
            await self._clock.sleep(end.after_s)
            status = ended_status(pod, end, rfc3339(self._clock.now()))
            patch = {"metadata": {"uid": uid}, "status": status}
            await self._client.send("PATCH", f"{path}/status", patch, media=STRATEGIC_PATCH)
        finally:
            self._ending.discard(uid)


def _final_deletion(uid: str) -> Json:
    return {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}


def running_status(pod: Json, now: str) -> Json:
    """Return the status of a pod with running, ready containers."""
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


def ending(pod: Json) -> PodEnding | None:
    """Return the end of a pod from the command of its first container; None if it runs on.

    A pod whose `restartPolicy` would restart the container runs on.
    """
    container = pod["spec"]["containers"][0]
    match [*container.get("command", ()), *container.get("args", ())]:
        case ["sleep", seconds] if seconds.isdigit():
            end = PodEnding(float(seconds), 0)
        case ["true"]:
            end = PodEnding(0.0, 0)
        case ["false"]:
            end = PodEnding(0.0, 1)
        case _:
            return None
    again = {"Always"} if end.exit_status == 0 else {"Always", "OnFailure"}
    return None if pod["spec"]["restartPolicy"] in again else end


def ended_status(pod: Json, end: PodEnding, now: str) -> Json:
    """Return the status of a pod with ended containers."""
    terminated = {
        "exitCode": end.exit_status,
        "reason": "Error" if end.exit_status else "Completed",
        "startedAt": pod["status"]["startTime"],
        "finishedAt": now,
    }
    return {
        "phase": "Failed" if end.exit_status else "Succeeded",
        "conditions": [
            {"type": kind, "status": "False", "reason": "PodCompleted", "lastTransitionTime": now}
            for kind in ("Ready", "ContainersReady")
        ],
        "containerStatuses": [
            {**each, "ready": False, "started": False, "state": {"terminated": terminated}}
            for each in pod["status"]["containerStatuses"]
        ],
    }
