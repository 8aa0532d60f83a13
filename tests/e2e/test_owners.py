"""Owners find their seat: through samples, past taints, or by waiting."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest
from kubernetes import client

from hack.reserver_process import ReserverProcess, wait_for
from tests.e2e.cluster import GROUP, Corner
from tests.e2e.forms import SPEC


@pytest.mark.release
@pytest.mark.controlplane
def test_on_300_nodes_every_owner_lands_on_its_seat_though_it_is_rarely_in_the_sample(
    corner: Corner, reserver: ReserverProcess
) -> None:
    nodes = corner.add_nodes(300, cpu="4")
    owners = {f"owner-{number}": nodes[number * 12] for number in range(25)}
    for owner, node in owners.items():
        corner.reserve(SPEC, node, owner, cpu="2")
    corner.wait_held(nodes[24 * 12])
    steered_before = reserver.metric(
        'reserver_extender_calls_total{outcome="refused",verb="filter"}'
    )
    for owner in owners:
        corner.create_pod(owner, {"cpu": "2"})
    assert {owner: corner.wait_bound(owner) for owner in owners} == owners
    steered = reserver.metric('reserver_extender_calls_total{outcome="refused",verb="filter"}')
    assert steered > steered_before, "every seat was in the sample: this showed nothing"


@pytest.mark.controlplane
def test_a_pod_whose_whole_sample_is_held_finds_the_node_outside_it(
    corner: Corner, reserver: ReserverProcess
) -> None:
    nodes = corner.add_nodes(300, cpu="4")
    free = nodes[150]
    for node in nodes:
        if node != free:
            corner.queue_reservation(node, "nobody", cpu="4")
    corner.write_queued()
    corner.wait_held(max(nodes))  # Keys are taken in their order.
    before = reserver.metric('reserver_extender_calls_total{outcome="refused",verb="filter"}')
    corner.create_pod("stranger", {"cpu": "4"})
    assert corner.wait_bound("stranger") == free
    after = reserver.metric('reserver_extender_calls_total{outcome="refused",verb="filter"}')
    assert after - before <= 8


@pytest.mark.controlplane
def test_an_owner_that_must_land_on_its_seat_waits_for_it_without_spinning(
    corner: Corner, reserver: ReserverProcess
) -> None:
    seat, other = corner.add_nodes(2, cpu="4")
    corner.reserve(SPEC, seat, "owner", cpu="2", more="policy: Require\n")
    corner.wait_held(seat)
    selector = corner.taint(seat, other)
    calls = 'reserver_extender_calls_total{outcome="refused",verb="filter"}'
    before = reserver.metric(calls)
    corner.create_pod("owner", {"cpu": "2"}, nodeSelector=selector)
    corner.wait_refused("owner", "waiting for its seat")
    began = time.monotonic()
    wait_for(lambda: time.monotonic() - began > 5, "five seconds have passed")
    assert corner.node_of("owner") is None
    assert reserver.metric(calls) - before <= 25
    corner.api.patch_node(seat, {"spec": {"taints": None}})
    assert corner.wait_bound("owner") == seat


@pytest.mark.controlplane
def test_replicas_take_a_slot_each_of_what_their_replicaset_owns(corner: Corner) -> None:
    """Two slots for three replicas: two land on the seat, the third one where there is room."""
    seat, other = corner.add_nodes(2, cpu="4")
    owner = {"controller": {"kind": "ReplicaSet", "name": "web", "namespace": corner.name}}
    spec = {
        "owners": [owner],
        "slots": 2,
        "node": seat,
        "resources": {"cpu": "2"},
        "ttl": "1h",
    }
    key = f"{corner.name}.replicas"
    corner.patch_store(SPEC.store, {key: json.dumps(spec)})
    corner.wait_held(seat)
    apps: Any = client.AppsV1Api(corner.api.api_client)
    apps.create_namespaced_replica_set(corner.name, _replica_set(corner))
    landed = wait_for(lambda: _all_bound(corner, 3), "all replicas are bound")
    assert sorted(landed) == sorted([seat, seat, other])
    wait_for(lambda: key not in corner.keys(SPEC.store), "the entry is over, and gone")


def _replica_set(corner: Corner) -> dict[str, Any]:
    labels = {"app": "web"}
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "2"}}}
    template = {
        "metadata": {"labels": labels},
        "spec": {
            "schedulerName": corner.scheduler,
            "nodeSelector": {GROUP: corner.name},
            "containers": [container],
        },
    }
    spec = {"replicas": 3, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": "web"}, "spec": spec}


def _all_bound(corner: Corner, count: int) -> list[str]:
    nodes = [node for name in corner.pod_names() if (node := corner.node_of(name))]
    return nodes if len(nodes) == count else []


def test_a_reusable_slot_is_held_again_when_its_pod_goes(corner: Corner) -> None:
    (node,) = corner.add_nodes(1, cpu="4")
    key = corner.reserve(SPEC, node, "owner", cpu="3", more="reusable: true\n")
    written = corner.keys(SPEC.store)[key]
    corner.wait_held(node)
    corner.create_pod("owner", {"cpu": "3"})
    assert corner.wait_bound("owner") == node
    longer = re.sub("expiresAt: .*", 'expiresAt: "2040-01-31T10:00:00Z"', written)
    corner.patch_store(SPEC.store, {key: longer})  # Its claim stays: the slot is not held anew.
    corner.create_pod("beside", {"cpu": "1"})
    assert corner.wait_bound("beside") == node
    corner.delete_pod("owner")
    corner.create_pod("stranger", {"cpu": "2"})
    corner.wait_refused("stranger", "held by reservation")
    corner.create_pod("owner", {"cpu": "3"})
    assert corner.wait_bound("owner") == node
