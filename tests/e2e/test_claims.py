"""Claims of pods that are gone, while the entry is still in the store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from kubernetes.client import AuthorizationV1Api, RbacAuthorizationV1Api

from hack.controlplane.cluster import ControlPlane
from hack.reserver_process import ReserverProcess, wait_for
from tests.e2e.cluster import Corner
from tests.e2e.forms import OBJECT, SPEC, Form
from tests.e2e.test_status import companion, wait_status
from tests.rights.audit import RESERVER

pytestmark = pytest.mark.controlplane

TIDYING = {"configmaps": "patch", "reservations": "delete"}
GROUPS = {"configmaps": "", "reservations": "reserver.io"}


@contextmanager
def nothing_tidied(corner: Corner, form: Form) -> Iterator[None]:
    """Take away Reserver's right to remove entries; claimed entries then stay in the store."""
    rbac: Any = RbacAuthorizationV1Api(corner.api.api_client)
    name = "reserver"
    if form.is_object:
        before = rbac.read_cluster_role(name)
    else:
        before = rbac.read_namespaced_role(name, form.store[0])
    resource = "reservations" if form.is_object else "configmaps"
    poorer = [_without(rule, resource) for rule in before.rules]

    def write(rules: list[Any]) -> None:
        if form.is_object:
            rbac.patch_cluster_role(name, {"rules": rules})
        else:
            rbac.patch_namespaced_role(name, form.store[0], {"rules": rules})
        wait_for(lambda: _may(corner, form, resource) is (rules is before.rules), "it is in force")

    write(poorer)
    try:
        yield
    finally:
        write(before.rules)


def _without(rule: Any, resource: str) -> dict[str, Any]:
    verbs = [v for v in rule.verbs if resource not in rule.resources or v != TIDYING[resource]]
    names = {"resourceNames": rule.resource_names} if rule.resource_names else {}
    return {"apiGroups": rule.api_groups, "resources": rule.resources, "verbs": verbs, **names}


def _may(corner: Corner, form: Form, resource: str) -> bool:
    reviews: Any = AuthorizationV1Api(corner.api.api_client)
    asked: dict[str, str] = {"verb": TIDYING[resource], "resource": resource}
    asked |= {"group": GROUPS[resource], "namespace": form.store[0]}
    body = {"spec": {"user": RESERVER, "resourceAttributes": asked}}
    return bool(reviews.create_subject_access_review(body).status.allowed)


def test_a_pod_that_came_and_went_around_a_crash_has_claimed(corner: Corner, form: Form) -> None:
    """A pod is bound, Reserver is killed before cleaning, the pod is deleted, Reserver starts."""
    (node,) = corner.add_nodes(1, cpu="4")
    key = corner.reserve(form, node, "owner", cpu="2000m")
    corner.wait_held(node)
    with ExitStack() as crashed:
        with nothing_tidied(corner, form):
            corner.create_pod("owner", {"cpu": "2"})
            assert corner.wait_bound("owner") == node
            crashed.enter_context(ReserverProcess.all_down())
        corner.delete_pod("owner")
        assert key in corner.texts(form)
    wait_for(lambda: not corner.entries_for(form, "owner"), "the claimed entry is removed")
    corner.create_pod("stranger", {"cpu": "4"})
    assert corner.wait_bound("stranger") == node


@pytest.mark.parametrize("form", [SPEC, OBJECT], ids=lambda form: form.name)
def test_a_slot_stays_claimed_when_nobody_remembers_the_pod(
    corner: Corner, control_plane: ControlPlane, reserver: ReserverProcess, form: Form
) -> None:
    """Its pod is gone, Reserver is killed, and the API server forgets: the status has it."""
    (node,) = corner.add_nodes(1, cpu="4")
    owners = [{"pod": {"name": name, "namespace": corner.name}} for name in ("first", "second")]
    spec = {"owners": owners, "slots": 2, "node": node, "resources": {"cpu": "1500m"}}
    spec["ttl"] = "24h" if form.is_object else "0"  # A team's does not live for ever.
    key = f"{corner.name}.pair"
    if form.is_object:
        corner.write_object(key, spec)
    else:
        corner.patch_store(form.store, {key: json.dumps(spec)})
    corner.wait_held(node)
    corner.create_pod("first", {"cpu": "1500m"})
    assert corner.wait_bound("first") == node
    uid = corner.pod("first").metadata.uid
    wait_for(lambda: uid in _status(corner, form, key), "the claim is recorded")
    corner.delete_pod("first")
    if not form.is_object:  # The store is written again: it is younger now than the claim.
        wait_status(corner, form, corner.reserve(form, node, "other", cpu="500m"), backed=True)
    with reserver.down():
        control_plane.restart_apiserver()
    corner.create_pod("stranger", {"cpu": "2"})  # 4 CPUs, 1.5 of them held for the second.
    assert corner.wait_bound("stranger") == node
    corner.create_pod("second", {"cpu": "1500m"})
    assert corner.wait_bound("second") == node


def _status(corner: Corner, form: Form, key: str) -> str:
    if form.is_object:
        return json.dumps((corner.object(key) or {}).get("status", {}).get("claims"))
    return (companion(corner, form.store) or {}).get(key, "")
