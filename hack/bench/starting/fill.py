"""Fills etcd with a large cluster in a minute.

One node and one pod are created through the API server, status included. While it is down, their
values in etcd are copied under other names of the same length. So the API server finds, byte by
byte, its own encoding; creating 150,000 pods through it would take five minutes.
"""

from __future__ import annotations

import base64
import json
import signal
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import islice
from typing import Any, NamedTuple

from hack.bed.api import Api, at_once
from hack.bench.documents import NAMESPACE, node_document, pod_document
from hack.bench.report import progress
from hack.controlplane.cluster import ControlPlane

PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
_PODS_OF_A_WORKLOAD = 30
_IMAGE = "registry.example/shop/web:2.41.0"
_LARGE = ("env", "livenessProbe", "readinessProbe", "volumeMounts")
"""Only kube-apiserver reads these, and with them it would take 20 GB for 150,000 pods."""

_AT_ONCE = 128
"""Keys in a transaction of etcd: its default bound."""

_CONNECTIONS = 4
_READY_S = 300.0


class _Stored(NamedTuple):
    """An object as the API server has stored it.

    Attributes:
        key: key in etcd.
        value: value in etcd.
        uid: UID from the API server.
    """

    key: bytes
    value: bytes
    uid: str

    def copy(self, number: int, names: Mapping[str, str]) -> tuple[bytes, bytes]:
        """Return key and value of a copy under other names, each as long as the original."""
        uid = f"{number:08d}{self.uid[8:]}"
        key, value = self.key, self.value.replace(self.uid.encode(), uid.encode())
        for before, after in names.items():
            key = key.replace(before.encode(), after.encode())
            value = value.replace(before.encode(), after.encode())
        return key, value


def node_name(number: int) -> str:
    """Return a node's name."""
    return f"ip-10-20-{number:05}.eu-central-1.compute.internal"


def fill(plane: ControlPlane, nodes: int, pods: int) -> None:
    """Add nodes and running pods to a control plane, restarting its API server."""
    with closing(Api(plane.kubeconfig)) as api:
        node, pod = _node(api), _pod(api, 0)
        stored = _stored(plane, "/registry/minions/", node), _stored(plane, _key(pod), pod)
    plane.signal("kwok", signal.SIGKILL)  # It would read all pods, though it simulates none.
    plane.stop_apiserver()
    progress(f"storing {nodes:,} nodes and {pods:,} pods")
    workloads = pods // _PODS_OF_A_WORKLOAD + 1
    for copies in (
        (stored[0].copy(n, {node_name(0): node_name(n)}) for n in range(1, nodes)),
        (stored[1].copy(n, _names(n, nodes, workloads)) for n in range(1, pods)),
    ):
        at_once(lambda some: _put(plane, some), _batches(copies), _CONNECTIONS)
    plane.start_apiserver(_READY_S)


def create_pods(plane: ControlPlane, first: int, count: int, nodes: int) -> None:
    """Create running pods through the API server, which keeps the events for a while."""
    with closing(Api(plane.kubeconfig)) as api:
        at_once(lambda n: _pod(api, n, node_name(n % nodes)), range(first, first + count))


def _names(number: int, nodes: int, workloads: int) -> dict[str, str]:
    return {
        _pod_name(0): _pod_name(number),
        _workload(0): _workload(number % workloads),
        node_name(0): node_name(number % nodes),
    }


def _workload(number: int) -> str:
    return f"web-{number:05}"


def _pod_name(number: int) -> str:
    return f"{_workload(0)}-5d8f7c9b9d-{number:07}"


def _node(api: Api) -> dict[str, Any]:
    document = node_document(0)
    del document["metadata"]["uid"], document["metadata"]["resourceVersion"]
    document["metadata"]["name"] = node_name(0)
    api.create("/api/v1/nodes", document)
    return dict(api.get(f"/api/v1/nodes/{node_name(0)}"))


def _pod(api: Api, number: int, node: str = node_name(0)) -> dict[str, Any]:
    """Create a running pod; return it as the API server stores it."""
    document = pod_document(_pod_name(number), uid="", node=node)
    document["metadata"]["labels"]["app.kubernetes.io/instance"] = _workload(0)
    for container in (*document["spec"]["containers"], *document["spec"]["initContainers"]):
        container["image"] = _IMAGE
        for name in _LARGE:
            container.pop(name, None)
    for name in ("uid", "resourceVersion", "creationTimestamp"):
        del document["metadata"][name]
    api.create(PODS, document)
    path = f"{PODS}/{_pod_name(number)}"
    api.patch(f"{path}/status", {"status": document["status"]})
    return dict(api.get(path))


def _key(pod: Mapping[str, Any]) -> str:
    return f"/registry/pods/{pod['metadata']['namespace']}/"


def _stored(plane: ControlPlane, folder: str, document: Mapping[str, Any]) -> _Stored:
    key = f"{folder}{document['metadata']['name']}".encode()
    (found,) = _ask(plane, "range", {"key": _text(key)})["kvs"]
    return _Stored(key, base64.b64decode(found["value"]), document["metadata"]["uid"])


def _batches(
    copies: Iterable[tuple[bytes, bytes]],
) -> Iterator[Sequence[tuple[bytes, bytes]]]:
    rest = iter(copies)
    while some := list(islice(rest, _AT_ONCE)):
        yield some


def _put(plane: ControlPlane, some: Sequence[tuple[bytes, bytes]]) -> None:
    puts = [{"requestPut": {"key": _text(key), "value": _text(value)}} for key, value in some]
    _ask(plane, "txn", {"success": puts})


def _text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def _ask(plane: ControlPlane, verb: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer of etcd's JSON gateway."""
    url = f"{plane.etcd_url}/v3/kv/{verb}"
    request = urllib.request.Request(url, json.dumps(body).encode())  # noqa: S310 - our own URL
    with urllib.request.urlopen(request, timeout=60) as response:  # noqa: S310
        return dict(json.loads(response.read()))
