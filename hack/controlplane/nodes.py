"""Nodes without machines, for any cluster: KWOK plays their kubelets."""

import http.client
import json
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hack.controlplane.build import bin_dir
from hack.controlplane.kwok import FAKE
from hack.controlplane.process import Process, stop

CONNECTIONS = 4
READY_SECONDS = 60.0
LOOK_EVERY = 0.2  # seconds; each look is a list of all nodes


def create_nodes(  # noqa: PLR0913 (all but two have a default that most callers want)
    kubeconfig: Path,
    count: int,
    *,
    cpu: str = "8",
    memory: str = "32Gi",
    pods: int = 110,
    extended: Mapping[str, str] | None = None,
    prefix: str = "worker",
    labels: Mapping[str, str] | None = None,
) -> list[str]:
    """Creates nodes PREFIX-1 to PREFIX-count and returns their names once pods can land there.

    Somebody has to run kwok against the cluster: `ControlPlane` does, or `hack.controlplane.kwok`.

    Args:
        kubeconfig: of a user who may create nodes.
        count: how many.
        cpu: allocatable CPU, as a Kubernetes quantity.
        memory: allocatable memory, as a Kubernetes quantity.
        pods: how many pods fit on a node.
        extended: further allocatable resources, such as `{"nvidia.com/gpu": "4"}`.
        prefix: what the names begin with.
        labels: beside those that every node has (hostname, os, arch).

    Raises:
        RuntimeError: the API server refused a node (409 if the name is taken).
        TimeoutError: some are not ready after a minute.
    """
    names = [f"{prefix}-{number}" for number in range(1, count + 1)]
    room = {"cpu": cpu, "memory": memory, "pods": str(pods), **(extended or {})}
    bodies = [json.dumps(manifest(name, room, labels or {})) for name in names]
    with _api_socket(kubeconfig) as path:
        shares = [bodies[start::CONNECTIONS] for start in range(CONNECTIONS)]
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            list(pool.map(lambda share: _post_nodes(path, share), shares))
        _wait_schedulable(path, names)
    return names


def manifest(name: str, room: Mapping[str, str], labels: Mapping[str, str]) -> dict[str, Any]:
    """What to create for a node that KWOK plays.

    Args:
        name: of the node.
        room: what is allocatable, as Kubernetes quantities.
        labels: beside those that every node has (hostname, os, arch).
    """
    key, _, value = FAKE.partition("=")
    # Those that a kubelet sets, old names included: the controller manager would add them.
    platform = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    own = {"kubernetes.io/hostname": name, **platform}
    own |= {f"beta.{key}": value for key, value in platform.items()}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {key: value},
            "labels": {**own, **labels},
        },
        "status": {"allocatable": room, "capacity": room},
    }


def _post_nodes(path: Path, bodies: Sequence[str]) -> None:
    connection = _UnixConnection(path)
    for body in bodies:
        _request(connection, "POST", "/api/v1/nodes", body)
    connection.close()


def _wait_schedulable(path: Path, names: Sequence[str]) -> None:
    """A Ready node still has its not-ready taint until the controller manager takes it off."""
    connection = _UnixConnection(path)
    deadline = time.monotonic() + READY_SECONDS
    waiting = set(names)
    while True:
        # From the API server's cache: cheap enough to ask again and again.
        nodes = _request(connection, "GET", "/api/v1/nodes?resourceVersion=0")
        waiting -= {node["metadata"]["name"] for node in nodes["items"] if is_schedulable(node)}
        if not waiting:
            break
        if time.monotonic() > deadline:
            message = f"nodes not ready after {READY_SECONDS:g} s: {sorted(waiting)[:5]}"
            raise TimeoutError(message)
        time.sleep(LOOK_EVERY)
    connection.close()


def is_schedulable(node: Mapping[str, Any]) -> bool:
    """Whether pods can land on a node."""
    conditions = node["status"].get("conditions", [])
    ready = any(entry["type"] == "Ready" and entry["status"] == "True" for entry in conditions)
    taints = node["spec"].get("taints", [])
    return ready and not any(taint["key"].endswith("/not-ready") for taint in taints)


@contextmanager
def _api_socket(kubeconfig: Path) -> Iterator[Path]:
    """A socket that speaks to the API server as the user of `kubeconfig`.

    kubectl knows every kind of credential that a kubeconfig may name; nobody else reaches a socket
    in a folder that only we may enter.
    """
    folder = Path(tempfile.mkdtemp(prefix="reserver-api-"))
    path = folder / "api"
    socket_flag = f"--unix-socket={path}"
    proxy = Process(
        [bin_dir() / "kubectl", f"--kubeconfig={kubeconfig}", "proxy", socket_flag],
        folder / "kubectl-proxy.log",
    )
    try:
        proxy.wait_until(lambda: _accepts(path), seconds=10)
        yield path
    finally:
        stop([proxy])
        shutil.rmtree(folder)


def _accepts(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(os.fspath(path)) == 0


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=30)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(os.fspath(self._path))


def _request(connection: _UnixConnection, method: str, url: str, body: str | None = None) -> Any:  # noqa: ANN401 (JSON)
    connection.request(method, url, body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    content = response.read()
    if response.status >= http.client.BAD_REQUEST:
        message = f"{method} {url}: {response.status} {content.decode()}"
        raise RuntimeError(message)
    return json.loads(content)
