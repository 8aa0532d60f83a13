"""The manifests as kubectl renders them, judged by the real API server."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.client import AuthorizationV1Api, RbacAuthorizationV1Api

from hack.controlplane.build import bin_dir
from hack.controlplane.cluster import ControlPlane
from hack.controlplane.kubeconfig import kubectl
from hack.reserver_process import wait_for
from tests.e2e.cluster import Corner

pytestmark = pytest.mark.controlplane

ROOT = Path(__file__).parents[2] / "scheduler-config"
COMPONENTS = sorted(path.parent for path in ROOT.glob("components/*/kustomization.yaml"))


def overlay(folder: Path, name: str, *components: Path) -> Path:
    """Write a user's kustomization.yaml, as the docs have it; return its folder."""
    folder.mkdir(exist_ok=True)
    wanted = {
        "resources": [os.path.relpath(ROOT / name, folder)],
        "components": [os.path.relpath(component, folder) for component in components],
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(wanted))
    return folder


@pytest.mark.parametrize("name", ["base", "standby"])
@pytest.mark.usefixtures("api")  # Has made the namespace, without which a dry run finds none.
def test_the_api_server_takes_them(control_plane: ControlPlane, tmp_path: Path, name: str) -> None:
    flags = ["--dry-run=server", "--validate=strict", "--server-side", "--force-conflicts"]
    for wanted in (ROOT / name, overlay(tmp_path, name, *COMPONENTS)):
        done = kubectl(control_plane.kubeconfig, "apply", *flags, "-k", str(wanted))
        assert f"deployment.apps/reserver{'-scheduler' if name == 'base' else ''}" in done


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
    wait_for(lambda: may("view", "list"), "who may view sees reservations")
    assert may("edit", "list")
    assert not any(may(user, "create") for user in ("view", "edit", "admin"))
    apply(overlay(tmp_path / "tenants", "core", ROOT / "components/tenants"))
    wait_for(lambda: may("edit", "create") and may("admin", "create"), "who may edit reserves")
    assert not may("view", "create")
    assert not may("edit", "create", "reserver-system")
    apply(ROOT / "core")
    wait_for(lambda: not may("edit", "create") and not may("admin", "create"), "no more")
