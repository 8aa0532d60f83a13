"""The RBAC rights of the manifests suffice, and exclude everything else.

That Reserver needs each of them, and no others, is judged after all tests (tests/rights).
"""

from __future__ import annotations

import json
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.client import AuthorizationV1Api

from hack.controlplane.cluster import ControlPlane
from hack.controlplane.kubeconfig import service_account_kubeconfig
from hack.controlplane.scheduler_config import render_scheduler_config
from hack.reserver_process import ReserverProcess, wait_for
from reserver.cluster.pod import PodName
from reserver.extender.pod_writes import PodWrites
from reserver.k8s import credentials
from reserver.k8s.client import ApiClient
from reserver.scheduling.verdicts import Retry
from tests.e2e.cluster import Corner
from tests.e2e.conftest import RBAC, grant
from tests.e2e.forms import SPEC

pytestmark = pytest.mark.controlplane

BASE = Path(__file__).parents[2] / "scheduler-config/base"
SCHEDULER_RBAC = BASE / "rbac-scheduler.yaml"
SCHEDULER_CONFIG = BASE / "kube-scheduler.yaml"


async def test_a_refused_pod_is_tried_again_without_the_right_to_patch_pods(
    corner: Corner, reserver: ReserverProcess, reserver_kubeconfig: Path, kubeconfig: Path
) -> None:
    (node,) = corner.add_nodes(1, cpu="4")
    corner.reserve(SPEC, node, "owner", cpu="4")
    corner.wait_held(node)
    corner.create_pod("stranger", {"cpu": "2"})
    corner.wait_refused("stranger", "held by reservation")
    calls = 'reserver_extender_calls_total{outcome="refused",verb="filter"}'

    def is_called_since(before: float) -> bool:
        return reserver.metric(calls) > before

    async with ApiClient(await credentials.load(kubeconfig)) as administrator:
        pod = await PodWrites(administrator, time.time).read_pod(PodName(corner.name, "stranger"))
    async with ApiClient(await credentials.load(reserver_kubeconfig)) as client:
        for times in (1, 2):
            before = reserver.metric(calls)
            await PodWrites(client, time.time).carry_out(Retry(pod, attempts=1))
            wait_for(partial(is_called_since, before), f"it is tried again ({times})")


def test_a_pod_that_reserver_has_not_seen_is_read(reserver: ReserverProcess) -> None:
    call = {"PodName": "gone", "PodNamespace": "default", "PodUID": "uid", "Node": "none"}
    status, answer = reserver.post("/bind", json.dumps(call).encode())
    assert (status, 'pods "gone" not found' in answer["Error"]) == (200, True), answer


FORBIDDEN = (
    # Verb, group, resource, namespace. With these a break-in would be one into the whole cluster.
    ("patch", "", "pods", "kube-system"),
    ("update", "", "pods", "kube-system"),
    ("create", "", "pods", "reserver-system"),
    ("delete", "", "pods", "kube-system"),
    ("create", "", "pods/eviction", "kube-system"),
    ("create", "", "pods/exec", "kube-system"),
    ("patch", "", "pods/ephemeralcontainers", "kube-system"),
    ("patch", "", "pods/resize", "kube-system"),
    ("get", "", "secrets", "reserver-system"),
    ("list", "", "secrets", ""),
    ("get", "", "configmaps", "kube-system"),
    ("patch", "", "configmaps", "kube-system"),
    ("delete", "", "configmaps", "reserver-system"),
    ("patch", "", "nodes", ""),
    ("patch", "", "nodes/status", ""),
    ("get", "", "nodes/proxy", ""),
    ("create", "", "serviceaccounts/token", "reserver-system"),
    ("impersonate", "", "users", ""),
    ("patch", "apps", "deployments", "reserver-system"),
    ("update", "coordination.k8s.io", "leases", "kube-system"),
    ("patch", "rbac.authorization.k8s.io", "clusterroles", ""),
    ("create", "rbac.authorization.k8s.io", "clusterrolebindings", ""),
    ("patch", "apiextensions.k8s.io", "customresourcedefinitions", ""),
    ("deletecollection", "reserver.io", "reservations", "kube-system"),
)


def test_who_breaks_into_reserver_has_not_broken_into_the_cluster(api: Any) -> None:
    grant_as_shipped(api, RBAC, "burglar")
    burglar = "system:serviceaccount:reserver-system:burglar"
    reviews: Any = AuthorizationV1Api(api.api_client)
    for verb, group, whole, namespace in FORBIDDEN:
        resource, _, subresource = whole.partition("/")
        asked = {"verb": verb, "group": group, "resource": resource, "subresource": subresource}
        body = {"spec": {"user": burglar, "resourceAttributes": {**asked, "namespace": namespace}}}
        assert not reviews.create_subject_access_review(body).status.allowed, (verb, whole)


def grant_as_shipped(api: Any, file: Path, account: str) -> None:
    """Grant the rights of a manifest to an account that no other test changes."""
    subject = {"kind": "ServiceAccount", "name": account, "namespace": "reserver-system"}
    documents = [
        each
        for each in yaml.safe_load_all(file.read_text())
        if "roleRef" in each or "rules" in each
    ]
    roles = {each["metadata"]["name"] for each in documents if "rules" in each}
    api.create_namespaced_service_account("reserver-system", {"metadata": {"name": account}})
    for document in documents:
        document["metadata"]["name"] += f"-{account}"
        if "roleRef" in document:
            document["subjects"] = [subject]
            if document["roleRef"]["name"] in roles:
                document["roleRef"]["name"] += f"-{account}"
        grant(api, document)


def test_kube_scheduler_schedules_with_the_rights_that_we_ship(
    control_plane: ControlPlane, api: Any, reserver: ReserverProcess, tmp_path: Path
) -> None:
    """A service account with only the rights of `base` suffices, including leader election."""
    grant_as_shipped(api, SCHEDULER_RBAC, "as-shipped")
    kubeconfig, config = tmp_path / "kubeconfig", tmp_path / "config.yaml"
    service_account_kubeconfig(
        control_plane.kubeconfig, "reserver-system", "as-shipped", kubeconfig
    )
    rendered = render_scheduler_config(
        SCHEDULER_CONFIG,
        kubeconfig=kubeconfig,
        port=reserver.port,
        scheduler_name="as-shipped",
    )
    config.write_text(rendered)
    control_plane.start_scheduler(config, "as-shipped", leader_elect=True)
    corner = Corner(control_plane.kubeconfig, "as-shipped", api)
    corner.open()
    try:
        (node,) = corner.add_nodes(1, cpu="4")
        corner.create_pod("web-0", {"cpu": "1"})
        assert corner.wait_bound("web-0") == node
    finally:
        control_plane.stop_scheduler("as-shipped")  # Else events come too late for the namespace.
        corner.close()
    log = (control_plane.logs_dir / "as-shipped.log").read_text()
    assert "forbidden" not in log.lower(), log[-4000:]
