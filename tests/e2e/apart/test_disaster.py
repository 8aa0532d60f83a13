"""The CRD or the namespace is deleted and created again: no pod passes a hold meanwhile.

Reserver has the kubeconfig of a service account, as in a static pod: no restart gives it another
one. A process that ends by itself is started again, as by a kubelet.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hack.controlplane.build import bin_dir
from hack.controlplane.cluster import ControlPlane
from hack.controlplane.kubeconfig import service_account_kubeconfig
from hack.reserver_process import ReserverProcess, wait_for
from tests.e2e.apart.test_kept import (
    HELD,
    HOME,
    MERGE,
    ROOT,
    STRANGER,
    Cluster,
    bind,
    passed,
    seat,
)

pytestmark = [pytest.mark.controlplane, pytest.mark.timeout(600)]

PAGE = ROOT / "docs/backup-and-restore.md"
CORE = ROOT / "scheduler-config/core"
CRD = "crd reservations.reserver.io"


class Kubelet(threading.Thread):
    """Starts Reserver again whenever it ends."""

    def __init__(self, reserver: ReserverProcess) -> None:
        super().__init__(daemon=True)
        self.reserver = reserver
        self.over = threading.Event()
        self.restarts = 0

    def run(self) -> None:
        """Look until `over` is set."""
        while not self.over.wait(0.05):
            if self.reserver.process.poll() is not None:
                self.reserver.process.communicate()
                self.reserver.start()
                self.restarts += 1


class Struck(Cluster):
    """A cluster that disasters befall, with a Reserver in it."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        super().__init__(plane)
        self.folder = folder
        self.account = folder / "kubeconfig"
        (folder / "scheduler-config").symlink_to(ROOT / "scheduler-config")
        self.apply(ROOT / "scheduler-config/base")
        for name in ("n0", "n1", "n2", "free"):
            self.add_node(name)
        self.send("POST", "/api/v1/namespaces", {"metadata": {"name": "shop"}})
        self.renew()
        flags = ("--default-quota=none", "--grpc-address=127.0.0.1:0")
        self.reserver = ReserverProcess(self.account, folder / "log", *flags, wait_ready=False)
        self.kubelet = Kubelet(self.reserver)
        self.strangers: list[dict[str, Any]] = []

    def renew(self) -> None:
        """Make a token, and replace the file as an operator does."""
        made = self.account.with_suffix(".new")
        service_account_kubeconfig(self.plane.kubeconfig, HOME, "reserver", made)
        # As docs/install.md has it made.
        text = made.read_text().replace('"name": "user"', '"name": "reserver"')
        made.write_text(text.replace('"user": "user"', '"user": "reserver"'))
        made.replace(self.account)

    def kubectl(self, line: str, given: str = "") -> str:
        command = [str(bin_dir() / "kubectl"), f"--kubeconfig={self.plane.kubeconfig}"]
        done = subprocess.run(
            [*command, *line.split()], input=given, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def follow(self, heading: str, *, but: str = "\n") -> None:
        """Run the commands of a section of the page, without the commands that contain `but`."""
        text = PAGE.read_text().partition(f"## {heading}\n")[2].partition("\n## ")[0]
        blocks = text.split("```console\n$ ")[1:]
        lines = [line for each in blocks for line in each.partition("\n```")[0].split("\n$ ")]
        assert lines
        env = {"PATH": f"{bin_dir()}:/usr/bin:/bin", "HOME": str(self.folder)}
        env["KUBECONFIG"] = str(self.plane.kubeconfig)
        for line in lines:
            if but not in line:
                done = subprocess.run(
                    ["bash", "-c", line], cwd=self.folder, env=env, capture_output=True, text=True,
                    check=False,
                )  # fmt: skip
                assert done.returncode == 0, line + done.stderr

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Have no Reserver run in the block, as with no replicas."""
        self.kubelet.over.set()
        self.kubelet.join()
        self.reserver.stop()
        yield
        self.reserver.start()
        self.kubelet = Kubelet(self.reserver)
        self.kubelet.start()

    def is_decided(self) -> bool:
        return "free" in passed(self.reserver, self.stranger(), "free")

    def stranger(self) -> dict[str, Any]:
        if not self.strangers:
            self.strangers.append(wait_for(self._stranger, "pods can be made"))
        return self.strangers[0]

    def _stranger(self) -> dict[str, Any] | None:
        try:
            return self.add_pod("stranger", STRANGER)
        except OSError:  # Its namespace has no service account yet.
            return None

    def let_past(self, *nodes: str) -> set[str]:
        return passed(self.reserver, self.stranger(), *nodes)

    def hold(self) -> None:
        """Hold a node by an object, and another by an entry of the store."""
        self.reserve("object", seat("n0"))
        entry = {"data": {"entry": json.dumps(seat("n1") | {"owners": [{"pod": {
            "name": "owner-n1", "namespace": "shop"}}]})}}  # fmt: skip
        self.send("PATCH", f"/api/v1/namespaces/{HOME}/configmaps/reservations", entry, MERGE)
        wait_for(self.is_held, "both are held")

    def is_held(self) -> bool:
        return self.is_decided() and not self.let_past("n0", "n1")

    def verbose(self) -> str:
        try:
            return self.reserver.get("/readyz?verbose")[1]
        except OSError:
            return ""


@pytest.fixture
def struck(tmp_path: Path) -> Iterator[Struck]:
    with ControlPlane() as plane, running(Struck(plane, tmp_path)) as cluster:
        yield cluster


@contextmanager
def running(cluster: Struck) -> Iterator[Struck]:
    with cluster.reserver:
        cluster.kubelet = Kubelet(cluster.reserver)
        cluster.kubelet.start()
        try:
            cluster.hold()
            yield cluster
        finally:
            cluster.kubelet.over.set()
            cluster.kubelet.join()


class Watched(threading.Thread):
    """Asks continuously whether another pod may use held room."""

    def __init__(self, cluster: Struck) -> None:
        super().__init__(daemon=True)
        self.cluster = cluster
        self.over = threading.Event()
        self.let_past: set[str] = set()
        self.asked = 0

    def run(self) -> None:
        """Ask until `over` is set."""
        while not self.over.wait(0.002):
            self.let_past |= self.cluster.let_past("n0", "n1")
            self.asked += 1


@contextmanager
def nobody_gets_past(cluster: Struck) -> Iterator[None]:
    cluster.stranger()
    watched = Watched(cluster)
    watched.start()
    yield
    wait_for(lambda: watched.asked > 20, "strangers were judged")
    watched.over.set()
    watched.join()
    assert not watched.let_past


def test_the_crd_is_deleted_and_made_again(struck: Struck) -> None:
    struck.follow("What to back up")
    with nobody_gets_past(struck):
        struck.kubectl(f"delete {CRD}")
        wait_for(lambda: not struck.is_decided(), "nothing is decided")
        wait_for(lambda: "docs/backup-and-restore.md" in struck.verbose(), "it says what to do")
        # A fresh start is of the same opinion.
        struck.reserver.process.kill()
        wait_for(lambda: "docs/backup-and-restore.md" in struck.verbose(), "it is there again")
        assert not struck.is_decided()
        with struck.stopped():
            struck.follow("The CRD was deleted")
        wait_for(struck.is_held, "what was restored holds")
    assert bind(struck.reserver, struck.add_pod("owner-n0", HELD), "n0") == ""


@pytest.mark.release
def test_a_crd_that_is_back_without_its_objects_holds_nothing_for_them(struck: Struck) -> None:
    struck.kubectl(f"delete {CRD}")
    wait_for(lambda: not struck.is_decided(), "nothing is decided")
    process = struck.reserver.process.pid
    struck.apply(CORE)
    wait_for(struck.is_decided, "it decides again")
    assert struck.let_past("n0", "n1") == {"n0"}
    assert struck.reserver.process.pid == process


@pytest.mark.release
def test_a_namespace_and_its_service_account_are_made_again(struck: Struck) -> None:
    struck.kubectl(f"apply -k {CORE}")  # As people do: kubectl notes in the store what it applied.
    struck.follow("What to back up")
    process = struck.reserver.process.pid
    with nobody_gets_past(struck):
        struck.kubectl(f"delete namespace {HOME}")
        wait_for(lambda: "401" in struck.verbose(), "its token is not accepted")
        struck.follow("The namespace was deleted")
        # A new service account, and the old token: nothing is decided until somebody acts.
        said = wait_for(lambda: text if "401" in (text := struck.verbose()) else "", "it says so")
        assert not struck.is_decided()
        remedy = "docs/backup-and-restore.md#a-new-service-account"
        for told in (said, doctor(struck)):
            assert remedy in told
        wait_for(lambda: remedy in struck.reserver.log.read_text(), "its log says so")
        struck.follow("A new service account")
        wait_for(struck.is_held, "what was restored holds")
    assert struck.reserver.process.pid == process
    assert bind(struck.reserver, struck.add_pod("owner-n1", HELD), "n1") == ""


def test_a_backup_is_restored_in_part(struck: Struck) -> None:
    placed = seat("", "owner-placed")
    del placed["node"]
    struck.reserve("placed", placed)
    half = {"resources": {"cpu": "2"}}
    struck.reserve("claimed", seat("free", "runs", "goes", "late", slots=3, **half))
    wait_for(lambda: struck.status("claimed").get("phase") == "Active", "it is in force")
    for name in ("runs", "goes"):
        assert bind(struck.reserver, struck.add_pod(name, "2"), "free") == ""
    wait_for(lambda: struck.status("claimed").get("claimed") == 2, "the claims are told")
    wait_for(lambda: struck.status("placed").get("phase") == "Active", "it is placed")
    struck.follow("What to back up")
    with struck.stopped():
        struck.kubectl("delete reservations --all --namespace shop")
        struck.kubectl(f"delete configmaps --all --namespace {HOME}")
        struck.kubectl("delete pod goes --namespace shop --force")
        struck.kubectl(f"create -f {struck.folder}/reservations.yaml")
        struck.kubectl(f"create -f {struck.folder}/stores.yaml")
    wait_for(struck.is_held, "what names its node holds")
    wait_for(lambda: struck.status("placed").get("phase") == "Active", "it is placed again")
    wait_for(lambda: struck.status("claimed").get("phase") == "Active", "it is in force")
    # It is another object than what was claimed, so three slots are held beside the pod that runs.
    claimed = struck.status("claimed")
    assert not claimed.get("claimed"), claimed
    assert not passed(struck.reserver, struck.add_pod("big", "9"), "free")
    assert bind(struck.reserver, struck.add_pod("late", "2"), "free") == ""


def doctor(cluster: Struck) -> str:
    command = (sys.executable, "-m", "reserver", "doctor")
    address = f"--address={cluster.reserver.grpc_address}"
    done = subprocess.run(
        [*command, address], capture_output=True, text=True, check=False,
        env={"COLUMNS": "1000", "HOME": "/nonexistent"},
    )  # fmt: skip
    return done.stdout + done.stderr
