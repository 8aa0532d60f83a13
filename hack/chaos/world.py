"""The world of a storm: full nodes, and two namespaces."""

from __future__ import annotations

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

from hack.bed.api import Api, ApiFault
from hack.bed.install import LIST_STORE, SPEC_STORE
from hack.chaos.forms import OBJECT_STORE
from hack.chaos.groups import WHOLE
from hack.chaos.pods import Pods, filling
from hack.chaos.scale import Scale
from hack.chaos.store import objects_path, path_of
from hack.controlplane.nodes import create_nodes

SCHEDULER = "chaos-scheduler"
"""The scheduler of the storm's pods, which no other test uses."""

LABEL = "reserver.io/chaos"

_CONNECTIONS = 8
_WELCOME_SECONDS = 30.0
_LONGEST_SECONDS = 120.0


class World:
    """Full nodes and two namespaces of their own, as a context manager.

    Attributes:
        nodes: names of the nodes, without those for whole-node holds.
        pods: creates and deletes pods on these nodes.
        strangers: creates and deletes pods of the second namespace there.
    """

    def __init__(
        self, kubeconfig: Path, api: Api, scale: Scale, seed: int, stop: threading.Event
    ) -> None:
        self._kubeconfig = kubeconfig
        self._api = api
        self._scale = scale
        self._rng = random.Random(seed)  # noqa: S311
        self._stop = stop
        self.name = f"chaos-{time.time_ns() // 1_000_000:x}"
        labels = {LABEL: self.name}
        self.pods = Pods(api, self.name, SCHEDULER, labels, stop)
        self.strangers = Pods(api, f"{self.name}-strangers", SCHEDULER, labels, stop)
        self.nodes: list[str] = []
        self._empty: list[str] = []

    def __enter__(self) -> Self:
        """Create nodes and namespaces, and pods that fill each node."""
        for namespace in self._namespaces:
            self._api.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
        prefix, labels = f"{self.name}-w", {LABEL: self.name}
        self.nodes = create_nodes(self._kubeconfig, self._scale.nodes, prefix=prefix, labels=labels)
        if count := sum(self._scale.whole_groups):
            prefix, labels = f"{self.name}-whole", labels | WHOLE
            self._empty = create_nodes(self._kubeconfig, count, prefix=prefix, labels=labels)
        for namespace in self._namespaces:
            self._await_account(namespace)
        sizes = ((node, cpu) for node in self.nodes for cpu in filling(self._rng))
        with ThreadPoolExecutor(_CONNECTIONS) as pool:
            jobs = [
                pool.submit(self.pods.create, f"fill-{number}", cpu, node)
                for number, (node, cpu) in enumerate(sizes, 1)
            ]
            for job in jobs:
                job.result()
        return self

    def __exit__(self, *_: object) -> None:
        """Delete them, and the stores' entries for these nodes."""
        for namespace in self._namespaces:
            self._api.delete(f"/apis/apps/v1/namespaces/{namespace}/replicasets")
            self._delete_pods(namespace)
            self._api.delete(f"/api/v1/namespaces/{namespace}")
        for node in (*self.nodes, *self._empty):
            self._api.delete(f"/api/v1/nodes/{node}")
        for store in (SPEC_STORE, LIST_STORE):
            data = self._api.get(path_of(store)).get("data") or {}
            mine = [key for key in data if key.startswith(self.name)]
            self._api.patch(path_of(store), {"data": dict.fromkeys(mine)})
        objects = objects_path(OBJECT_STORE[0])
        for item in self._api.get(objects)["items"]:
            if item["metadata"]["name"].startswith(self.name):
                self._api.delete(f"{objects}/{item['metadata']['name']}")

    @property
    def _namespaces(self) -> tuple[str, str]:
        return self.name, self.strangers.namespace

    def _delete_pods(self, namespace: str) -> None:
        """Delete all pods; on a busy machine thousands take longer than one request may."""
        pods = f"/api/v1/namespaces/{namespace}/pods"
        deadline = time.monotonic() + _LONGEST_SECONDS
        while True:
            try:
                return self._api.delete(pods, grace_seconds=0)
            except ApiFault as fault:
                if fault.status or time.monotonic() > deadline:
                    raise

    def _await_account(self, namespace: str) -> None:
        """Wait for a namespace's service account, without which pods are refused."""
        deadline = time.monotonic() + _WELCOME_SECONDS
        while True:
            try:
                self._api.get(f"/api/v1/namespaces/{namespace}/serviceaccounts/default")
            except ApiFault:
                if time.monotonic() > deadline:
                    raise
                self._stop.wait(0.05)
            else:
                return
