"""What is claimed is replaced once, whoever leads, as the promises have it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.bed.bed import scheduling
from hack.bed.replicas import Replicas
from hack.controlplane.cluster import ControlPlane
from hack.promises.check import Rules, judge, read_history
from hack.promises.record import Recorder
from hack.promises.report import Report
from hack.reserver_process import wait_for
from tests.e2e.cluster import Corner
from tests.e2e.forms import SPEC
from tests.e2e.test_placement import parts, wait_placed, write

pytestmark = pytest.mark.controlplane

SCHEDULER = "over-refills"


@pytest.fixture(scope="module")
def leaders(
    reserver_kubeconfig: Path,
    control_plane: ControlPlane,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Replicas]:
    """A leader and its standby, and a kube-scheduler that asks whichever leads."""
    folder = tmp_path_factory.mktemp("refills")
    with (
        Replicas(reserver_kubeconfig, folder, 2) as replicas,
        scheduling(control_plane, replicas.port, SCHEDULER),
    ):
        yield replicas


@pytest.fixture
def room(corner: Corner) -> Corner:
    corner.scheduler = SCHEDULER
    return corner


def judged(folder: Path, leaders: Replicas) -> Report:
    rules = Rules(schedulers=frozenset({SCHEDULER}), ends=tuple(leaders.ends))
    return judge(read_history(folder), rules)


def test_a_claimed_slot_is_replaced_once_by_whoever_leads(
    room: Corner, leaders: Replicas, kubeconfig: Path, tmp_path: Path
) -> None:
    first, second, third = sorted(room.add_nodes(3, cpu="4"))
    owners = [{"selector": {"matchLabels": {"app": "web"}, "namespace": room.name}}]
    with Recorder(kubeconfig, tmp_path, objects=True):
        key = write(room, SPEC, "web", owners=owners, resources={"cpu": "3"}, refill=True)
        taken = wait_placed(room, SPEC, key)
        dies = threading.Thread(target=leaders.kill_in_turn, args=(0,), kwargs={"is_leader": True})
        room.create_pod("web-1", {"cpu": "3"}, labels={"app": "web"})
        assert room.wait_bound("web-1") == taken
        dies.start()
        room.create_pod("web-2", {"cpu": "3"}, labels={"app": "web"})
        room.wait_bound("web-2")
        dies.join()
        wait_for(lambda: set(parts(room, SPEC, key)) == {first, second, third}, "all is placed")
        assert set(parts(room, SPEC, key).values()) == {1}
        room.create_pod("stranger", {"cpu": "2"})
        room.wait_refused("stranger", "held by reservation")
        room.create_pod("web-3", {"cpu": "3"}, labels={"app": "web"})
        room.wait_bound("web-3")
        assert {room.node_of(f"web-{n}") for n in (1, 2, 3)} == {first, second, third}
    report = judged(tmp_path, leaders)
    assert report.violations == ()
    assert report.counts["owners"]
