"""From nothing to a protected cluster, by the commands of docs/install.md, and back to nothing.

The API server, the controllers and the schedulers are real. KWOK plays the kubelets; where a pod of
the manifests would run programs, they are started here, with its flags, its configuration and its
service account.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.controlplane.build import bin_dir
from hack.controlplane.cluster import (
    PLAIN_SCHEDULER,
    ControlPlane,
    create_nodes,
    render_scheduler_config,
    service_account_kubeconfig,
)
from hack.helm.build import HELM
from hack.reserver_process import ReserverProcess, wait_for

pytestmark = [pytest.mark.controlplane, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs/install.md"
NAMESPACE = "reserver-system"
ON_NODES = "/etc/kubernetes/reserver"
_HEADING = re.compile(r"^##+ ", re.MULTILINE)
_BLOCK = re.compile(r"^```(console|yaml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

STATIC_POD = """\
apiVersion: v1
kind: Pod
metadata:
  labels: {component: kube-scheduler, tier: control-plane}
  name: kube-scheduler
  namespace: kube-system
spec:
  containers:
  - command:
    - kube-scheduler
    - --authentication-kubeconfig=/etc/kubernetes/scheduler.conf
    - --authorization-kubeconfig=/etc/kubernetes/scheduler.conf
    - --bind-address=127.0.0.1
    - --kubeconfig=/etc/kubernetes/scheduler.conf
    - --leader-elect=true
    image: registry.k8s.io/kube-scheduler:v1.37.0
    name: kube-scheduler
    resources: {requests: {cpu: 100m}}
    volumeMounts:
    - {mountPath: /etc/kubernetes/scheduler.conf, name: kubeconfig, readOnly: true}
  hostNetwork: true
  priorityClassName: system-node-critical
  volumes:
  - hostPath: {path: /etc/kubernetes/scheduler.conf, type: FileOrCreate}
    name: kubeconfig
"""
"""What kubeadm writes, but for probes (cmd/kubeadm/app/phases/controlplane/manifests.go)."""


@dataclass
class Reader:
    """Somebody who types what the page says.

    Attributes:
        plane: their cluster.
        folder: where they are; as in a checkout, the chart and the manifests are there.
    """

    plane: ControlPlane
    folder: Path

    @property
    def _programs(self) -> tuple[str | Path, ...]:
        return (self.folder, Path(sys.executable).parent, bin_dir(), os.environ["PATH"])

    def run(self, line: str) -> str:
        """Run a line that has to succeed; return what it printed."""
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=self.folder,
            env={
                "PATH": ":".join(map(str, self._programs)),
                "KUBECONFIG": str(self.plane.kubeconfig),
                "HOME": str(self.folder),
            },
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        return done.stdout

    def follow(self, title: str, *, only: str = "", but: str = "\n") -> None:
        """Do what a section says, of its commands those with some words, and without others."""
        _, _, text = PAGE.read_text().partition(f"# {title}\n")
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
        """Return what there still is of Reserver."""
        kinds = "crd,clusterroles,clusterrolebindings,namespaces,validatingadmissionpolicies"
        found = self.run(f"kubectl get {kinds} -o name").splitlines()
        roles = self.run("kubectl get roles,rolebindings --namespace kube-system -o name")
        return "\n".join(each for each in [*found, *roles.splitlines()] if "reserver" in each)


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    """A cluster that has never heard of Reserver, with its own kube-scheduler and two nodes."""
    with ControlPlane() as plane:
        own = plane.folder / "own.yaml"
        own.write_text(render_scheduler_config(PLAIN_SCHEDULER, kubeconfig=plane.kubeconfig))
        plane.start_scheduler(own, "own")
        create_nodes(plane.kubeconfig, 2, cpu="4", memory="16Gi")
        yield plane


@pytest.fixture
def reader(cluster: ControlPlane, tmp_path: Path) -> Iterator[Reader]:
    """A reader who has read how the image is named; their cluster is as before in the end."""
    for name in ("charts", "scheduler-config"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "helm").symlink_to(HELM.build())
    someone = Reader(cluster, tmp_path)
    assert not someone.left()
    someone.follow("The image")
    yield someone
    assert not someone.left()


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


def start_pod(reader: Reader, stack: ExitStack) -> None:
    """Start what the kubelet would, in the pod of the second kube-scheduler."""
    template = reader.get("deployment reserver-scheduler")["spec"]["template"]["spec"]
    account = reader.folder / "account"
    service_account_kubeconfig(
        reader.plane.kubeconfig, NAMESPACE, template["serviceAccountName"], account
    )
    flags = containers(template)["reserver"]["args"]
    # Its ports are those of a pod; there may be others of us on this machine.
    process = ReserverProcess(
        account, reader.folder / "reserver.log", *flags, "--grpc-address=127.0.0.1:0"
    )
    stack.enter_context(process)
    (volume,) = (each for each in template["volumes"] if each["name"] == "config")
    config = reader.folder / "scheduler.yaml"
    config.write_text(
        reader.get(f"configmap {volume['configMap']['name']}")["data"]["kube-scheduler.yaml"]
    )
    config.write_text(render_scheduler_config(config, kubeconfig=account, port=process.port))
    reader.plane.start_scheduler(config, "second", leader_elect=True)
    stack.callback(reader.plane.stop_scheduler, "second")


def test_a_second_kube_scheduler_by_helm_is_upgraded_rolled_back_and_uninstalled(
    reader: Reader,
) -> None:
    reader.follow("With Helm")
    with ExitStack() as stack:
        start_pod(reader, stack)
        hold(reader, "first")
        see_it_kept(reader, "reserver-scheduler", "first")
        hold(reader, "second")
    reader.apply(pod("second-stranger", "reserver-scheduler"))
    (reader.folder / "values.yaml").write_text("settings: {log-level: warning}\n")
    reader.follow("Upgrading, and going back")
    revisions = json.loads(reader.run(f"helm history reserver --namespace {NAMESPACE} -o json"))
    assert [each["description"] for each in revisions] == [
        "Install complete",
        "Upgrade complete",
        "Rollback to 1",
    ]
    with ExitStack() as stack:
        start_pod(reader, stack)
        see_it_kept(reader, "reserver-scheduler", "second")
    reader.follow("Uninstalling", but="delete -k")


def test_a_second_kube_scheduler_by_kustomize_comes_and_goes(reader: Reader) -> None:
    reader.follow("With kustomize")
    with ExitStack() as stack:
        start_pod(reader, stack)
        hold(reader, "third")
        see_it_kept(reader, "reserver-scheduler", "third")
    reader.follow("Uninstalling", but="helm")


def test_a_deployment_with_a_standby_finds_its_certificates(reader: Reader) -> None:
    reader.follow("A Deployment with a standby")
    template = reader.get("deployment reserver")["spec"]["template"]["spec"]
    (volume,) = template["volumes"]
    keys = reader.get(f"secret {volume['secret']['secretName']}")["data"]
    (mount,) = containers(template)["reserver"]["volumeMounts"]
    flags = containers(template)["reserver"]["args"]
    files = [each.partition("=")[2] for each in flags if mount["mountPath"] in each]
    assert {Path(each).name for each in files} == keys.keys()
    moved = [each.replace(mount["mountPath"], str(reader.folder)) for each in flags]
    here = (
        "--health-address=127.0.0.1:0",
        "--grpc-address=127.0.0.1:0",
        "--bind-address=127.0.0.1",
    )
    account = reader.folder / "account"
    service_account_kubeconfig(reader.plane.kubeconfig, NAMESPACE, "reserver", account)
    log = reader.folder / "reserver.log"
    with ReserverProcess(account, log, *moved, *here, wait_ready=False) as process:
        as_scheduler = "--cacert ca.crt --cert client.crt --key client.key"
        line = (
            f"curl -s -o /dev/null -w '%{{http_code}}' {as_scheduler} {process.url}/readyz || true"
        )
        wait_for(lambda: reader.run(line) == "200", "it leads, and kube-scheduler may call it")
    reader.follow("Uninstalling", but="delete -k")


def test_the_clusters_own_kube_scheduler_asks_a_reserver_in_its_static_pod(reader: Reader) -> None:
    reader.follow("A Deployment with a standby", only="openssl")
    reader.follow("In the static pod of the cluster's own kube-scheduler")
    (reader.folder / "manifest.yaml").write_text(STATIC_POD)
    apply = "--local -f manifest.yaml --type json --patch-file kube-scheduler+json.yaml"
    patched = reader.run(f"kubectl patch {apply} -o yaml")
    (reader.folder / "patched.yaml").write_text(patched)
    reader.run("kubectl create --dry-run=server -f patched.yaml")
    found = containers(yaml.safe_load(patched)["spec"])
    assert f"--config={ON_NODES}/kube-scheduler.yaml" in found["kube-scheduler"]["command"]
    flags = [each.replace(ON_NODES, str(reader.folder)) for each in found["reserver"]["args"]]
    here = ("--health-address=127.0.0.1:0", "--grpc-address=127.0.0.1:0")
    config = reader.folder / "kube-scheduler.yaml"
    config.write_text(config.read_text().replace(ON_NODES, str(reader.folder)))
    log = reader.folder / "reserver.log"
    with ReserverProcess(
        reader.folder / "kubeconfig", log, *flags, *here, wait_ready=False
    ) as process:
        admin = reader.plane.kubeconfig
        config.write_text(render_scheduler_config(config, kubeconfig=admin, port=process.port))
        hold(reader, "fourth")
        reader.plane.stop_scheduler("own")
        reader.plane.start_scheduler(config, "asking")
        see_it_kept(reader, "default-scheduler", "fourth")
        reader.plane.stop_scheduler("asking")
        reader.plane.start_scheduler(reader.plane.folder / "own.yaml", "own")
    reader.follow("Uninstalling", but="delete -k")
