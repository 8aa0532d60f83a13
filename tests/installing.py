"""A reader who installs Reserver by docs/install.md, and checks that it keeps seats."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from hack.controlplane.build import bin_dir
from hack.controlplane.cluster import ControlPlane
from hack.controlplane.kubeconfig import kubectl
from hack.controlplane.nodes import create_nodes
from hack.controlplane.scheduler_config import PLAIN_SCHEDULER, render_scheduler_config
from hack.go_tool import HELM
from hack.programs import done
from hack.reserver_process import wait_for

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/install.md"
NAMESPACE = "reserver-system"
_HEADING = re.compile(r"^##+ ", re.MULTILINE)
_BLOCK = re.compile(r"^```(console|yaml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

_TERMINATING = (
    "jsonpath={range .items[?(@.metadata.deletionTimestamp)]}"
    '{.metadata.name}: {.status}{"\\n"}{end}'
)


@dataclass
class Reader:
    """A reader who runs the commands of a page.

    Attributes:
        plane: the reader's cluster.
        folder: the working folder; as in a checkout, it has the chart and the manifests.
        namespace: of Reserver, in place of the namespace that pages name.
    """

    plane: ControlPlane
    folder: Path
    namespace: str = NAMESPACE

    @property
    def path(self) -> str:
        """The PATH of installed programs, with Reserver's and Kubernetes' first."""
        here = (self.folder, Path(sys.executable).parent, bin_dir(), os.environ["PATH"])
        return ":".join(map(str, here))

    def run(self, line: str) -> str:
        """Run a line that has to succeed; return its output."""
        line = line.replace(NAMESPACE, self.namespace)
        environment = {
            "PATH": self.path,
            "KUBECONFIG": str(self.plane.kubeconfig),
            "HOME": str(self.folder),
        }
        try:
            told = done("bash", "-c", line, timeout_s=180, cwd=self.folder, env=environment)
        except subprocess.TimeoutExpired as late:
            terminating = kubectl(
                self.plane.kubeconfig, "get", "crd,namespaces", "-o", _TERMINATING
            )
            raise AssertionError(f"{line}\n{late.output!r}\n{terminating}") from late
        assert told.returncode == 0, f"{line}\n{told.stdout}{told.stderr}"
        return str(told.stdout)

    def follow(self, title: str, *, only: str = "", but: str = "\n", page: Path = PAGE) -> None:
        """Run the commands of a section that contain `only` and not `but`; write its files."""
        _, _, text = page.read_text().partition(f"# {title}\n")
        end = _HEADING.search(text)
        found = _BLOCK.findall(text[: end.start() if end else None])
        assert found, f"no commands under {title!r}"
        for kind, block in found:
            if kind == "yaml":
                (self.folder / block.split()[1]).write_text(block)
                continue
            for step in block.removeprefix("$ ").split("\n$ "):
                line, _, expected = step.partition("\n")
                if only in line and but not in line:
                    said = self.run(line)
                    assert said.strip() == expected.strip() or not expected.strip()

    def get(self, what: str) -> Any:
        return json.loads(self.run(f"kubectl get --namespace {NAMESPACE} {what} -o json"))

    def apply(self, *objects: dict[str, Any]) -> None:
        (self.folder / "objects.yaml").write_text(yaml.safe_dump_all(objects))
        self.run("kubectl apply -f objects.yaml")

    def left(self) -> str:
        """Return the objects of Reserver that are left."""
        kinds = "crd,clusterroles,clusterrolebindings,namespaces,validatingadmissionpolicies"
        found = self.run(f"kubectl get {kinds} -o name").splitlines()
        roles = self.run("kubectl get roles,rolebindings --namespace kube-system -o name")
        own = f"namespace/{self.namespace}"
        named = [each for each in found + roles.splitlines() if "reserver" in each or each == own]
        return "\n".join(named)


@contextmanager
def empty_cluster() -> Iterator[ControlPlane]:
    """Run a cluster that has never heard of Reserver, with its own kube-scheduler and two nodes."""
    with ControlPlane() as plane:
        own = plane.folder / "own.yaml"
        own.write_text(render_scheduler_config(PLAIN_SCHEDULER, kubeconfig=plane.kubeconfig))
        plane.start_scheduler(own, "own")
        create_nodes(plane.kubeconfig, 2, cpu="4", memory="16Gi")
        yield plane


def reading(plane: ControlPlane, folder: Path) -> Reader:
    """Return a reader who has run the commands of the section "Image"."""
    for name in ("charts", "scheduler-config"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "helm").symlink_to(HELM.build())
    someone = Reader(plane, folder)
    someone.follow("Image")
    return someone


def running(plane: ControlPlane, namespace: str = NAMESPACE) -> list[str]:
    """Return the pods that run, as `pod/NAME`."""
    listed = ("get", "pods", "--field-selector=status.phase=Running", "-o", "name")
    return kubectl(plane.kubeconfig, "-n", namespace, *listed).split()


def give_addresses(plane: ControlPlane, namespace: str = NAMESPACE) -> None:
    """Give each pod an address, as a kubelet does: without one it is in no EndpointSlice."""
    for number, name in enumerate(running(plane, namespace), start=1):
        address = f"192.0.2.{number}"
        status = json.dumps({"status": {"podIP": address, "podIPs": [{"ip": address}]}})
        patch = ("patch", name, "--subresource=status", "--patch", status)
        kubectl(plane.kubeconfig, "-n", namespace, *patch)


def reached(plane: ControlPlane, namespace: str = NAMESPACE) -> int:
    """Return how many pods calls to the Service may go to."""
    listed = ("get", "endpointslices", "-l", "kubernetes.io/service-name=reserver", "-o", "json")
    slices = json.loads(kubectl(plane.kubeconfig, "-n", namespace, *listed))["items"]
    found = [each for one in slices for each in one["endpoints"] or ()]
    return sum(bool(each["conditions"].get("ready")) for each in found)


def seat(name: str) -> dict[str, Any]:
    """Return three of the four CPUs of worker-1, for the pod of a name."""
    owner = {"pod": {"name": name, "namespace": "default"}}
    return {"owners": [owner], "resources": {"cpu": "3"}, "node": "worker-1", "ttl": "1h"}


def pod(name: str, scheduler: str) -> dict[str, Any]:
    """Return one that fits on worker-1 only where nothing is held for others."""
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "2"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "schedulerName": scheduler,
            "nodeSelector": {"kubernetes.io/hostname": "worker-1"},
            "containers": [container],
        },
    }


def hold(reader: Reader, name: str) -> None:
    """Reserve, and return once it is acknowledged."""
    data = {"data": {name: json.dumps(seat(name))}}
    reader.run(
        f"kubectl patch configmap reservations --namespace {NAMESPACE} -p '{json.dumps(data)}'"
    )
    line = f"kubectl get configmap reservations-status --namespace {NAMESPACE}"
    told = f"{line} -o jsonpath='{{.data.{name}}}' 2>/dev/null || true"
    wait_for(lambda: "backed:true" in re.sub(r'[" ]', "", reader.run(told)), "it is acknowledged")


def see_it_kept(reader: Reader, scheduler: str, name: str) -> None:
    """See a stranger wait, and the owner land."""
    reader.apply(pod(f"{name}-stranger", scheduler))
    said = f"kubectl get pod {name}-stranger -o jsonpath='{{.status.conditions[*].message}}'"
    wait_for(lambda: "held by reservation" in reader.run(said), "the stranger is refused")
    reader.apply(pod(name, scheduler))
    reader.run(f"kubectl wait pod/{name} --for=jsonpath='{{.spec.nodeName}}'=worker-1")
    reader.run(f"kubectl delete pod {name} {name}-stranger --grace-period=0 --force")


def containers(spec: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found = [*spec.get("initContainers", ()), *spec["containers"]]
    return {each["name"]: each for each in found}
