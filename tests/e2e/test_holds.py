"""Holds with the real kube-scheduler: amounts, owners and expiry."""

from __future__ import annotations

import time
from typing import Any

import pytest
from kubernetes import client

from hack.reserver_process import wait_for
from tests.e2e.cluster import Corner
from tests.e2e.forms import OBJECT_FIRST, SPEC, Form
from tests.e2e.test_status import wait_status

GPU = "example.com/gpu"


def test_an_expired_entry_holds_nothing(corner: Corner, form: Form) -> None:
    (node,) = corner.add_nodes(1, cpu="4")
    corner.reserve(form, node, "too-late", cpu="4000m", expires_in=-5)
    corner.create_pod("stranger", {"cpu": "4"})
    assert corner.wait_bound("stranger") == node


@pytest.mark.parametrize("form", OBJECT_FIRST, ids=lambda form: form.name)
def test_a_hold_ends_at_its_expiry_and_the_pod_that_waited_lands_at_once(
    corner: Corner, form: Form
) -> None:
    (node,) = corner.add_nodes(1, cpu="4")
    corner.reserve(form, node, "never-comes", cpu="4000m")
    corner.wait_held(node)
    corner.create_pod("stranger", {"cpu": "4"})
    corner.wait_refused("stranger", "held by reservation")
    expires = time.time() + 5
    corner.reserve(form, node, "never-comes", cpu="4000m", expires_in=5)
    assert corner.wait_bound("stranger") == node  # kube-scheduler alone takes five minutes.
    # Lists write whole seconds, so a hold may end up to one second early.
    assert time.time() - expires >= -1
    wait_for(lambda: not corner.entries_for(form, "never-comes"), "the entry is cleaned away")


def test_what_is_released_goes_to_those_who_wait_and_to_no_more_than_fit(corner: Corner) -> None:
    (node,) = corner.add_nodes(1, cpu="4")
    key = corner.reserve(SPEC, node, "never-comes", cpu="4")
    corner.wait_held(node)
    for number in range(6):
        corner.create_pod(f"stranger-{number}", {"cpu": "2"})
        corner.wait_refused(f"stranger-{number}", "held by reservation")
    corner.patch_store(SPEC.store, {key: None})
    names = [f"stranger-{number}" for number in range(6)]
    wait_for(lambda: sum(corner.node_of(name) == node for name in names) == 2, "two are bound")


def test_a_hold_for_a_pod_of_another_namespace_holds_against_its_namesake(
    corner: Corner, form: Form
) -> None:
    (node,) = corner.add_nodes(1, cpu="4")
    corner.reserve(form, node, "twin", cpu="3000m", namespace="default")
    corner.wait_held(node)
    corner.create_pod("twin", {"cpu": "2"})
    words = "a reservation of another namespace" if form.name == "object" else "reservation "
    corner.wait_refused("twin", f"held by {words}")


@pytest.mark.parametrize(
    ("held", "fits", "does_not_fit"),
    [
        ({"memory": "6Gi"}, {"memory": "2Gi"}, {"memory": "2049Mi"}),
        ({"cpu": "1", GPU: "3"}, {GPU: "1"}, {GPU: "2"}),
        ({"cpu": "1", "ephemeral-storage": "9Gi"}, {}, {"ephemeral-storage": "2Gi"}),
    ],
    ids=["memory", "extended", "ephemeral-storage"],
)
def test_every_resource_is_held_as_cpu_is(
    corner: Corner,
    held: dict[str, Any],
    fits: dict[str, str],
    does_not_fit: dict[str, str],
) -> None:
    extended = {GPU: "4", "ephemeral-storage": "10Gi"}
    (node,) = corner.add_nodes(1, cpu="4", **extended)
    key = corner.reserve(SPEC, node, "owner", **held)
    wait_status(corner, SPEC, key, phase="Active", backed=True)
    corner.create_pod("too-big", does_not_fit)
    corner.wait_refused("too-big", "held by reservation")
    corner.create_pod("small", fits)
    assert corner.wait_bound("small") == node
    corner.create_pod("owner", held)
    assert corner.wait_bound("owner") == node


def test_a_pod_of_the_node_is_held_too(corner: Corner) -> None:
    (node,) = corner.add_nodes(1, cpu="4", pods=2)
    corner.reserve(SPEC, node, "owner", cpu="1")
    corner.wait_held(node)
    corner.create_pod("first", {})
    assert corner.wait_bound("first") == node
    corner.create_pod("second", {})
    corner.wait_refused("second", "held by reservation")
    corner.create_pod("owner", {})
    assert corner.wait_bound("owner") == node


def _container(name: str, cpu: str, **more: str) -> dict[str, object]:
    return {"name": name, "image": "none", "resources": {"requests": {"cpu": cpu}}, **more}


@pytest.mark.parametrize(
    "spec",
    [
        {"initContainers": [_container("prepare", "2100m")]},
        {"initContainers": [_container("proxy", "1100m", restartPolicy="Always")]},
        {
            "initContainers": [
                _container("proxy", "600m", restartPolicy="Always"),
                _container("prepare", "1500m"),
            ]
        },
        {"runtimeClassName": "e2e-overhead"},
        {"resources": {"requests": {"cpu": "2100m"}}},
    ],
    ids=["init", "sidecar", "sidecar-then-init", "overhead", "pod-level"],
)
def test_the_whole_request_of_a_pod_counts_beside_a_hold(
    corner: Corner, spec: dict[str, object]
) -> None:
    """Two CPUs are free next to the hold; the pod's one container requests one of them."""
    (node,) = corner.add_nodes(1, cpu="4")
    if "runtimeClassName" in spec:
        _ensure_runtime_class(corner.api)
    corner.reserve(SPEC, node, "owner", cpu="2")
    corner.wait_held(node)
    corner.create_pod("plain", {"cpu": "1"})
    assert corner.wait_bound("plain") == node
    corner.delete_pod("plain")
    corner.create_pod("bigger-than-it-looks", {"cpu": "1"}, **spec)
    corner.wait_refused("bigger-than-it-looks", "held by reservation")


def _ensure_runtime_class(api: Any) -> None:
    node_api: Any = client.NodeV1Api(api.api_client)
    if not any(c.metadata.name == "e2e-overhead" for c in node_api.list_runtime_class().items):
        overhead = {"podFixed": {"cpu": "1100m"}}
        body = {"metadata": {"name": "e2e-overhead"}, "handler": "none", "overhead": overhead}
        node_api.create_runtime_class(body)


def test_pods_that_arrive_together_do_not_share_the_room_beside_a_hold(corner: Corner) -> None:
    """kube-scheduler asks for the next pod before it binds the last one; Bind judges again."""
    (node,) = corner.add_nodes(1, cpu="8", pods=200)
    corner.reserve(SPEC, node, "owner", cpu="4")
    corner.wait_held(node)
    for number in range(24):
        corner.create_pod(f"stranger-{number}", {"cpu": "1"})

    def all_judged() -> bool:
        pods = corner.api.list_namespaced_pod(corner.name).items
        return all(p.spec.node_name or p.status.conditions for p in pods)

    wait_for(all_judged, "all are bound or refused")
    corner.create_pod("owner", {"cpu": "4"})
    assert corner.wait_bound("owner") == node

    def bound() -> int:
        return sum(1 for name in corner.pod_names() if corner.node_of(name))

    wait_for(lambda: bound() >= 5, "all room is used")  # A refusal may have been an error.
    assert bound() == 5


def test_a_pod_that_another_scheduler_binds_ends_the_hold_that_names_it(
    corner: Corner, form: Form
) -> None:
    held, elsewhere = corner.add_nodes(2, cpu="4")
    corner.reserve(form, held, "owner", cpu="4000m")
    corner.wait_held(held)
    corner.create_pod("owner", {"cpu": "1"}, schedulerName="nobody")
    binding = {
        "metadata": {"name": "owner"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": elsewhere},
    }
    corner.api.create_namespaced_binding(corner.name, binding, _preload_content=False)
    corner.wait_bound("owner")
    wait_for(lambda: not corner.entries_for(form, "owner"), "the entry is cleaned away")
    corner.create_pod("stranger", {"cpu": "4"})
    assert corner.wait_bound("stranger") == held


def test_a_claim_is_on_the_pod_that_made_it(corner: Corner, form: Form) -> None:
    (node,) = corner.add_nodes(1, cpu="4")
    key = corner.reserve(form, node, "owner", cpu="2000m")
    corner.wait_held(node)
    corner.create_pod("owner", {"cpu": "2"})
    assert corner.wait_bound("owner") == node
    assert key in corner.pod("owner").metadata.annotations["reserver.io/claims"]
    wait_for(lambda: not corner.entries_for(form, "owner"), "the entry is cleaned away")


def test_a_system_pod_is_not_kept_from_its_node_by_a_hold_but_a_tenants_is(corner: Corner) -> None:
    (node,) = corner.add_nodes(1, cpu="4")
    corner.reserve(SPEC, node, "owner", cpu="4")
    corner.wait_held(node)
    corner.create_pod("tenant", {"cpu": "1"}, priorityClassName="system-node-critical")
    assert "held by reservation" in corner.wait_refused("tenant", "held by reservation")
    assert corner.run_agent("1") == node
    corner.stop_agent()
