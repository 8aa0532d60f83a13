"""PodMoves, with controllers that make the pods again: no pod leaves before its seat is held."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.chaos.moving.deadly import Deadly
from hack.promises.check import Kind, Rules, judge, read_history
from hack.promises.record import Recorder
from hack.reserver_process import ReserverProcess, wait_for
from tests.e2e.apart.conftest import SCHEDULER
from tests.e2e.apart.policies import balancing, preferring, rebalanced, spreading
from tests.e2e.apart.yard import Yard, opened
from tests.e2e.cluster import GROUP, on_node

NODE_AFFINITY = "RemovePodsViolatingNodeAffinity"
SEATS = {Kind.EVICTED_WITHOUT_SEAT, Kind.SEAT_OUTLIVED}

pytestmark = pytest.mark.controlplane


def test_fragments_become_room_for_a_pod_that_fits_nowhere(
    yard: Yard, mishaps: Deadly, rebalance_kubeconfig: Path
) -> None:
    """Others ask for all room that there is, from before the eviction until it has landed."""
    d, e = yard.nodes
    yard.deploy("a", d)
    yard.deploy("b", e)
    yard.corner.create_pod("big", {"cpu": "4"})
    yard.corner.wait_refused("big")
    mishaps.may_evict.clear()
    try:
        said = rebalanced(rebalance_kubeconfig, "--make-room")
        assert "2 PodMoves written, 0 pods evicted, 0 could not be" in said
        room, leaves = sorted(yard.written(), key=lambda move: move["metadata"]["name"])
        assert (room["spec"]["pod"]["name"], room["spec"]["group"]["size"]) == ("big", 2)
        left, target = room["spec"]["to"]["node"], leaves["spec"]["to"]["node"]
        assert {left, target} == {d, e}
        yard.wait_phase(leaves["metadata"]["name"], "Evicting", reason="ReadyToEvict")
        seated = room["metadata"]["name"]
        wait_for(lambda: yard.status(seated).get("to") == left, "the pod has its seat")
        yard.corner.create_pod("greedy", {"cpu": "1"})
        yard.corner.wait_refused("greedy", "held by reservation")
    finally:
        mishaps.may_evict.set()
    yard.wait_phase(leaves["metadata"]["name"], "Succeeded", reason="Landed")
    yard.wait_phase(room["metadata"]["name"], "Succeeded", reason="Landed")
    assert yard.corner.wait_bound("big") == left
    assert yard.nodes_of("a") == yard.nodes_of("b") == [target]
    yard.wait_released()


def test_a_round_makes_room_by_a_chain_of_moves(yard: Yard, rebalance_kubeconfig: Path) -> None:
    """A pod of two cores goes where one of one core makes way for it."""
    first, second = yard.nodes
    yard.deploy("p", first)
    # It stays: nobody makes it again.
    yard.corner.create_pod("r", {"cpu": "2"}, affinity=on_node(second))
    yard.corner.wait_bound("r")
    yard.deploy("q", second, cpu="1")
    (small,) = yard.corner.add_nodes(1, cpu="1")
    yard.corner.create_pod("big", {"cpu": "4"})
    yard.corner.wait_refused("big")
    said = rebalanced(rebalance_kubeconfig, "--make-room")
    assert "3 PodMoves written" in said
    for move in yard.written():
        yard.wait_phase(move["metadata"]["name"], "Succeeded", reason="Landed")
    assert yard.corner.wait_bound("big") == first
    assert (yard.nodes_of("p"), yard.nodes_of("q")) == ([second], [small])
    yard.wait_released()


def test_a_chain_of_moves_makes_room_for_a_pod_that_fits_nowhere(yard: Yard) -> None:
    """The first that is written has to wait until the second has left, and nobody comes between."""
    yard.nodes += yard.corner.add_nodes(1, cpu="4")
    first, second, third = yard.nodes
    a = yard.deploy("a", first, cpu="3")
    b = yard.deploy("b", second, cpu="2")
    yard.deploy("c", third, cpu="2")
    yard.corner.create_pod("big", {"cpu": "4"})
    yard.corner.wait_refused("big")
    yard.move("a", a, to={"node": second})
    yard.wait_phase("a", "Reserving", reason="WaitsForSeat")
    assert yard.corner.node_of("big") is None
    yard.move("b", b, to={"node": third})
    for name in ("a", "b"):
        yard.wait_phase(name, "Succeeded", reason="Landed")
    assert yard.corner.wait_bound("big") == first
    yard.wait_on("a", second)
    yard.wait_on("b", third)
    yard.wait_released()


def test_pods_of_two_namespaces_leave_together_if_a_trusted_object_lists_them(
    yard: Yard, kubeconfig: Path, api: Any, mover: ReserverProcess
) -> None:
    """A stranger of the same names, which has nothing to move any more, is no member."""
    another = partial(opened, kubeconfig, SCHEDULER, api, mover)
    with another() as other, another() as evil:
        places = {
            yard: yard.deploy("web", yard.nodes[0]),
            other: other.deploy("web", other.nodes[0]),
        }
        group = {"name": yard.corner.name, "size": 2, "acrossNamespaces": True}
        members = []
        for each, pod in places.items():
            (found,) = each.pods("web")
            uid = found.metadata.uid
            each.move("leaves", {"name": pod, "uid": uid}, to={"node": each.nodes[1]}, group=group)
            members.append({"namespace": each.corner.name, "name": "leaves", "uid": uid})
        evil.move("leaves", "gone", group={**group, "acrossNamespaces": False, "size": 1})
        evil.wait_phase("leaves", "Aborted", reason="PodGone")
        for each in places:
            says = f"no PodMoveGroup {yard.corner.name} lists this PodMove"
            each.wait_phase("leaves", "Pending", reason="WaitsForGroup", says=says)
        yard.declare(members)
        for each in places:
            each.wait_phase("leaves", "Succeeded", reason="Landed")
            each.wait_released()
        wait_for(lambda: yard.corner.name not in yard.declared(), "nothing is left of the group")


def test_a_move_takes_a_pod_of_a_deployment_to_the_node_that_is_named(yard: Yard) -> None:
    first, second = yard.nodes
    pod = yard.deploy("web", first)
    yard.move("web", pod, to={"node": second})
    status = yard.wait_phase("web", "Succeeded", reason="Landed")
    assert status["podUID"] != status["replacement"]["uid"]
    assert status["evictedAt"] <= status["finishedAt"]
    yard.wait_on("web", second)

    def events() -> list[str]:
        return [event for reason in ("Landed", "Moved") for event in yard.corner.events(reason)]

    wait_for(lambda: any(second in message for message in events()), "an event names its node")
    yard.wait_released()
    yard.change("web", ttlSecondsAfterFinished=1)
    wait_for(lambda: not yard.exists("web"), "it is deleted when its time is over")


def test_a_pod_of_a_statefulset_keeps_its_name(yard: Yard) -> None:
    first, second = yard.nodes
    yard.deploy_stateful("db", first)
    before = yard.pods("db")[0].metadata.uid
    yard.move("db", "db-0")
    status = yard.wait_phase("db", "Succeeded", reason="Landed")
    assert (status["podUID"], status["replacement"]["name"]) == (before, "db-0")
    yard.wait_on("db", second)


def test_a_pod_of_a_job_moves(yard: Yard) -> None:
    first, second = yard.nodes
    with yard.only(first):
        template = yard.template("sums", restartPolicy="Never")
        body = {"metadata": {"name": "sums"}, "spec": {"template": template}}
        yard.jobs.create_namespaced_job(yard.corner.name, body)
        yard.wait_begun("sums", first)
    yard.move("sums", yard.pods("sums")[0].metadata.name)
    yard.wait_phase("sums", "Succeeded", reason="Landed")
    yard.wait_on("sums", second)


def test_who_takes_every_hole_does_not_take_the_seat(yard: Yard) -> None:
    """The room is just enough; others ask for it all the while, before and after the eviction."""
    first, second = yard.nodes
    pod = yard.deploy("web", first, cpu="4")
    body = yard.workload("greedy", replicas=6, cpu="1")
    yard.wait_seated("web", pod)
    yard.apps.create_namespaced_deployment(yard.corner.name, body)
    wait_for(lambda: len(yard.pods("greedy")) == 6, "there are six")
    for greedy in yard.pods("greedy"):
        yard.corner.wait_refused(greedy.metadata.name)
    yard.let_go()
    yard.wait_phase("web", "Succeeded", reason="Landed")
    yard.wait_on("web", second)
    bound = partial(yard.nodes_of, "greedy")
    wait_for(lambda: bound().count(first) == 4, "they take what was left behind")
    assert second not in bound()


def test_a_round_of_rebalancing_holds_the_seats_of_its_plan_before_it_evicts(
    yard: Yard, mishaps: Deadly, rebalance_kubeconfig: Path, tmp_path: Path
) -> None:
    """Others ask for all room that there is, from before the eviction until it has landed."""
    first, second = yard.nodes
    yard.deploy("web", first, replicas=2)
    policy = tmp_path / "policy.yaml"
    policy.write_text(yaml.safe_dump(spreading(f"{GROUP}={yard.corner.name}")))
    mishaps.may_evict.clear()
    try:
        said = rebalanced(rebalance_kubeconfig, f"--policy-config-file={policy}")
        assert "1 PodMoves written, 0 pods evicted, 0 could not be" in said
        (written,) = yard.written()
        name, spec = written["metadata"]["name"], written["spec"]
        assert (spec["to"], spec["group"]["size"]) == ({"node": second}, 1)
        yard.wait_phase(name, "Evicting")
        greedy = yard.workload("greedy", replicas=6, cpu="1")
        yard.apps.create_namespaced_deployment(yard.corner.name, greedy)
        bound = partial(yard.nodes_of, "greedy")
        wait_for(lambda: len(yard.pods("greedy")) == 6, "there are six")
        wait_for(lambda: bound() == [second, second], "they have what is not held")
        (refused, *_) = [pod for pod in yard.pods("greedy") if not pod.spec.node_name]
        yard.corner.wait_refused(refused.metadata.name, "held by reservation")
        assert yard.nodes_of("web") == [first, first]
    finally:
        mishaps.may_evict.set()
    yard.wait_phase(name, "Succeeded", reason="Landed")
    wait_for(lambda: len(bound()) == 4, "they have what was left behind")
    assert sorted(yard.nodes_of("web")) == sorted((first, second))
    assert Counter(bound()) == {first: 2, second: 2}
    yard.wait_released()


def assert_seats_were_kept(folder: Path) -> None:
    """Judge a recorded history: no pod left before its seat was held, and no seat outlived it."""
    history = read_history(folder)
    assert {line.collection for line in history.lines} >= {"pods", "podmoves", "reservations"}
    report = judge(history, Rules(schedulers=frozenset({SCHEDULER})))
    broken = [each for each in report.violations if each.kind in SEATS]
    assert not broken, broken


def test_two_pods_on_full_nodes_change_places_through_a_third_one(
    yard: Yard, mishaps: Deadly, kubeconfig: Path, rebalance_kubeconfig: Path, tmp_path: Path
) -> None:
    """Others ask for all room that there is, from before the first eviction to the last landing."""
    first, second, third = yard.nodes = [*yard.nodes, *yard.corner.add_nodes(1, cpu="4")]
    roles = dict(zip("xyz", yard.nodes, strict=True))
    for role, node in roles.items():
        yard.corner.api.patch_node(node, {"metadata": {"labels": {"role": role}}})
    yard.deploy("web", first, cpu="4", affinity=preferring("y"))
    yard.deploy("db", second, cpu="4", affinity=preferring("x"))
    policy = tmp_path / "policy.yaml"
    asked = {"nodeAffinityType": ["preferredDuringSchedulingIgnoredDuringExecution"]}
    selector = f"{GROUP}={yard.corner.name}"
    policy.write_text(yaml.safe_dump(balancing(selector, NODE_AFFINITY, "deschedule", **asked)))
    mishaps.may_evict.clear()
    try:
        with Recorder(kubeconfig, tmp_path, objects=True, moves=True):
            said = rebalanced(rebalance_kubeconfig, f"--policy-config-file={policy}")
            assert "3 PodMoves written, 0 pods evicted, 0 could not be" in said
            written = sorted(yard.written(), key=lambda move: move["metadata"]["name"])
            aside, across, home = (move["metadata"]["name"] for move in written)
            assert [move["spec"]["pod"].get("after") for move in written] == [None, None, aside]
            yard.wait_phase(aside, "Evicting", reason="ReadyToEvict")
            yard.wait_phase(home, "Pending", reason="WaitsForMove")
            greedy = yard.workload("greedy", replicas=6, cpu="1")
            yard.apps.create_namespaced_deployment(yard.corner.name, greedy)
            wait_for(lambda: len(yard.pods("greedy")) == 6, "there are six")
            for pod in yard.pods("greedy"):
                yard.corner.wait_refused(pod.metadata.name)
            mishaps.may_evict.set()
            for name in (aside, across, home):
                yard.wait_phase(name, "Succeeded", reason="Landed")
            wait_for(lambda: yard.nodes_of("greedy") == [third] * 4, "they have what is left over")
            yard.wait_released()
    finally:
        mishaps.may_evict.set()
    assert (yard.nodes_of("web"), yard.nodes_of("db")) == ([second], [first])
    assert_seats_were_kept(tmp_path)
