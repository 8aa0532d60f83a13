"""docs/first-day.md, followed to the letter.

The control plane is real, and KWOK plays the kubelets. Where a pod would run programs, they are
started here, with its flags, its files and its service account.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hack.controlplane.cluster import ControlPlane
from hack.controlplane.kubeconfig import kubectl, service_account_kubeconfig
from hack.controlplane.process import HeldPort
from hack.controlplane.scheduler_config import render_scheduler_config
from hack.go_tool import HELM
from hack.reserver_process import ReserverProcess, wait_for
from tests.e2e.apart.test_pages_cluster import OPERATOR
from tests.installing import NAMESPACE, ROOT, containers, empty_cluster
from tests.installing import Reader as Installer
from tests.pages import Reader

pytestmark = [pytest.mark.controlplane, pytest.mark.timeout(600)]

PAGE = "docs/first-day.md"
MOUNTED = "/etc/reserver/configuration"
ROLLS = "kubectl -n reserver-system rollout"


class Node:
    """The processes of the cluster's nodes."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self._plane, self._folder = plane, folder
        self._configuration = folder / "configuration"
        self._configuration.mkdir()
        self._held = HeldPort()
        self.address = f"127.0.0.1:{self._held.number}"

    def get(self, what: str) -> Any:
        words = (*what.split(), "-n", NAMESPACE, "-o", "json")
        return json.loads(kubectl(self._plane.kubeconfig, "get", *words))

    def mount(self) -> None:
        """Write the configuration as it is in the cluster now."""
        for name, text in self.get("configmap reserver-configuration")["data"].items():
            (self._configuration / name).write_text(text)

    @contextmanager
    def running(self) -> Iterator[ReserverProcess]:
        """Run the pod of the second kube-scheduler."""
        self.mount()
        pod = self.get("deployment reserver-scheduler")["spec"]["template"]["spec"]
        account = self._folder / "account"
        name = pod["serviceAccountName"]
        service_account_kubeconfig(self._plane.kubeconfig, NAMESPACE, name, account)
        flags = containers(pod)["reserver"]["args"]
        here = [each.replace(MOUNTED, str(self._configuration)) for each in flags]
        ports = (f"--grpc-address={self.address}", "--health-address=127.0.0.1:0")
        (volume,) = (each["configMap"] for each in pod["volumes"] if each["name"] == "config")
        text = self.get(f"configmap {volume['name']}")["data"]["kube-scheduler.yaml"]
        log = self._folder / "log"
        with ReserverProcess(account, log, *here, *ports, as_shipped=True) as process:
            self.schedule("second", text, account, process.port)
            yield process
            self._plane.stop_scheduler("second")

    def schedule(self, name: str, text: str, account: Path, port: int | None = None) -> None:
        config = self._folder / f"{name}.yaml"
        config.write_text(text)
        config.write_text(render_scheduler_config(config, kubeconfig=account, port=port))
        self._plane.start_scheduler(config, name, leader_elect=True)


def make_certificates(plane: ControlPlane, folder: Path) -> None:
    """Run the commands that the page refers to."""
    someone = Installer(plane, folder)
    for words in ("openssl", "create secret"):
        someone.follow("Standby", only=words)


def test_a_first_day_goes_as_its_page_says(tmp_path: Path) -> None:
    with empty_cluster() as plane:
        (tmp_path / "node").mkdir()
        node = Node(plane, tmp_path / "node")
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin/helm").symlink_to(HELM.build())
        path = Installer(plane, tmp_path / "bin").path
        reader = Reader(
            tmp_path,
            {"KUBECONFIG": str(plane.kubeconfig), "PATH": path, "RESERVER_ADDRESS": node.address},
        )
        (tmp_path / "operator.yaml").write_text(OPERATOR)
        reader.has("kubectl apply -f operator.yaml")
        reader.has("kubectl wait --for=condition=Established -f operator.yaml")
        reader.follow(PAGE, "Install")
        with node.running() as process:
            for section in ("See it healthy", "Reserve", "Watch", "Change a setting"):
                reader.follow(PAGE, section)
            node.mount()
            wait_for(lambda: "30m" in str(process.get("/configz")[1]), "it is read again")
            reader.follow(PAGE, "Roll out", only=(ROLLS,))
        with node.running():
            reader.follow(PAGE, "Roll out", but=(ROLLS,))
        make_certificates(plane, tmp_path)
        shipped = (ROOT / "scheduler-config/standby/bootstrap-scheduler.yaml").read_text()
        node.schedule("reserver-bootstrap", shipped, plane.kubeconfig)
        reader.follow(PAGE, "Stand by")
