"""Preemption on the real kube-scheduler: nobody is evicted for room that stays held."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from hack.bed.bed import scheduling
from hack.controlplane.cluster import ControlPlane
from hack.preemption.storm import Storm
from hack.reserver_process import ReserverProcess, wait_for
from tests.e2e.cluster import Corner
from tests.e2e.forms import SPEC
from tests.e2e.test_status import wait_status

BLIND = "blind-scheduler"
PREEMPTIONS = 'reserver_extender_calls_total{outcome="refused",verb="preempt"}'
TRIALS, FEW = 48, 8
"""A quarter of the trials is futile; in another quarter kube-scheduler's first choice is."""


@pytest.mark.release
@pytest.mark.controlplane
def test_in_a_priority_storm_nobody_is_evicted_for_room_that_stays_held(
    kubeconfig: Path, reserver: ReserverProcess
) -> None:
    with Storm(kubeconfig, "reserver-scheduler", TRIALS) as storm:
        storm.rage()
        storm.try_again(lambda: reserver.metric(PREEMPTIONS))
        storm.seat_owners()
        outcome = storm.outcome()
    assert (outcome.useless, outcome.elsewhere) == ((), ())
    assert (outcome.landed, outcome.useful) == (TRIALS * 3 / 4, TRIALS * 3 / 4)
    assert outcome.owners == TRIALS


@pytest.mark.controlplane
def test_without_the_preempt_verb_the_same_storm_evicts_pods_for_nothing(
    control_plane: ControlPlane, reserver: ReserverProcess
) -> None:
    with (
        scheduling(control_plane, reserver.port, BLIND, without_preemption),
        Storm(control_plane.kubeconfig, BLIND, FEW, blind=True) as storm,
    ):
        storm.rage()
        assert len(storm.outcome().useless) >= FEW / 2


def without_preemption(config: str) -> str:
    """Return a KubeSchedulerConfiguration without the Preempt verb of its extenders."""
    parsed = yaml.safe_load(config)
    for extender in parsed["extenders"]:
        del extender["preemptVerb"]
    return yaml.safe_dump(parsed)


def test_a_pod_that_nobody_was_evicted_for_is_tried_again_when_the_hold_ends(
    corner: Corner,
) -> None:
    _ensure_priority_class(corner.api)
    (node,) = corner.add_nodes(1, cpu="4")
    key = corner.reserve(SPEC, node, "never-comes", cpu="1")
    corner.wait_held(node)
    corner.create_pod("filler", {"cpu": "3"})
    assert corner.wait_bound("filler") == node
    corner.create_pod("important", {"cpu": "4"}, priorityClassName="e2e-high")
    corner.wait_refused("important", "no candidate node for preemption")
    assert corner.node_of("filler") == node
    corner.patch_store(SPEC.store, {key: None})
    assert corner.wait_bound("important") == node  # kube-scheduler alone takes five minutes.
    assert "filler" not in corner.pod_names()


def _ensure_priority_class(api: Any) -> None:
    scheduling: Any = client.SchedulingV1Api(api.api_client)
    try:
        scheduling.create_priority_class({"metadata": {"name": "e2e-high"}, "value": 1000})
    except ApiException as exc:
        if exc.status != 409:
            raise


def test_a_reservation_that_yields_says_so_when_a_pod_of_higher_priority_takes_it(
    corner: Corner,
) -> None:
    _ensure_priority_class(corner.api)
    (node,) = corner.add_nodes(1, cpu="4")
    key = f"{node}.soft"
    reservation = {
        "owners": [{"pod": {"name": "never-comes", "namespace": corner.name}}],
        "resources": {"cpu": "3"},
        "node": node,
        "preemptible": True,
    }
    corner.patch_store(SPEC.store, {key: json.dumps(reservation)})
    corner.wait_held(node)
    corner.create_pod("modest", {"cpu": "3"})
    corner.wait_refused("modest", "held by reservation")
    corner.create_pod("important", {"cpu": "3"}, priorityClassName="e2e-high")
    assert corner.wait_bound("important") == node
    wait_status(corner, SPEC, key, "preemptible", phase="Active", backed=False)
    wait_for(lambda: any(key in e for e in corner.events("NotBacked", SPEC.store[0])), "an event")
