"""From nothing to a protected cluster, by the commands of docs/install.md, and back to nothing.

The API server, the controllers and the schedulers are real. KWOK plays the kubelets; where a pod of
the manifests would run programs, they are started here, with its flags, its configuration and its
service account.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.controlplane.cluster import ControlPlane
from hack.controlplane.kubeconfig import service_account_kubeconfig
from hack.controlplane.scheduler_config import render_scheduler_config
from hack.reserver_process import ReserverProcess, wait_for
from tests.installing import (
    NAMESPACE,
    Reader,
    containers,
    empty_cluster,
    give_addresses,
    hold,
    pod,
    reached,
    reading,
    running,
    see_it_kept,
)

pytestmark = [pytest.mark.controlplane, pytest.mark.timeout(600)]

ON_NODES = "/etc/kubernetes/reserver"

STATIC_POD = Path(__file__).parent / "static-pod.yaml"
CLUSTER_CONFIGURATION = """\
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.37.0
"""


HELM_TEST = f"""\
helm test reserver --namespace {NAMESPACE} --timeout 60s & tested=$!
pod="kubectl --namespace {NAMESPACE}"
$pod wait --for=create pod/reserver-test --timeout 60s
$pod wait --for=condition=PodScheduled pod/reserver-test --timeout 60s
$pod patch pod reserver-test --subresource status --patch '{{"status": {{"phase": "Succeeded"}}}}'
wait $tested
"""
"""As no kubelet runs its pod, which has to be bound for that, its end is played here."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with empty_cluster() as plane:
        yield plane


@pytest.fixture
def reader(cluster: ControlPlane, tmp_path: Path) -> Iterator[Reader]:
    """A reader whose cluster is in the end as before."""
    someone = reading(cluster, tmp_path)
    assert not someone.left()
    yield someone
    assert not someone.left()


def start_pod(reader: Reader, stack: ExitStack, name: str = "second") -> ReserverProcess:
    """Start Reserver as the kubelet does in a pod of the second kube-scheduler; return it."""
    template = reader.get("deployment reserver-scheduler")["spec"]["template"]["spec"]
    account = reader.folder / f"{name}-account"
    service_account_kubeconfig(
        reader.plane.kubeconfig, reader.namespace, template["serviceAccountName"], account
    )
    reserver = containers(template)["reserver"]
    flags = reserver["args"]
    for mount in reserver.get("volumeMounts", ()):
        flags = [each.replace(mount["mountPath"], str(reader.folder)) for each in flags]
    # Its ports are those of a pod; there may be others of us on this machine.
    flags = [each.replace(":9443", ":0") for each in flags]
    process = ReserverProcess(account, reader.folder / f"{name}.log", *flags, as_shipped=True)
    stack.enter_context(process)
    (volume,) = (each for each in template["volumes"] if each["name"] == "config")
    config = reader.folder / f"{name}.yaml"
    config.write_text(
        reader.get(f"configmap {volume['configMap']['name']}")["data"]["kube-scheduler.yaml"]
    )
    config.write_text(render_scheduler_config(config, kubeconfig=account, port=process.port))
    reader.plane.start_scheduler(config, name, leader_elect=True)
    stack.callback(reader.plane.stop_scheduler, name)
    return process


def see_tenants_leave_some(reader: Reader) -> None:
    """See that tenants get no more than 80 % of the 8 CPUs, within their quota of as much."""
    spec = {"owners": [{"pod": {"name": "owner"}}], "resources": {"cpu": "3500m"}, "ttl": "1h"}
    kind = {"apiVersion": "reserver.io/v1alpha1", "kind": "Reservation"}
    metadata = {"name": "most", "namespace": "default"}
    reader.apply({**kind, "metadata": metadata, "spec": {**spec, "slots": 2}})
    line = "kubectl get reservation most -o jsonpath='{.status.conditions[*].message}'"
    wait_for(lambda: "tenantCeiling of the cluster" in reader.run(line), "the ceiling is told of")
    reader.run("kubectl delete reservation most")


def see_it_called(reader: Reader, process: ReserverProcess) -> None:
    """See that the Service leads to the pod, where gRPC asks for a token, over TLS."""
    wait_for(lambda: running(reader.plane, reader.namespace), "its pod runs")
    give_addresses(reader.plane, reader.namespace)
    wait_for(lambda: reached(reader.plane, reader.namespace) == 1, "the Service has its pod")
    address = f"127.0.0.1:{process.grpc_address.rpartition(':')[2]}"
    call = f"reserver get --address {address} --ca-file ca.crt -o json"
    token = f"kubectl --namespace {NAMESPACE} create token reserver"
    assert json.loads(reader.run(f'{call} --token "$({token})"'))["reservations"]
    assert "a token that the API server knows" in reader.run(f"{call} --token wrong 2>&1 || true")


def see_a_mistyped_image_stop_nothing(reader: Reader) -> None:
    """Upgrade to an image that no kubelet can pull, and go back by the page's command."""
    release = f"reserver charts/reserver --namespace {NAMESPACE} --values values.yaml"
    reader.run(f"! helm upgrade {release} --set image.tag=typo --wait --timeout 3s")

    def images() -> list[tuple[str, bool]]:
        found = []
        for each in reader.get("pods --selector app.kubernetes.io/name=reserver")["items"]:
            image = containers(each["spec"])["reserver"]["image"]
            found_conditions = each["status"].get("conditions", ())  # None before it is scheduled.
            conditions = {one["type"]: one["status"] for one in found_conditions}
            if conditions.get("PodScheduled") == "True":
                found.append((image.rpartition(":")[2], conditions.get("Ready") == "True"))
        return sorted(found)

    wait_for(lambda: images() == [("1.0", True), ("typo", False)], "the old pod is there beside it")
    reader.follow("Upgrade", only="helm rollback")
    wait_for(lambda: images() == [("1.0", True)], "the new pod is gone")


def test_a_second_kube_scheduler_by_helm_is_upgraded_rolled_back_and_uninstalled(
    reader: Reader,
) -> None:
    reader.follow("With Helm")
    with ExitStack() as stack:
        start_pod(reader, stack)
        reader.run(HELM_TEST)
        hold(reader, "first")
        see_it_kept(reader, "reserver-scheduler", "first")
        see_tenants_leave_some(reader)
        hold(reader, "second")
    reader.apply(pod("second-stranger", "reserver-scheduler"))
    (reader.folder / "values.yaml").write_text("settings: {log-level: warning}\n")
    reader.follow("Upgrade")
    revisions = json.loads(reader.run(f"helm history reserver --namespace {NAMESPACE} -o json"))
    assert [each["description"] for each in revisions] == [
        "Install complete",
        "Upgrade complete",
        "Rollback to 1",
    ]
    with ExitStack() as stack:
        start_pod(reader, stack)
        see_it_kept(reader, "reserver-scheduler", "second")
    see_a_mistyped_image_stop_nothing(reader)
    reader.follow("Uninstall", but="delete -k")


def test_a_second_kube_scheduler_by_kustomize_comes_and_goes(reader: Reader) -> None:
    """In a namespace of another name; with gRPC on a Service, its certificate as a standby's."""
    reader.follow("Another namespace")
    reader.namespace = "held"
    reader.follow("Standby", only="openssl")
    reader.run(
        "sed -i 's|scheduler-config/components/tenants|&, scheduler-config/components/grpc|;"
        "s|scheduler-config/|held/|g' kustomization.yaml"
    )
    reader.follow("With kustomize")
    template = reader.get("deployment reserver-scheduler")["spec"]["template"]["spec"]
    _, _, tag = containers(template)["kube-scheduler"]["image"].partition(":")
    assert f"newTag: {tag}" in (reader.folder / "kustomization.yaml").read_text()
    with ExitStack() as new:
        with ExitStack() as old:
            process = start_pod(reader, old)
            hold(reader, "third")
            see_it_called(reader, process)
            see_it_kept(reader, "reserver-scheduler", "third")
            hold(reader, "rolled")
            start_pod(reader, new, "new")  # In a roll-out, the old pod goes once this one is ready.
        see_it_kept(reader, "reserver-scheduler", "rolled")
    reader.follow("Uninstall", but="helm")


def test_a_deployment_with_a_standby_finds_its_certificates(reader: Reader) -> None:
    reader.follow("Standby")
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
    reader.follow("Uninstall", but="delete -k")


def patched_static_pod(reader: Reader) -> dict[str, Any]:
    """Patch kube-scheduler's static pod as kubeadm does; return its containers by name."""
    kubeadm = [*yaml.safe_load_all((reader.folder / "kubeadm.yaml").read_text())]
    assert [each["kind"] for each in kubeadm] == ["ClusterConfiguration", "InitConfiguration"]
    apply = f"--local -f {STATIC_POD} --type json --patch-file kube-scheduler+json.yaml"
    patched = reader.run(f"kubectl patch {apply} -o yaml")
    (reader.folder / "patched.yaml").write_text(patched)
    reader.run("kubectl create --dry-run=server -f patched.yaml")
    return containers(yaml.safe_load(patched)["spec"])


def test_the_clusters_own_kube_scheduler_asks_a_reserver_in_its_static_pod(reader: Reader) -> None:
    reader.follow("Standby", only="openssl")
    data = {"ClusterConfiguration": CLUSTER_CONFIGURATION}  # As kubeadm leaves it in the cluster.
    metadata = {"name": "kubeadm-config", "namespace": "kube-system"}
    reader.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
    reader.follow("Static pod")
    found = patched_static_pod(reader)
    assert f"--config={ON_NODES}/kube-scheduler.yaml" in found["kube-scheduler"]["command"]
    flags = [each.replace(ON_NODES, str(reader.folder)) for each in found["reserver"]["args"]]
    here = ("--health-address=127.0.0.1:0", "--grpc-address=127.0.0.1:0")
    config = reader.folder / "kube-scheduler.yaml"
    config.write_text(config.read_text().replace(ON_NODES, str(reader.folder)))
    admin, shipped, plane = reader.plane.kubeconfig, config.read_text(), reader.plane
    start = partial(
        ReserverProcess, reader.folder / "kubeconfig", wait_ready=False, as_shipped=True
    )

    def start_scheduler(name: str, process: ReserverProcess) -> None:
        config = reader.folder / f"{name}.yaml"
        config.write_text(shipped)
        text = render_scheduler_config(config, kubeconfig=admin, port=process.port)
        config.write_text(text)
        plane.start_scheduler(config, name, leader_elect=True)

    # Each node of the control plane has the same files.
    with start(reader.folder / "second.log", *flags, *here) as second:
        with start(reader.folder / "first.log", *flags, *here) as first:
            hold(reader, "fourth")
            plane.stop_scheduler("own")
            start_scheduler("first", first)
            see_it_kept(reader, "default-scheduler", "fourth")
            hold(reader, "fifth")
            start_scheduler("second", second)
            # A mistyped image on the first node: its kubelet ends the old pod and starts no other.
            plane.stop_scheduler("first")
        see_it_kept(reader, "default-scheduler", "fifth")
        plane.stop_scheduler("second")
        plane.start_scheduler(plane.folder / "own.yaml", "own")
    reader.follow("Uninstall", but="delete -k")
