"""Other schedulers on nodes with holds (docs/install.md, "Beside others")."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hack.controlplane.cluster import ControlPlane
from hack.controlplane.scheduler_config import PLAIN_SCHEDULER, render_scheduler_config
from hack.reserver_process import wait_for
from tests.e2e.apart.yard import Yard
from tests.e2e.cluster import HELD
from tests.e2e.forms import SPEC
from tests.e2e.test_status import not_backed, wait_status

pytestmark = pytest.mark.controlplane
SECOND = "knows-no-holds"
TAINT = {"key": "example.com/reserved", "effect": "NoSchedule"}


@pytest.fixture(scope="module")
def second_scheduler(control_plane: ControlPlane) -> Iterator[str]:
    """A kube-scheduler of the cluster that asks nobody about holds."""
    config = control_plane.folder / f"{SECOND}.yaml"
    config.write_text(
        render_scheduler_config(
            PLAIN_SCHEDULER, kubeconfig=control_plane.kubeconfig, scheduler_name=SECOND
        )
    )
    control_plane.start_scheduler(config, SECOND)
    yield SECOND
    control_plane.stop_scheduler(SECOND)


def test_a_pod_of_another_scheduler_lands_in_held_room_and_the_reservation_says_so(
    yard: Yard, second_scheduler: str
) -> None:
    corner, (held, _) = yard.corner, yard.nodes
    key = corner.reserve(SPEC, held, "owner", cpu="4")
    corner.wait_held(held)
    here = {"nodeSelector": {"kubernetes.io/hostname": held}}
    corner.create_pod("elsewhere", {"cpu": "3"}, schedulerName=second_scheduler, **here)
    assert corner.wait_bound("elsewhere") == held
    wait_status(corner, SPEC, key, phase="Active", backed=False)
    wait_for(lambda: not_backed(corner, SPEC, key), "an event")


def test_a_taint_keeps_pods_of_another_scheduler_from_held_room(
    yard: Yard, second_scheduler: str
) -> None:
    corner, (held, free) = yard.corner, yard.nodes
    selector = corner.taint(held, free, taint=TAINT)
    key = corner.reserve(SPEC, held, "owner", cpu="4")
    wait_status(corner, SPEC, key, phase="Active", backed=True)
    for name in ("first", "second"):
        corner.create_pod(name, {"cpu": "2"}, schedulerName=second_scheduler, nodeSelector=selector)
        assert corner.wait_bound(name) == free
    corner.create_pod("owner", {"cpu": "4"}, tolerations=[TAINT])
    assert corner.wait_bound("owner") == held


def test_a_pod_of_a_daemonset_waits_for_the_one_node_that_is_held_full(yard: Yard) -> None:
    corner, (held, free) = yard.corner, yard.nodes
    key = corner.reserve(SPEC, held, "owner", cpu="4")
    corner.wait_held(held)
    body = {"metadata": {"name": "agent"}, "spec": yard.workload("agent", cpu="100m")["spec"]}
    del body["spec"]["replicas"]
    yard.apps.create_namespaced_daemon_set(corner.name, body)

    def waiting() -> str | None:
        pods = yard.pods("agent")
        unbound = [pod.metadata.name for pod in pods if not pod.spec.node_name]
        return unbound[0] if len(pods) == len(corner.nodes) and len(unbound) == 1 else None

    late = wait_for(waiting, "all but one pod are bound")
    assert free in yard.nodes_of("agent")
    corner.wait_refused(late, HELD[0])
    corner.patch_store(SPEC.store, {key: None})
    assert corner.wait_bound(late) == held
