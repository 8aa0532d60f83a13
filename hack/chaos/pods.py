"""The storm's pods, as bodies for the API server."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from typing import Any

from hack.bed.api import Api, ApiFault
from hack.chaos.book import SeenPod
from hack.chaos.scale import FILL, MEMORY_PER_CPU, NODE_CPU, POD_CPU

CLAIMS = "reserver.io/claims"
"""On a pod: the reservations that it has claimed."""

FORGED = "reserver.io/chaos-forged"
"""On a pod whose claims annotation is forged."""

_PAUSE = 0.2  # seconds, after a request without an answer
_SMALLEST = min(POD_CPU)


class Pods:
    """Creates and deletes the pods of one namespace; methods may be called from any thread.

    Args:
        api: client of the API server.
        namespace: namespace of the pods.
        scheduler: scheduler of the pods.
        labels: labels of their nodes.
        stop: ends the wait for an API server that is away.

    Attributes:
        namespace: namespace of the pods.
        nodes: labels of the nodes that they may land on.
    """

    def __init__(
        self,
        api: Api,
        namespace: str,
        scheduler: str,
        labels: dict[str, str],
        stop: threading.Event,
    ) -> None:
        self._api = api
        self.namespace = namespace
        self.nodes = labels
        self._path = f"/api/v1/namespaces/{namespace}/pods"
        self._sets = f"/apis/apps/v1/namespaces/{namespace}/replicasets"
        self._spec = {"schedulerName": scheduler, "nodeSelector": labels}
        self._stop = stop

    def create(self, name: str, cpu: int, node: str | None = None) -> None:
        """Create a pod of `cpu` millicores, bound to `node` if it is given."""
        self._insist(lambda: self._api.create(self._path, self._body(name, cpu, node)))

    def forge(self, name: str, node: str, labels: dict[str, str], said: dict[str, str]) -> None:
        """Create a pod without requests on a node, with the given annotations."""
        body = self._body(name, 0, node)
        body["metadata"] |= {"labels": labels, "annotations": said | {FORGED: ""}}
        self._insist(lambda: self._api.create(self._path, body))

    def claims(self, name: str) -> str:
        """Return a pod's claims annotation, empty without one; ApiFault if it cannot be read."""
        metadata = self._api.get(f"{self._path}/{name}")["metadata"]
        claims: str = (metadata.get("annotations") or {}).get(CLAIMS, "")
        return claims

    def delete(self, pod: SeenPod, grace_seconds: int = 0) -> None:
        """Delete a pod: with a grace period KWOK ends it, a moment later."""
        self._insist(lambda: self._api.delete(f"{self._path}/{pod.name}", grace_seconds, pod.uid))

    def remove(self, name: str) -> None:
        """Delete a pod at once, whichever has that name."""
        self._insist(lambda: self._api.delete(f"{self._path}/{name}", grace_seconds=0))

    def replicate(self, name: str, cpu: int, count: int, labels: dict[str, str]) -> None:
        """Create a ReplicaSet of `count` pods, of `cpu` millicores each."""
        own = {"reserver.io/chaos-set": name}
        template = self._body("", cpu, None) | {"metadata": {"labels": own | labels}}
        spec = {"replicas": count, "selector": {"matchLabels": own}, "template": template}
        body = {"metadata": {"name": name}, "spec": spec}
        self._insist(lambda: self._api.create(self._sets, body))

    def disband(self, name: str) -> None:
        """Delete a ReplicaSet and so its pods."""
        self._insist(lambda: self._api.delete(f"{self._sets}/{name}"))

    def _insist(self, request: Callable[[], None]) -> None:
        while not self._stop.is_set():
            try:
                request()
            except ApiFault as fault:
                if fault.is_definite:
                    raise
                self._stop.wait(_PAUSE)
            else:
                return

    def _body(self, name: str, cpu: int, node: str | None) -> dict[str, Any]:
        requests = {"cpu": f"{cpu}m", "memory": str(cpu * MEMORY_PER_CPU)}
        container = {"name": "main", "image": "none", "resources": {"requests": requests}}
        spec: dict[str, Any] = {**self._spec, "containers": [container]}
        if node:
            spec["nodeName"] = node
        return {"metadata": {"name": name}, "spec": spec}


def filling(rng: random.Random) -> Iterator[int]:
    """Yield the sizes, in millicores, of pods that fill one node up to `FILL`."""
    left = int(FILL * NODE_CPU)
    while left >= _SMALLEST:
        cpu = rng.choice([size for size in POD_CPU if size <= left])
        yield cpu
        left -= cpu
