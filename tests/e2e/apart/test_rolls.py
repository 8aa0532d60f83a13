"""A Deployment with a standby is rolled, drained and lost, and its holds stay in force.

Its pods are made and ended by the real controllers, scheduled by the real kube-scheduler that is
shipped for them, and evicted by the real API server.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes.client.exceptions import ApiException

from hack.bed.bed import scheduling
from hack.controlplane.cluster import ControlPlane
from hack.reserver_process import ReserverProcess, wait_for
from tests.e2e.apart.rolling import HOME, ROLE, SCHEDULER, TYPO, Pods, Rolled, bootstrap
from tests.e2e.cluster import Corner
from tests.pages import section

pytestmark = [pytest.mark.controlplane, pytest.mark.timeout(600)]


@pytest.fixture
def rolled(
    control_plane: ControlPlane, reserver_kubeconfig: Path, api: Any, tmp_path: Path
) -> Iterator[Rolled]:
    """A corner whose kube-scheduler calls the Service of the Deployment."""
    corner = Corner(control_plane.kubeconfig, SCHEDULER, api)
    corner.open()
    corner.add_nodes(1, cpu="4")
    for name in ("own-1", "own-2"):  # Nobody else plays their kubelet.
        labels = {**ROLE, "kubernetes.io/hostname": name}
        room = {"cpu": "1", "memory": "1Gi", "pods": "10"}
        status = {"allocatable": room, "capacity": room}
        api.create_node({"metadata": {"name": name, "labels": labels}, "status": status})
        corner.nodes.append(name)

    def start(name: str) -> ReserverProcess:
        flags = ("--leader-elect", f"--pod-name={name}", f"--exempt-namespace={HOME}")
        process = ReserverProcess(
            reserver_kubeconfig, tmp_path / f"{name}.log", *flags, wait_ready=False
        )
        process.start()
        return process

    pods = Pods(api, start)
    world = Rolled(control_plane, corner, pods)
    try:
        with pods.service as service, scheduling(control_plane, service.port, SCHEDULER):
            yield world
    finally:
        world.remove()
        for each in pods.running.values():
            each.stop()
        corner.close()


def test_a_roll_and_a_drain_end_and_nobody_gets_past_a_hold(rolled: Rolled) -> None:
    with bootstrap(rolled.plane):
        first = rolled.deploy()
        wait_for(rolled.has_rolled_out, "both are ready")
        for line in section("docs/high-availability.md", "What the manifests do"):
            code, said = rolled.run(line)
            assert (code, "No resources" in said) == (0, False), said
        node = rolled.hold()
        template = {"metadata": {"annotations": {"rolled": "once"}}}
        body = {"spec": {"template": template}}
        rolled.apps.patch_namespaced_deployment("reserver", HOME, body)
        seen = []

        def is_rolled() -> bool:
            staying = rolled.pods.turn()
            seen.append(len(staying))
            leader = staying[0].metadata.name
            if leader == first and len(seen) % 5 == 0:
                assert len(rolled.pods.running) >= 2  # The leader is the last of the old ones.
            return first not in rolled.pods.running and rolled.has_rolled_out()

        wait_for(is_rolled, "the roll has ended")
        assert min(seen) >= 2
        second = wait_for(rolled.leads, "one of the new ones leads")
        assert rolled.is_kept()
        rolled.corner.create_pod("owner", {"cpu": "3"})
        assert rolled.corner.wait_bound("owner") == node

        allowed = "get poddisruptionbudget reserver -o jsonpath={.status.disruptionsAllowed}"
        wait_for(lambda: rolled.kubectl(allowed) == "1", "the budget counts two pods again")
        rolled.evict(second)
        with pytest.raises(ApiException, match="disruption budget"):
            rolled.evict(next(name for name in rolled.pods.running if name != second))
        third = wait_for(rolled.leads, "the other leads, and there are two again")
        assert third != second


def test_a_mistyped_image_stops_nothing(rolled: Rolled) -> None:
    with bootstrap(rolled.plane):
        first = rolled.deploy()
        node = rolled.hold()
        rolled.kubectl(f"set image deployment/reserver reserver={TYPO}")
        wait_for(lambda: len(rolled.pods.turn()) == 3, "a new pod is there, and does not start")
        for number in range(20):
            staying = rolled.pods.turn()
            assert (len(staying), staying[0].metadata.name) == (3, first)
            if number % 5 == 0:
                assert rolled.is_kept()
        rolled.corner.create_pod("owner", {"cpu": "3"})
        assert rolled.corner.wait_bound("owner") == node
        rolled.kubectl("rollout undo deployment/reserver")
        wait_for(rolled.has_rolled_out, "the roll is undone")
        wait_for(lambda: rolled.leads() == first, "the first one leads")


@pytest.mark.release
def test_when_all_are_lost_they_come_back_though_the_scheduler_that_they_serve_calls_nobody(
    rolled: Rolled,
) -> None:
    with bootstrap(rolled.plane):
        rolled.deploy()
        node = rolled.hold()
        rolled.lose()
        rolled.corner.create_pod("owner", {"cpu": "3"})
        wait_for(rolled.leads, "they are back")
        assert rolled.corner.wait_bound("owner") == node


def test_the_runbook_brings_back_what_nobody_can_schedule(rolled: Rolled) -> None:
    there, back = section("docs/troubleshooting.md", "Nothing is scheduled, and no Reserver runs")
    with bootstrap(rolled.plane):
        rolled.deploy()
        node = rolled.hold()
    rolled.lose()
    rolled.corner.create_pod("owner", {"cpu": "3"})
    wait_for(lambda: len(rolled.pods.turn()) == 2, "their successors wait")
    assert not rolled.pods.running
    code, said = rolled.run(f"NODE={rolled.corner.nodes[1]}; {there}")
    assert code == 0, said
    wait_for(lambda: rolled.pods.turn() and rolled.pods.service.leader, "one runs on that node")
    assert rolled.corner.wait_bound("owner") == node
    code, said = rolled.run(back)
    assert code == 0, said
    with bootstrap(rolled.plane):  # The cluster's own scheduler has made it a pod.
        wait_for(rolled.has_rolled_out, "both are where they belong")


def test_a_first_install_after_its_extenders_were_configured_is_brought_up(
    rolled: Rolled,
) -> None:
    """Nobody schedules what schedules Reserver's pods, until the commands of the page are run."""
    there, back = section("docs/troubleshooting.md", "Nothing is scheduled, and no Reserver runs")
    rolled.create()

    def is_stuck() -> bool:
        pod = rolled.bootstrap_pod()
        said = [each.reason for each in (pod and pod.status.conditions) or ()]
        return "SchedulerError" in said and not pod.spec.node_name

    wait_for(is_stuck, "the scheduler of Reserver's pods cannot be scheduled")
    wait_for(lambda: len(rolled.pods.turn()) == 2, "Reserver's pods wait for it")
    assert not rolled.pods.running
    code, said = rolled.run(f"NODE={rolled.corner.nodes[1]}; {there}")
    assert code == 0, said
    wait_for(lambda: rolled.pods.turn() and rolled.pods.service.leader, "one runs on that node")

    def is_scheduled() -> bool:
        rolled.pods.turn()
        return bool(rolled.bootstrap_pod().spec.node_name)

    wait_for(is_scheduled, "the cluster's own scheduler schedules the other")
    code, said = rolled.run(back)
    assert code == 0, said
    with bootstrap(rolled.plane):
        wait_for(rolled.has_rolled_out, "both are where they belong")


def test_without_reserver_its_extenders_can_be_ignored(rolled: Rolled) -> None:
    """The last resort of the runbook: pods are scheduled, and nothing is protected."""
    config = rolled.plane.folder / f"{SCHEDULER}.yaml"
    rolled.corner.create_pod("waits", {"cpu": "1"})
    rolled.corner.wait_refused("waits")
    ignored = config.read_text().replace("ignorable: false", "ignorable: true")
    assert ignored != config.read_text()
    config.write_text(ignored)
    rolled.plane.stop_scheduler(SCHEDULER)
    rolled.plane.start_scheduler(config, SCHEDULER)
    assert rolled.corner.wait_bound("waits")
