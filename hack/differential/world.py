"""Random clusters on the real control plane, and what its kube-scheduler says about pods there."""

from __future__ import annotations

import json
import random
import urllib.request
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from ssl import create_default_context
from typing import Any

import msgspec

from hack.bed.api import Api
from hack.controlplane.cluster import ControlPlane
from hack.controlplane.scheduler_config import render_scheduler_config
from hack.differential import nodes, pods
from hack.differential.draw import NAMESPACES, Json
from hack.differential.storage import CLASSES, Drawn, storage
from hack.differential.verdict import Verdict, read_message
from hack.differential.witness import Witness
from hack.reserver_process import metrics, wait_for
from reserver.base.pacer import outcome
from reserver.cluster.pod import Pod
from reserver.extender.cluster_watches import (
    claim_view,
    class_view,
    namespace_view,
    node_view,
    pod_view,
    volume_view,
)
from reserver.scheduling.state import State

CONFIG = Path(__file__).with_name("scheduler.yaml")
_CONNECTIONS = 8
_PATIENCE_S = 60.0
_SEEN = 'scheduler_cache_size{type="%s"}'


@contextmanager
def world() -> Iterator[World]:
    """Start a control plane with a kube-scheduler that a witness watches."""
    with ControlPlane(controller_manager=False) as plane, Witness() as witness:
        rendered = plane.folder / "differential.yaml"
        rendered.write_text(
            render_scheduler_config(CONFIG, kubeconfig=plane.kubeconfig, port=witness.port)
        )
        port = plane.start_scheduler(rendered)
        found = World(plane, port, witness)
        found.prepare()
        yield found
        found.close()


class World:
    """One control plane, on which one random cluster after another is built."""

    def __init__(self, plane: ControlPlane, scheduler_port: int, witness: Witness) -> None:
        self._api = Api(plane.kubeconfig)
        self._metrics = f"https://127.0.0.1:{scheduler_port}/metrics"
        self._token = plane.token
        self._ssl = create_default_context(cafile=plane.ca_file)
        self._witness = witness
        self._pool = ThreadPoolExecutor(_CONNECTIONS)

    def close(self) -> None:
        """Closes all connections."""
        self._pool.shutdown()
        self._api.close()

    def prepare(self) -> None:
        """Creates what all clusters share."""
        for name in NAMESPACES:
            self._api.create("/api/v1/namespaces", {"metadata": {"name": name}})
        for one in CLASSES:
            self._api.create("/apis/storage.k8s.io/v1/storageclasses", one)

    def build(self, draw: random.Random, prefix: str) -> tuple[list[str], Drawn]:
        """Builds a random cluster in place of the one before, and waits until it is seen.

        Returns:
            The names of its nodes, and its claims.
        """
        self._wipe()
        names = [f"{prefix}-{number}" for number in range(draw.randint(8, 20))]
        drawn = storage(draw, prefix, names)
        running = list(self._running(draw, names, drawn))
        for name in NAMESPACES:
            self._api.patch(f"/api/v1/namespaces/{name}", nodes.namespace(draw, name))
        self._create("/api/v1/persistentvolumes", drawn.volumes)
        self._create_in_namespaces("persistentvolumeclaims", drawn.claims)
        for namespace, name in drawn.lost:
            path = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}/status"
            self._api.patch(path, {"status": {"phase": "Lost"}})
        for namespace, name in drawn.going:  # A finalizer keeps them.
            path = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}"
            self._api.delete(path)
        self._create("/api/v1/nodes", [nodes.node(draw, name) for name in names])
        self._create_in_namespaces("pods", running)
        finished = self._end_some(draw, running)
        known = {pod["spec"]["nodeName"] for pod in running if pod not in finished}
        self._wait_seen(len(known.union(names)), len(running) - len(finished))
        return names, drawn

    def ask(self, asked: list[Json]) -> dict[str, Verdict]:
        """Creates pending pods and returns what kube-scheduler says of each, by name."""
        self._create_in_namespaces("pods", asked)
        names = {pod["metadata"]["name"] for pod in asked}
        verdicts: dict[str, Verdict] = {}

        def is_judged() -> bool:
            for item in self._list("pods"):
                if item["metadata"]["name"] in names:
                    verdict = self._verdict(item)
                    if verdict is not None:
                        verdicts[item["metadata"]["name"]] = verdict
            return len(verdicts) == len(names)

        wait_for(is_judged, f"{len(names)} pods are judged", _PATIENCE_S)
        return verdicts

    def state(self) -> tuple[State, dict[str, Pod]]:
        """Returns the cluster as reserver sees it, and the pods to be placed, by name."""
        state = State()
        snapshot, kept = state.snapshot, state.snapshot.storage
        views: Iterable[tuple[Any, str]] = (
            (namespace_view(snapshot), "/api/v1/namespaces"),
            (node_view(state), "/api/v1/nodes"),
            (pod_view(state), "/api/v1/pods"),
            (claim_view(kept), "/api/v1/persistentvolumeclaims"),
            (volume_view(kept), "/api/v1/persistentvolumes"),
            (class_view(kept), "/apis/storage.k8s.io/v1/storageclasses"),
        )
        for view, path in views:
            items = [
                msgspec.Raw(json.dumps(item).encode()) for item in self._api.get(path)["items"]
            ]
            view.list_began()
            for item in items:
                outcome(view.listed(item))
            outcome(view.list_ended(0))
            if view.unreadable:
                message = f"{view.unreadable} objects of {path} cannot be read"
                raise AssertionError(message)
        pending = {pod.name.name: pod for pod in state.pods.values() if not pod.node}
        return state, pending

    def _verdict(self, pod: Json) -> Verdict | None:
        conditions = pod["status"].get("conditions", ())
        said = [c for c in conditions if c["type"] == "PodScheduled" and c["status"] == "False"]
        if not said:
            return None
        names = self._witness.seen.get(pod["metadata"]["uid"])
        return read_message(said[0]["message"]) if names is None else Verdict(nodes=names)

    def _running(self, draw: random.Random, names: list[str], drawn: Drawn) -> Iterator[Json]:
        prefix = names[0]
        hosts = [name for name in names for _ in range(draw.randint(0, 4))]
        if draw.random() < 0.3:
            hosts.append(f"{prefix}-ghost")
        taken: set[tuple[str, ...]] = set()
        for number, host in enumerate(hosts):
            pod = pods.bound(draw, f"{prefix}-r{number}", host, drawn.names)
            pods.give_up_ports(pod, taken)
            yield pod

    def _end_some(self, draw: random.Random, running: list[Json]) -> list[Json]:
        """Marks some pods as being deleted, and some as finished; returns the latter."""
        finished = []
        for pod in running:
            metadata = pod["metadata"]
            path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
            fate = draw.random()
            if fate < 0.1:
                self._api.delete(path)
            elif fate < 0.16:
                phase = draw.choice(("Succeeded", "Failed"))
                self._api.patch(f"{path}/status", {"status": {"phase": phase}})
                finished.append(pod)
        return finished

    def _wipe(self) -> None:
        for namespace in NAMESPACES:
            self._api.delete(f"/api/v1/namespaces/{namespace}/pods", grace_seconds=0)
        self._api.delete("/api/v1/nodes")
        self._witness.seen.clear()
        self._wait_seen(0, 0)

    def _list(self, plural: str) -> list[Json]:
        items: list[Json] = self._api.get(f"/api/v1/{plural}")["items"]
        return items

    def _create(self, path: str, bodies: Iterable[Json]) -> None:
        list(self._pool.map(lambda body: self._api.create(path, body), bodies))

    def _create_in_namespaces(self, plural: str, bodies: Iterable[Json]) -> None:
        def create(body: Json) -> None:
            self._api.create(f"/api/v1/namespaces/{body['metadata']['namespace']}/{plural}", body)

        list(self._pool.map(create, bodies))

    def _wait_seen(self, count: int, pod_count: int) -> None:
        """Waits until kube-scheduler's cache has so many nodes and pods."""
        wait_for(
            lambda: self._cache_sizes() == (count, pod_count),
            f"kube-scheduler sees {count} nodes and {pod_count} pods",
            _PATIENCE_S,
        )

    def _cache_sizes(self) -> tuple[float, float]:
        headers = {"Authorization": f"Bearer {self._token}"}
        request = urllib.request.Request(self._metrics, headers=headers)  # noqa: S310 (loopback)
        with urllib.request.urlopen(request, context=self._ssl) as response:  # noqa: S310
            found = metrics(response.read().decode())
        return found.get(_SEEN % "nodes", -1), found.get(_SEEN % "pods", -1)
