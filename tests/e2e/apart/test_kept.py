"""Holds stay in force after etcd is restored from a backup.

No scheduler runs here: the tests call Reserver for strangers and owners themselves.
"""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hack.controlplane.build import bin_dir
from hack.controlplane.cluster import ControlPlane
from hack.controlplane.process import stop
from hack.reserver_process import ReserverProcess, wait_for
from reserver.k8s.client import MERGE_PATCH

pytestmark = [pytest.mark.controlplane, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[3]
OLD = "3e15b42"
"""A version without quotas, and with few bounds."""

HOME = "reserver-system"
GROUP = "/apis/reserver.io/v1alpha1"
MERGE = "application/merge-patch+json"
HELD, STRANGER, OFFERED = "12", "8", "16"
"""CPUs of each hold, of a stranger, and of each node."""


class Cluster:
    """A control plane without controllers, with calls of a kube-scheduler and of users."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.context = ssl.create_default_context(cafile=plane.ca_file)

    def send(self, verb: str, path: str, body: Any = None, media: str = "application/json") -> Any:
        headers = {"Authorization": f"Bearer {self.plane.token}", "Content-Type": media}
        data = None if body is None else json.dumps(body).encode()
        url = f"{self.plane.url}{path}"
        request = urllib.request.Request(url, data, headers, method=verb)
        with urllib.request.urlopen(request, context=self.context, timeout=30) as answer:
            return json.load(answer)

    def apply(self, folder: Path) -> None:
        kubectl = (bin_dir() / "kubectl", f"--kubeconfig={self.plane.kubeconfig}")
        apply = ("apply", "--server-side", "--force-conflicts", "-k", folder)
        subprocess.run((*kubectl, *apply), check=True, capture_output=True)
        wait_for(self.serves, "the CRD is served")

    def serves(self) -> bool:
        try:
            return bool(self.send("GET", f"{GROUP}/reservations"))
        except OSError:
            return False

    def add_node(self, name: str, **more: str) -> None:
        offered = {"cpu": OFFERED, "memory": "64Gi", "pods": "2000", **more}
        status = {"allocatable": offered, "capacity": offered}
        metadata = {"name": name, "labels": {"kubernetes.io/hostname": name}}
        self.send("POST", "/api/v1/nodes", {"metadata": metadata, "status": status})

    def add_pod(self, name: str, cpu: str, namespace: str = "shop") -> dict[str, Any]:
        requests = {"requests": {"cpu": cpu}}
        containers = [{"name": "c", "image": "none", "resources": requests}]
        body = {"metadata": {"name": name}, "spec": {"containers": containers}}
        made: dict[str, Any] = self.send("POST", f"/api/v1/namespaces/{namespace}/pods", body)
        return made

    def reserve(self, name: str, spec: dict[str, Any], namespace: str = "shop") -> None:
        body = {
            "apiVersion": "reserver.io/v1alpha1",
            "kind": "Reservation",
            "metadata": {"name": name},
            "spec": spec,
        }
        self.send("POST", f"{GROUP}/namespaces/{namespace}/reservations", body)

    def status(self, name: str, namespace: str = "shop") -> dict[str, Any]:
        found = self.send("GET", f"{GROUP}/namespaces/{namespace}/reservations/{name}")
        said: dict[str, Any] = found.get("status", {})
        return said

    def names(self) -> set[str]:
        items = self.send("GET", f"{GROUP}/reservations")["items"]
        return {each["metadata"]["name"] for each in items}


@contextmanager
def at_rest(plane: ControlPlane) -> Iterator[Path]:
    """Stop kube-apiserver and etcd for the block, which gets etcd's data to copy or replace."""
    plane.stop_apiserver()
    stop([plane._running.pop("etcd")])
    yield plane.folder / "etcd"
    plane._start_etcd()
    plane.start_apiserver()


@contextmanager
def without_etcd(plane: ControlPlane) -> Iterator[Path]:
    """Stop etcd alone for the block: kube-apiserver goes on with its caches."""
    stop([plane._running.pop("etcd")])
    yield plane.folder / "etcd"
    plane._start_etcd()


@contextmanager
def cluster() -> Iterator[Cluster]:
    with ControlPlane(controller_manager=False) as plane:
        yield Cluster(plane)


def seat(node: str, *owners: str, **more: Any) -> dict[str, Any]:
    named = [{"pod": {"name": name}} for name in owners or (f"owner-{node}",)]
    return {"owners": named, "resources": {"cpu": HELD}, "node": node, "ttl": "2h", **more}


def passed(reserver: ReserverProcess, pod: dict[str, Any], *nodes: str) -> set[str]:
    """Return the nodes that Filter lets a pod have; none while it does not decide."""
    call = json.dumps({"Pod": pod, "Nodes": None, "NodeNames": nodes}).encode()
    try:
        return set(reserver.post("/filter", call)[1].get("NodeNames") or ())
    except (OSError, ValueError):
        return set()


def bind(reserver: ReserverProcess, pod: dict[str, Any], node: str) -> str:
    metadata = pod["metadata"]
    named = {"PodName": metadata["name"], "PodNamespace": metadata["namespace"]}
    call = json.dumps({**named, "PodUID": metadata["uid"], "Node": node}).encode()
    answer = reserver.post("/bind", call)[1]
    return str(answer.get("Error") or "")


def hold(world: Cluster, name: str, spec: dict[str, Any]) -> None:
    """Create a Reservation, and return once it is in force."""
    world.reserve(name, spec)
    wait_for(lambda: world.status(name).get("phase") == "Active", f"{name} is in force")


def test_what_was_restored_holds_and_what_no_longer_is_deletes_nothing(tmp_path: Path) -> None:
    with cluster() as world:
        plane, backup, ancient = world.plane, tmp_path / "backup", tmp_path / "ancient"
        before_the_crd(world)
        with at_rest(plane) as data:
            shutil.copytree(data, ancient)
        world.apply(ROOT / "scheduler-config/core")
        flags: Any = {"wait_ready": False, "as_shipped": True}
        process = ReserverProcess(
            plane.kubeconfig, tmp_path / "log", "--default-quota=none", **flags
        )
        with process as reserver:
            reserver.wait_ready()
            hold(world, "early", seat("n0", "claimer"))
            with at_rest(plane) as data:
                shutil.copytree(data, backup)
            stranger = world.add_pod("stranger", STRANGER)
            assert wait_for(lambda: passed(reserver, stranger, "n0", "n1"), "it decides") == {"n1"}
            hold(world, "late", seat("n1"))
            assert bind(reserver, world.add_pod("claimer", HELD), "n0") == ""
            wait_for(lambda: "early" not in world.names(), "the claimed entry is removed")
            assert reserver.process.poll() is None

            with at_rest(plane) as data:
                replace(data, backup)
            assert reserver.wait_ended() == 1
            assert "the API server has gone back in time" in reserver.log.read_text()
            wait_for(world.serves, "the API server has read its CRDs")
            assert world.names() == {"early"}
            reserver.start()
            reserver.wait_ready()
            stranger = world.add_pod("stranger", STRANGER)
            assert passed(reserver, stranger, "n0", "n1") == {"n1"}
            assert "held by" in bind(reserver, stranger, "n0")
            assert world.names() == {"early"}
            assert bind(reserver, world.add_pod("claimer", HELD), "n0") == ""

            replace_under_an_api_server_that_goes_on(world, reserver, backup)
            restore_from_before_the_crd(world, reserver, ancient)


def replace(data: Path, backup: Path) -> None:
    shutil.rmtree(data)
    shutil.copytree(backup, data)


def replace_under_an_api_server_that_goes_on(
    world: Cluster, reserver: ReserverProcess, backup: Path
) -> None:
    """Restore etcd from before "early" was claimed, and check that no cache is trusted.

    Its status, which Reserver is about to write, must not reach the restored object.
    """
    wait_for(lambda: "early" not in world.names(), "the claimed entry is removed again")
    with without_etcd(world.plane) as data:
        replace(data, backup)
    said = "etcd was restored under an API server that goes on"
    wait_for(lambda: said in reserver.get("/readyz")[1], said)
    assert world.names() == set()
    for number in range(100):  # etcd comes as far as it was: a new process would find nothing.
        note = {"metadata": {"annotations": {"number": str(number)}}}
        world.send("PATCH", "/api/v1/namespaces/shop", note, MERGE_PATCH)
    stranger = {"metadata": {"name": "stranger", "namespace": "shop", "uid": "lost"}, "spec": {}}
    assert not passed(reserver, stranger, "n0", "n1", "n2")
    assert said in bind(reserver, stranger, "n0")
    world.plane.restart_apiserver()
    assert reserver.wait_ended() == 1
    reserver.start()
    reserver.wait_ready()
    stranger = world.add_pod("stranger", STRANGER)
    assert passed(reserver, stranger, "n0", "n1") == {"n1"}


def begins_anew_and_refuses(reserver: ReserverProcess, said: str) -> None:
    """Start Reserver again after its end, and wait until /readyz gives the reason."""
    assert reserver.wait_ended() == 1
    reserver.start()
    wait_for(lambda: said in reserver.get("/readyz")[1], said)


def restore_from_before_the_crd(world: Cluster, reserver: ReserverProcess, ancient: Path) -> None:
    with at_rest(world.plane) as data:
        replace(data, ancient)
    begins_anew_and_refuses(reserver, "install its CRD (docs/backup-and-restore.md)")
    stranger = world.add_pod("stranger", STRANGER)
    assert not passed(reserver, stranger, "n0", "n1", "n2")
    world.apply(ROOT / "scheduler-config/core")
    reserver.wait_ready()
    assert passed(reserver, stranger, "n0", "n1", "n2") == {"n0", "n1"}


def before_the_crd(world: Cluster) -> None:
    """Have nodes, and a hold in a store, as before there were Reservations."""
    for name in ("n0", "n1", "n2"):
        world.add_node(name)
    for name in ("shop", HOME):
        world.send("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    entry = seat("n2") | {"owners": [{"pod": {"name": "owner", "namespace": "shop"}}]}
    metadata = {"name": "reservations", "labels": {"reserver.io/store": "true"}}
    store = {"metadata": metadata, "data": {"ancient": json.dumps(entry)}}
    world.send("POST", f"/api/v1/namespaces/{HOME}/configmaps", store)


def old_version(folder: Path, commit: str = OLD, *more: str) -> tuple[str, ...]:
    """Install an older version from its commit, with more of its folders; return the program."""
    pack = ("git", "archive", commit, "reserver", "scheduler-config", *more)
    packed = subprocess.run(pack, cwd=ROOT, capture_output=True, check=False)
    assert not packed.returncode, (
        f"this test needs the history back to {commit}: git fetch --unshallow"
    )
    folder.mkdir()
    subprocess.run(["tar", "x"], cwd=folder, input=packed.stdout, check=True)
    info = folder / "reserver-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: reserver\nVersion: 0.1.0\n")
    return ("env", f"PYTHONPATH={folder}", sys.executable, "-P", "-m", "reserver")


class Strangers(threading.Thread):
    """Calls Filter for held nodes again and again; records each node that passes."""

    def __init__(self, reserver: ReserverProcess, pod: dict[str, Any], nodes: list[str]) -> None:
        super().__init__()
        self.reserver, self.pod, self.nodes = reserver, pod, nodes
        self.over = threading.Event()
        self.lost: set[str] = set()
        self.free = 0

    def run(self) -> None:
        """Ask until `over` is set."""
        while not self.over.wait(0.01):
            found = passed(self.reserver, self.pod, *self.nodes, "free")
            self.free += "free" in found
            self.lost |= found - {"free"}


def companion(world: Cluster) -> dict[str, str]:
    """Return the data of the companion of the store; empty without a companion."""
    try:
        found = world.send("GET", f"/api/v1/namespaces/{HOME}/configmaps/reservations-status")
    except OSError:
        return {}
    said: dict[str, str] = found.get("data") or {}
    return said
