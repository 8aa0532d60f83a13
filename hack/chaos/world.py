"""Where a storm takes place: full nodes, a namespace, the stores, and reserver's rights."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

import yaml

from hack.chaos.api import Api, ApiFault
from hack.chaos.forms import LIST_STORE, OBJECT_STORE, SPEC_STORE
from hack.chaos.pods import Pods, filling
from hack.chaos.scale import Scale
from hack.chaos.store import objects_path, path_of
from hack.controlplane.kubeconfig import kubectl, service_account_kubeconfig
from hack.controlplane.nodes import create_nodes

ROOT = Path(__file__).parents[2]
CRD = ROOT / "scheduler-config/core/crd.yaml"
QUOTA_CRD = ROOT / "scheduler-config/core/crd-quota.yaml"
RBAC = ROOT / "scheduler-config/core/rbac-reserver.yaml"
REQUEST_CRD = ROOT / "tests/e2e/crd-provisioning.yaml"
REQUEST_RBAC = ROOT / "scheduler-config/components/provisioning/rbac.yaml"
SCHEDULER_CONFIG = ROOT / "scheduler-config/base/kube-scheduler.yaml"
SCHEDULER = "chaos-scheduler"
"""Who binds the storm's pods: no other test's scheduler does."""

LABEL = "reserver.io/chaos"

_CONNECTIONS = 8
_WELCOME_SECONDS = 30.0


def install(kubeconfig: Path, folder: Path, *namespaces: str) -> Path:
    """Creates the stores and reserver's service account; returns a kubeconfig of the latter.

    Its rights are those that we ship, and for stores elsewhere those that the docs say: in the
    namespace of the storms' lists, and in those that are given.
    """
    files = (RBAC, REQUEST_RBAC)
    shipped = [document for file in files for document in yaml.safe_load_all(file.read_text())]
    elsewhere = [
        {**document, "metadata": {**document["metadata"], "namespace": namespace}}
        for document in shipped
        for namespace in (LIST_STORE[0], *namespaces)
        if document["kind"] in {"Role", "RoleBinding"}
    ]
    theirs = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": n}} for n in namespaces
    ]
    items = [*_stores(), *theirs, *shipped, *elsewhere]
    manifest = folder / "install.json"
    manifest.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    kubectl(kubeconfig, "apply", "-f", str(manifest))
    for crd in (CRD, QUOTA_CRD, REQUEST_CRD):
        kubectl(kubeconfig, "apply", "-f", str(crd))
    kinds = (
        "crd/reservations.reserver.io",
        "crd/reservationquotas.reserver.io",
        "crd/provisioningrequests.autoscaling.x-k8s.io",
    )
    kubectl(kubeconfig, "wait", "--for=condition=Established", *kinds)
    path = folder / "reserver-kubeconfig"
    service_account_kubeconfig(kubeconfig, "reserver-system", "reserver", path)
    return path


def _stores() -> Iterator[dict[str, Any]]:
    for namespace, name in (SPEC_STORE, LIST_STORE):
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        labels = {"reserver.io/store": "true"} if (namespace, name) == SPEC_STORE else {}
        metadata = {"namespace": namespace, "name": name, "labels": labels}
        yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


class World:
    """Full nodes and a namespace of their own, as a context manager.

    Attributes:
        nodes: their names.
        pods: what creates and deletes pods there.
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
        self.nodes: list[str] = []

    def __enter__(self) -> Self:
        """Creates them, and pods that fill each node."""
        self._api.create("/api/v1/namespaces", {"metadata": {"name": self.name}})
        prefix, labels = f"{self.name}-w", {LABEL: self.name}
        self.nodes = create_nodes(self._kubeconfig, self._scale.nodes, prefix=prefix, labels=labels)
        self._await_account()
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
        """Deletes them, and what the stores say about these nodes."""
        self._api.delete(f"/apis/apps/v1/namespaces/{self.name}/replicasets")
        pods = f"/api/v1/namespaces/{self.name}/pods"
        self._api.delete(pods, grace_seconds=0)
        self._api.delete(f"/api/v1/namespaces/{self.name}")
        for node in self.nodes:
            self._api.delete(f"/api/v1/nodes/{node}")
        for store in (SPEC_STORE, LIST_STORE):
            data = self._api.get(path_of(store)).get("data") or {}
            mine = [key for key in data if key.startswith(self.name)]
            self._api.patch(path_of(store), {"data": dict.fromkeys(mine)})
        objects = objects_path(OBJECT_STORE[0])
        for item in self._api.get(objects)["items"]:
            if item["metadata"]["name"].startswith(self.name):
                self._api.delete(f"{objects}/{item['metadata']['name']}")

    def _await_account(self) -> None:
        """Pods are refused until the controller manager has given the namespace its account."""
        deadline = time.monotonic() + _WELCOME_SECONDS
        while True:
            try:
                self._api.get(f"/api/v1/namespaces/{self.name}/serviceaccounts/default")
            except ApiFault:
                if time.monotonic() > deadline:
                    raise
                self._stop.wait(0.05)
            else:
                return
