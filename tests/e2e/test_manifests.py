"""The manifests as kubectl renders them, judged by the real API server."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.client import AuthorizationV1Api, CustomObjectsApi, RbacAuthorizationV1Api
from kubernetes.client.exceptions import ApiException

from hack.controlplane.build import bin_dir
from hack.controlplane.cluster import ControlPlane
from hack.controlplane.kubeconfig import kubectl
from hack.reserver_process import wait_for
from tests.e2e.cluster import Corner
from tests.e2e.forms import OBJECTS

pytestmark = pytest.mark.controlplane

ROOT = Path(__file__).parents[2] / "scheduler-config"
POLICY = ROOT.parent / "examples/admission-policy.yaml"
COMPONENTS = sorted(
    path.parent
    for path in ROOT.glob("components/*/kustomization.yaml")
    if path.parent.name != "monitoring"  # ServiceMonitors are known where their operator is.
)


def overlay(folder: Path, name: str, *components: Path) -> Path:
    """Write a user's kustomization.yaml, as the docs have it; return its folder."""
    folder.mkdir(exist_ok=True)
    wanted = {
        "resources": [os.path.relpath(ROOT / name, folder)],
        "components": [os.path.relpath(component, folder) for component in components],
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(wanted))
    return folder


@pytest.mark.parametrize("name", ["base", "standby", "static-pod"])
@pytest.mark.usefixtures("api")  # Has made the namespace, without which a dry run finds none.
def test_the_api_server_takes_them(control_plane: ControlPlane, tmp_path: Path, name: str) -> None:
    flags = ["--dry-run=server", "--validate=strict", "--server-side", "--force-conflicts"]
    last = {
        "base": "deployment.apps/reserver-scheduler",
        "standby": "deployment.apps/reserver",
        "static-pod": "configmap/reserver-static-pod",
    }
    fitting = [each for each in COMPONENTS if each.name != "grpc" or name == "base"]
    with_components = overlay(tmp_path, name, *fitting)
    for wanted in (ROOT / name, *([with_components] if name in {"base", "standby"} else [])):
        done = kubectl(control_plane.kubeconfig, "apply", *flags, "-k", str(wanted))
        assert last[name] in done


def test_who_may_edit_may_reserve_only_where_that_is_wanted(
    corner: Corner, control_plane: ControlPlane, tmp_path: Path
) -> None:
    """As the cluster's own roles `view`, `edit` and `admin` are made up by its controller."""
    rbac: Any = RbacAuthorizationV1Api(corner.api.api_client)
    reviews: Any = AuthorizationV1Api(corner.api.api_client)
    for role in ("view", "edit", "admin"):
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
        subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": role}
        binding = {"metadata": {"name": role}, "roleRef": reference, "subjects": [subject]}
        rbac.create_namespaced_role_binding(corner.name, binding)

    def may(user: str, verb: str, namespace: str = corner.name) -> bool:
        asked = {"verb": verb, "resource": "reservations", "group": "reserver.io"}
        body = {"spec": {"user": user, "resourceAttributes": {**asked, "namespace": namespace}}}
        return bool(reviews.create_subject_access_review(body).status.allowed)

    def apply(wanted: Path) -> None:
        shown = subprocess.run(
            [bin_dir() / "kubectl", "kustomize", wanted], check=True, capture_output=True, text=True
        )
        roles = [
            each
            for each in yaml.safe_load_all(shown.stdout)
            if each["metadata"]["name"] in {"reserver-edit", "reserver-view"}
        ]
        (tmp_path / "roles.yaml").write_text(yaml.safe_dump_all(roles))
        flags = ("--server-side", "--force-conflicts", "-f", str(tmp_path / "roles.yaml"))
        kubectl(control_plane.kubeconfig, "apply", *flags)

    apply(ROOT / "core")
    wait_for(lambda: may("view", "list") and may("edit", "list"), "who may view sees reservations")
    assert not any(may(user, "create") for user in ("view", "edit", "admin"))
    apply(overlay(tmp_path / "tenants", "core", ROOT / "components/tenants"))
    wait_for(lambda: may("edit", "create") and may("admin", "create"), "who may edit reserves")
    assert not may("view", "create")
    assert not may("edit", "create", "reserver-system")
    apply(ROOT / "core")
    wait_for(lambda: not may("edit", "create") and not may("admin", "create"), "no more")


@pytest.mark.parametrize("name", ["base", "standby"])
def test_the_namespace_takes_their_pods(corner: Corner, name: str) -> None:
    """As restricted as the shipped namespace says that its pods are."""
    namespace = yaml.safe_load((ROOT / "core/namespace.yaml").read_text())
    corner.api.patch_namespace(
        corner.name, {"metadata": {"labels": namespace["metadata"]["labels"]}}
    )
    with suppress(ApiException):
        corner.api.create_namespaced_service_account(
            corner.name, {"metadata": {"name": "reserver"}}
        )
    (deployment,) = yaml.safe_load_all((ROOT / name / "deployment.yaml").read_text())
    template = deployment["spec"]["template"]
    pod = {"metadata": {**template["metadata"], "name": name}, "spec": template["spec"]}
    assert corner.api.create_namespaced_pod(corner.name, pod, dry_run="All")
    pod["spec"]["hostNetwork"] = True

    def refusal() -> str:
        try:
            corner.api.create_namespaced_pod(corner.name, pod, dry_run="All")
        except ApiException as error:
            return str(error.body)
        return ""

    # The API server may read the namespace's labels later than a client does.
    wait_for(lambda: "violates PodSecurity" in refusal(), "the namespace is restricted")


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "names a node": ({"node": "worker-1"}, "spec.node names worker-1"),
    "is firm": ({"preemptible": False}, "the hold is firm"),
    "lasts a day by default": ({"ttl": None}, "longer than 14400s"),
    "lasts for ever": ({"ttl": "0"}, "longer than 14400s"),
    "lasts for ever, as a number": ({"ttl": 0}, "longer than 14400s"),
    "lasts too long": ({"ttl": "4h1s"}, "longer than 14400s"),
    "ends too late": ({"ttl": None, "expiresAt": "2999-01-01T00:00:00Z"}, "longer than 14400s"),
}


def test_the_sample_policy_refuses_tenants_what_it_says(
    corner: Corner, control_plane: ControlPlane
) -> None:
    modest: dict[str, Any] = {
        "owners": [{"pod": {"name": "web-0"}}],
        "resources": {"cpu": "1"},
        "preemptible": True,
        "ttl": "4h",
    }
    objects: Any = CustomObjectsApi(corner.api.api_client)
    where = (*OBJECTS, corner.name, "reservations")

    def refusal(name: str, change: dict[str, Any]) -> str:
        """Return why a new one is refused, or for "modest" the edit of one; empty if it is not."""
        spec = {key: value for key, value in (modest | change).items() if value is not None}
        try:
            if name == "modest":
                objects.patch_namespaced_custom_object(*where, name, {"spec": change})
            else:
                corner.write_object(name, spec)
        except ApiException as error:
            return str(error.body)
        return ""

    corner.write_object("before", {**modest, "ttl": "5h"})
    kubectl(control_plane.kubeconfig, "apply", "-f", str(POLICY))
    try:
        wait_for(lambda: refusal("probe", {"node": "worker-1"}), "the policy is in force")
        corner.write_object("modest", modest)
        soon = (datetime.now(UTC) + timedelta(hours=3)).isoformat()
        assert not refusal("ends", {"ttl": None, "expiresAt": soon})
        for change, words in REFUSED.values():
            assert words in refusal("new", change)
            assert words in refusal("modest", change)  # Nor by an edit, afterwards.
        labelled = {"metadata": {"labels": {"what-was-there": "may-be-labelled"}}}
        objects.patch_namespaced_custom_object(*where, "before", labelled)
        corner.write_object(corner.name, {**modest, "node": "worker-1"}, "reserver-system")
    finally:
        kubectl(control_plane.kubeconfig, "delete", "-f", str(POLICY))
        wait_for(lambda: not refusal("after", {"node": "worker-1"}), "others may name nodes again")
