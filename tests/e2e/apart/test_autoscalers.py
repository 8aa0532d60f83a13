"""Autoscalers are kept from nodes that are held, and have room to make for what finds no place.

tests/karpenter has a real autoscaler.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.client import AdmissionregistrationV1Api, CoreV1Api, CustomObjectsApi
from kubernetes.client.exceptions import ApiException
from kubernetes.config import new_client_from_config

from hack.reserver_process import wait_for
from reserver.k8s.objects.nodes import KEEPING, KEPT, MAINTENANCE_ANNOTATION
from tests.e2e.apart.yard import Yard
from tests.e2e.cluster import GROUP
from tests.e2e.conftest import grant
from tests.e2e.forms import SPEC
from tests.rights.audit import AUTOSCALERS, MAINTENANCE, MOVER, RESERVER

pytestmark = pytest.mark.controlplane

THEIRS = KEEPING[0]
KEEPER = f"{RESERVER}-keeper"
"""Reserver with the rights of components/autoscalers alone."""


def marks(yard: Yard, node: str) -> dict[str, str]:
    found: dict[str, str] = yard.corner.api.read_node(node).metadata.annotations or {}
    return {name: text for name, text in found.items() if name in {KEPT, *KEEPING}}


def test_a_node_is_kept_for_as_long_as_it_is_held_and_what_people_set_stays(yard: Yard) -> None:
    first, second = yard.nodes
    corner = yard.corner
    corner.api.patch_node(second, {"metadata": {"annotations": {THEIRS: "true"}}})
    keys = [corner.reserve(SPEC, node, f"owner-{node}", cpu="1") for node in yard.nodes]
    ours = {KEPT: ",".join(KEEPING), **dict.fromkeys(KEEPING, "true")}
    wait_for(lambda: marks(yard, first) == ours, "the first node is kept")
    theirs = {**ours, KEPT: KEEPING[1]}
    wait_for(lambda: marks(yard, second) == theirs, "the second node is kept")
    corner.patch_store(SPEC.store, dict.fromkeys(keys))
    wait_for(lambda: not marks(yard, first), "the first node is let go")
    wait_for(lambda: marks(yard, second) == {THEIRS: "true"}, "theirs stays")


def buffers(yard: Yard) -> list[Any]:
    """Return the CapacityBuffers of the namespace as the API server has them."""
    custom: Any = CustomObjectsApi(yard.corner.api.api_client)
    where = ("autoscaling.x-k8s.io", "v1beta1", yard.corner.name, "capacitybuffers")
    found: list[Any] = custom.list_namespaced_custom_object(*where)["items"]
    return found


def shape(yard: Yard) -> Any:
    """Return the spec of the only buffer's pods; None if there is none.

    Templates of buffers that are gone go later, with the garbage.
    """
    here = buffers(yard)
    for each in yard.corner.api.list_namespaced_pod_template(yard.corner.name).items:
        owners = [(owner.kind, owner.uid) for owner in each.metadata.owner_references or ()]
        if [(buffer["kind"], buffer["metadata"]["uid"]) for buffer in here] == owners:
            return each.template.spec
    return None


def hosts(yard: Yard) -> list[str]:
    """Return the nodes from which the pods of the only buffer are kept."""
    found = shape(yard)
    if found is None or found.affinity is None:
        return []
    demanded = found.affinity.node_affinity.required_during_scheduling_ignored_during_execution
    rules = demanded.node_selector_terms[0].match_expressions
    return [name for rule in rules if rule.operator == "NotIn" for name in rule.values]


def test_what_finds_no_place_has_a_buffer_until_it_has_one(yard: Yard) -> None:
    corner = yard.corner
    placement = {"nodeSelector": {GROUP: corner.name}}
    spec = {"owners": [{"pod": {"name": "big"}}], "resources": {"cpu": "3"}, "ttl": "1h"}
    first, second = yard.nodes
    held = corner.reserve(SPEC, first, "held-1", cpu="3")
    corner.reserve(SPEC, second, "held-2", cpu="3")
    wait_for(lambda: all(marks(yard, node) for node in yard.nodes), "both are held, and kept")
    corner.write_object("waits", {**spec, "placement": placement})
    wait_for(lambda: hosts(yard) == sorted(yard.nodes), "pods are kept from what is held")
    (buffer,) = buffers(yard)
    assert buffer["spec"]["replicas"] == 1
    (owner,) = buffer["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("Reservation", "waits")
    corner.patch_store(SPEC.store, {held: None})
    wait_for(lambda: not buffers(yard), "it has its place, and the buffer is gone")
    wait_for(lambda: set(marks(yard, first)) == {KEPT, *KEEPING}, "its node is kept again")
    # Now both are held, and both look free: a pod that only these holds keep out needs room, too.
    corner.create_pod("stranger", {"cpu": "3"}, tolerations=[{"operator": "Exists"}])
    (buffer,) = wait_for(lambda: buffers(yard), "a pod has a buffer")
    wait_for(lambda: hosts(yard) == sorted(yard.nodes), "such pods are kept from what is held")
    (owner,) = buffer["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("Pod", corner.pod("stranger").metadata.uid)
    asked = shape(yard)
    assert asked.node_selector == {GROUP: corner.name}
    assert {"Exists"} <= {each.operator for each in asked.tolerations}
    (new,) = corner.add_nodes(1, cpu="4")
    assert corner.wait_bound("stranger") == new
    wait_for(lambda: not buffers(yard), "it is bound, and the buffer is gone")
    wait_for(lambda: set(marks(yard, new)) == {KEPT, *KEEPING}, "its node is kept, held or not")
    corner.api.delete_namespaced_pod("stranger", corner.name, grace_period_seconds=0)
    wait_for(lambda: not marks(yard, new), "the node is let go")


def install_policy(api: Any) -> None:
    """Install what bounds Reserver's right to nodes, for the service account of these tests."""
    admission: Any = AdmissionregistrationV1Api(api.api_client)
    for component in (AUTOSCALERS, MAINTENANCE):
        text = (component.parent / "policy.yaml").read_text()
        text = text.replace(f"== '{RESERVER}'", f"in ['{MOVER}', '{KEEPER}']")
        policy, binding = yaml.safe_load_all(text)
        admission.create_validating_admission_policy(policy)
        admission.create_validating_admission_policy_binding(binding)


def keeper(kubeconfig: Path, api: Any) -> Any:
    """Return a client with the rights of components/autoscalers alone."""
    for document in yaml.safe_load_all(AUTOSCALERS.read_text()):
        if document["kind"] == "ClusterRoleBinding":
            document["metadata"]["name"] += "-keeper"
            document["subjects"][0]["name"] += "-keeper"
            grant(api, document)
    client: Any = CoreV1Api(new_client_from_config(str(kubeconfig)))
    client.api_client.set_default_header("Impersonate-User", KEEPER)
    return client


def test_the_policy_leaves_reserver_nothing_of_a_node_but_these_annotations(
    yard: Yard, kubeconfig: Path, mover_kubeconfig: Path
) -> None:
    install_policy(yard.corner.api)
    alone = keeper(kubeconfig, yard.corner.api)
    reserver: Any = CoreV1Api(new_client_from_config(str(mover_kubeconfig)))
    node = yard.nodes[0]

    def is_refused(client: Any = reserver, subresource: str = "", **body: Any) -> bool:
        patch = client.patch_node_status if subresource else client.patch_node
        try:
            patch(node, body, dry_run="All")
        except ApiException as refusal:
            return "Reserver may" in str(refusal.body)
        return False

    wait_for(lambda: is_refused(alone, spec={"unschedulable": True}), "nodes are kept by a policy")
    wait_for(
        lambda: is_refused(subresource="status", status={"allocatable": {"cpu": "99"}}),
        "nodes are maintained by a policy",
    )
    assert is_refused(alone, metadata={"annotations": {MAINTENANCE_ANNOTATION: "x"}})
    assert is_refused(metadata={"labels": {"other": "x"}})
    assert is_refused(spec={"taints": [{"key": "mine", "effect": "NoExecute"}]})
    assert is_refused(metadata={"annotations": {"other": "x"}})
    assert is_refused(metadata={"finalizers": ["example.com/mine"]})
    yard.corner.api.patch_node(node, {"metadata": {"annotations": {"other": "x"}}})
    assert is_refused(metadata={"annotations": {"other": None}})
    key = yard.corner.reserve(SPEC, node, "owner", cpu="1")
    wait_for(lambda: KEPT in marks(yard, node), "the node is kept under the policy, too")
    yard.corner.patch_store(SPEC.store, {key: None})
    wait_for(lambda: not marks(yard, node), "the node is let go")
