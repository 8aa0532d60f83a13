"""Whole nodes, held for owners alone, on the real kube-scheduler."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import yaml
from kubernetes import client

from hack.reserver_process import ReserverProcess, wait_for
from tests.e2e.cluster import GROUP, Corner
from tests.e2e.forms import OBJECT, OBJECTS, SPEC, Form
from tests.e2e.test_placement import parts
from tests.e2e.test_status import wait_status

TRAIN = {"app": "train"}


@contextmanager
def agents(corner: Corner) -> Iterator[None]:
    """Have a DaemonSet run on the nodes of a corner until the block ends."""
    apps, labels = client.AppsV1Api(corner.api.api_client), {"app": "agent"}
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "500m"}}}
    spec: dict[str, Any] = {
        "schedulerName": corner.scheduler,
        "nodeSelector": {GROUP: corner.name},
        "containers": [container],
    }
    body = {
        "metadata": {"name": "agent"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }
    apps.create_namespaced_daemon_set(corner.name, body)
    try:
        yield
    finally:
        apps.delete_namespaced_daemon_set("agent", corner.name)


def agent_nodes(corner: Corner) -> set[str]:
    """Return the nodes that have a pod of `agents`."""
    pods = corner.api.list_namespaced_pod(corner.name, label_selector="app=agent").items
    return {pod.spec.node_name for pod in pods if pod.spec.node_name}


def allow(corner: Corner, count: int) -> None:
    """Let a corner's namespace hold whole nodes, of which the default quota admits none."""
    quota = {"metadata": {"name": "team"}, "spec": {"hard": {"held.nodes": str(count)}}}
    kind = {"apiVersion": "/".join(OBJECTS), "kind": "ReservationQuota"}
    quotas: Any = client.CustomObjectsApi(corner.api.api_client)
    where = (*OBJECTS, corner.name, "reservationquotas")
    quotas.create_namespaced_custom_object(*where, {**kind, **quota})


def write(corner: Corner, form: Form, count: int) -> str:
    """Hold whole nodes of a corner; return the key."""
    whole = {
        "owners": [{"selector": {"matchLabels": TRAIN, "namespace": corner.name}}],
        "nodes": {"count": count, "selector": {GROUP: corner.name}},
        "policy": "Require",
        "ttl": "1h",
    }
    if form.is_object:
        return corner.write_object("whole", whole)
    corner.patch_store(form.store, {f"{corner.name}.whole": yaml.safe_dump(whole)})
    return f"{corner.name}.whole"


def release(corner: Corner, form: Form, key: str) -> None:
    if form.is_object:
        corner.delete_object("whole")
    else:
        corner.patch_store(form.store, {key: None})


@pytest.mark.controlplane
@pytest.mark.parametrize("form", [SPEC, OBJECT], ids=lambda form: form.name)
def test_owners_alone_fill_whole_nodes_through_a_crash_and_a_new_node_until_the_end(
    corner: Corner, reserver: ReserverProcess, form: Form
) -> None:
    allow(corner, 2)
    first, second = corner.add_nodes(2, cpu="4")
    corner.create_pod("guest", {}, nodeSelector={"kubernetes.io/hostname": first})
    corner.wait_bound("guest")
    with agents(corner):  # By then, whichever Reserver places the hold has read of the guest.
        wait_for(lambda: agent_nodes(corner) == {first, second}, "each node has its agent")
        key = write(corner, form, 2)
        had_pods = "node(s) had pods beside those of DaemonSets"
        wait_status(corner, form, key, had_pods, phase="Pending")
        corner.delete_pod("guest")
        wait_status(corner, form, key, phase="Active", backed=True)
        assert parts(corner, form, key) == {first: 1, second: 1}

        second_alone = {"kubernetes.io/hostname": second}
        corner.create_pod("stranger", {}, nodeSelector=second_alone)
        corner.wait_refused("stranger", "held by reservation")
        for number in range(4):
            corner.create_pod(f"train-{number}", {"cpu": "1500m"}, labels=TRAIN)
        landed = [corner.wait_bound(f"train-{number}") for number in range(4)]
        assert sorted(landed) == sorted([first, first, second, second])
        reserver.restart()
        corner.create_pod("another", {}, nodeSelector=second_alone)
        corner.wait_refused("another", "held by reservation")
        assert corner.node_of("stranger") is None

        (third,) = corner.add_nodes(1, cpu="4")
        corner.api.delete_node(first)
        corner.nodes.remove(first)
        wait_for(lambda: parts(corner, form, key) == {second: 1, third: 1}, "it has another node")
        wait_for(lambda: third in agent_nodes(corner), "the new node has its agent")
        corner.create_pod("train-4", {"cpu": "3"}, labels=TRAIN)
        assert corner.wait_bound("train-4") == third
        assert corner.node_of("another") is None

        release(corner, form, key)
        assert corner.wait_bound("stranger") == second
        assert corner.wait_bound("another") == second
