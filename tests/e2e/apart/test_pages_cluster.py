"""The commands of README and docs that need a real control plane have their effects."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hack.controlplane.cluster import ControlPlane
from hack.controlplane.kubeconfig import kubectl
from hack.controlplane.nodes import create_nodes
from hack.controlplane.process import HeldPort
from hack.controlplane.scheduler_config import PLAIN_SCHEDULER, render_scheduler_config
from hack.reserver_process import ReserverProcess, wait_for
from tests.e2e.apart.patching import ASKED, COMPONENT, configurations, dump, is_trusted
from tests.e2e.cluster import shop
from tests.e2e.conftest import install_crd
from tests.e2e.forms import NAMED_STORE
from tests.pages import Reader
from tests.unit.test_pages import ON_A_CLUSTER, ON_THE_DEMO, REAL

pytestmark = pytest.mark.controlplane

WORKLOADS = """\
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web, namespace: shop}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      schedulerName: reserver-scheduler
      containers: [{name: main, image: none, resources: {requests: {cpu: "1"}}}]
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: kube-system}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      schedulerName: reserver-scheduler
      nodeSelector: {kubernetes.io/hostname: worker-3}
      containers: [{name: main, image: none}]
"""
PATCHED = """\
apiVersion: v1
kind: Pod
metadata: {name: web-0, namespace: shop}
spec:
  nodeName: worker-1
  containers: [{name: main, image: none, resources: {requests: {cpu: "1"}}}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: test, namespace: shop}
spec:
  selector: {matchLabels: {service: test}}
  template:
    metadata: {labels: {service: test}}
    spec: {schedulerName: nobody, containers: [{name: main, image: none}]}
"""
OPERATOR = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: prometheusrules.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  scope: Namespaced
  names: {kind: PrometheusRule, plural: prometheusrules}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
"""
FILES = {
    "operator.yaml": OPERATOR,
    "workloads.yaml": WORKLOADS,
    "patched.yaml": PATCHED,
    **dict.fromkeys(("tls.crt", "tls.key", "ca.crt"), "not looked at"),
}
_RESIZABLE = json.dumps(
    [
        {"op": "add", "path": f"/status/containerStatuses/0/{field}", "value": value}
        for field, value in (
            ("resources", {"requests": {"cpu": "1"}}),
            ("allocatedResources", {"cpu": "1"}),
        )
    ]
)
"""The container status of a kubelet with in-place resize, which KWOK does not write."""
_ITEM = '[{"pod": "web-0", "namespace": "shop", "cpu": 500, "mem": 0, "expire": 4070908800}]'
_LISTED = json.dumps({"data": {"worker-3": _ITEM}})
_MOVABLE = (
    "kubectl cordon worker-2 && kubectl cordon worker-3",
    "kubectl apply -f workloads.yaml",
    "kubectl rollout status -n shop statefulset/web",
    "kubectl rollout status -n kube-system daemonset/agent",
    "kubectl uncordon worker-2 && kubectl uncordon worker-3 && kubectl cordon worker-1",
)
_MOVED = (
    "kubectl delete -f workloads.yaml --wait=false",
    "kubectl delete podmoves -n shop --all",
    "kubectl uncordon worker-1 && kubectl uncordon worker-3",
)
SET_UPS = {
    "README.md": _MOVABLE,
    "docs/configmap.md": (
        f"kubectl patch configmap -n unicore reservation -p '{_LISTED}'",
        "kubectl apply -f scheduler-config/core/store.yaml",
    ),
    "docs/monitoring.md": (
        "kubectl apply -f operator.yaml",
        "kubectl wait --for=condition=Established -f operator.yaml",
    ),
    "docs/moves.md": _MOVABLE,
    "docs/multi-tenancy.md": ("kubectl apply -f scheduler-config/core/rbac-users.yaml",),
    "docs/patches.md": (
        "kubectl apply -f patched.yaml",
        "kubectl rollout status -n shop deployment/test --timeout 1s || true",
        "kubectl wait -n shop pod/web-0 --for=condition=Ready",
        f"kubectl patch pod web-0 -n shop --subresource status --type json -p '{_RESIZABLE}'",
        "reserver create owner --node worker-1 --owner pod/owner -n shop --cpu 2",
    ),
}
CLEAN_UPS = {
    "docs/monitoring.md": ("kubectl delete -f operator.yaml",),
    "docs/managed-clusters.md": (
        "kubectl delete -f admission.yaml -f pod.yaml --wait=false",
        "kubectl taint node worker-1 example.com/reserved-",
    ),
    "docs/moves.md": _MOVED,
    "docs/multi-tenancy.md": (
        "kubectl delete -f examples/quota.yaml",
        "kubectl delete rolebinding reserve -n shop",
    ),
    "docs/patches.md": ("kubectl delete -f patched.yaml --wait=false",),
    "docs/security-hardening.md": (
        "kubectl kustomize . | grep -q 'cidr: 192.0.2.0/28'",
        "kubectl delete -f examples/admission-policy.yaml",
        # The API server applies a deleted policy for a moment.
        "until kubectl apply --dry-run=server -f examples/reservation.yaml; do sleep 0.1; done",
    ),
    "README.md": (*_MOVED, "kubectl delete deployments -n reserver-system --all"),
}


@pytest.fixture(scope="module")
def cluster(
    control_plane: ControlPlane,
    api: Any,
    reserver: ReserverProcess,
    capacity_buffers: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ReserverProcess]:
    """A Reserver with all that pages switch on; three workers, and a namespace.

    The cluster's own scheduler places Reserver's pods; the pages' schedulers ask this Reserver: to
    another one the seat of a move may be news when the moved pod comes.
    """
    assert capacity_buffers
    folder = tmp_path_factory.mktemp("pages")
    admin = control_plane.kubeconfig
    nodes = create_nodes(admin, 3, cpu="4", memory="16Gi", prefix="worker")
    install_crd(api.api_client, "schedpatches.reserver.io", COMPONENT / "crd-patch.yaml")
    held = HeldPort()
    port = held.number
    for document in configurations(port):
        kubectl(admin, "apply", "-f", str(dump(folder / "hook.json", document)))
    store = f"--configmap={'/'.join(NAMED_STORE)}"
    flags = ("--grpc-address=127.0.0.1:0", "--pod-moves", f"--webhook-address=127.0.0.1:{port}")
    plain = folder / "plain.yaml"
    plain.write_text(render_scheduler_config(PLAIN_SCHEDULER, kubeconfig=admin))
    control_plane.start_scheduler(plain, "plain")
    process = ReserverProcess(admin, folder / "log", store, *flags)
    process.stand_in_for(reserver)
    with shop(api, admin, {ASKED: "yes"}), reserver.down(), process:
        wait_for(lambda: is_trusted(api, port), "the API server trusts the webhooks")
        yield process
    control_plane.stop_scheduler("plain")
    for kind in ("mutating", "validating"):
        kubectl(admin, "delete", f"{kind}webhookconfiguration", "reserver")
    # The manifests set it; what stands in for Reserver's pod elsewhere does not meet it.
    enforce = "pod-security.kubernetes.io/enforce-"
    kubectl(admin, "label", "namespace", "reserver-system", enforce)
    for node in nodes:
        api.delete_node(node)


@pytest.mark.parametrize("page", ON_A_CLUSTER)
def test_the_page_shows_what_happens_on_a_cluster(
    cluster: ReserverProcess, control_plane: ControlPlane, tools: str, page: str, tmp_path: Path
) -> None:
    environment = {
        "KUBECONFIG": str(control_plane.kubeconfig),
        "RESERVER_ADDRESS": cluster.grpc_address,
        "PATH": tools,
    }
    reader = Reader(tmp_path, environment)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    for line in SET_UPS.get(page, ()):
        reader.has(line)
    try:
        reader.follow(page, only=REAL if page in ON_THE_DEMO else ())
    finally:
        for line in CLEAN_UPS.get(page, ()):
            reader.has(line)
