"""Occurrences and whole nodes are held, and end, as the promises have it, whoever leads."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hack.bed.bed import scheduling
from hack.bed.replicas import Replicas
from hack.bed.wall_clock import WallClock
from hack.controlplane.cluster import ControlPlane
from hack.promises.check import Rules, judge, read_history
from hack.promises.record import Recorder
from hack.reserver_process import ReserverProcess, wait_for
from tests.e2e.cluster import Corner
from tests.e2e.forms import SPEC
from tests.e2e.test_placement import parts
from tests.e2e.test_status import status, wait_status
from tests.e2e.test_whole_nodes import TRAIN, write

pytestmark = pytest.mark.controlplane

SCHEDULER = "over-leaders"
OWNERS = ("first", "second")
ENDS, BEGINS = timedelta(seconds=25), timedelta(seconds=58)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("leaders")


@pytest.fixture(scope="module")
def clock(folder: Path) -> WallClock:
    return WallClock(folder / "clock")


@pytest.fixture(scope="module")
def leaders(
    reserver: ReserverProcess,
    reserver_kubeconfig: Path,
    control_plane: ControlPlane,
    folder: Path,
    clock: WallClock,
) -> Iterator[Replicas]:
    """A leader and its standby, and a kube-scheduler that asks whichever leads.

    No other Reserver runs, which might acknowledge what the leader has not read yet.
    """
    with (
        reserver.down(),
        Replicas(reserver_kubeconfig, folder, 2, prepare=clock.code) as replicas,
        scheduling(control_plane, replicas.port, SCHEDULER),
    ):
        yield replicas


@pytest.fixture
def room(corner: Corner) -> Corner:
    corner.scheduler = SCHEDULER
    return corner


def schedule(now: datetime, following: datetime) -> dict[str, Any]:
    """Return one whose occurrence ends soon, and whose next one begins to hold a little later."""
    this = now.replace(second=0, microsecond=0) - timedelta(minutes=1)  # A minute at least.
    minutes = ",".join(str(each.minute) for each in (this, following))
    lasts, lead = now + ENDS - this, following - (now + BEGINS)
    return {
        "cron": f"{minutes} * * * *",
        "duration": f"{lasts.total_seconds():.0f}s",
        "lead": f"{lead.total_seconds():.0f}s",
    }


def holds(room: Corner, key: str, start: datetime) -> bool:
    """Return whether the occurrence of a start holds."""
    told: Any = status(room, SPEC, key) or {}
    starts = [each["startsAt"] for each in told.get("occurrences", ())]
    return told.get("phase") == "Active" and starts[:1] == [start.isoformat()]


def on(node: str) -> dict[str, Any]:
    """Return what keeps a pod to a node, whether it is held whole or not."""
    return {"nodeSelector": {"kubernetes.io/hostname": node}}


def train(room: Corner, number: int, node: str) -> None:
    """Have an owner of whole nodes come, and land."""
    room.create_pod(f"train-{number}", {"cpu": "1"}, labels=TRAIN, **on(node))
    assert room.wait_bound(f"train-{number}") == node


def entries(room: Corner, node: str, whole: str, times: dict[str, Any]) -> dict[str, str]:
    """Return reservations of two slots on a node, and of a whole node, that recur."""
    names = [{"pod": {"name": name, "namespace": room.name}} for name in OWNERS]
    slots: dict[str, Any] = {"owners": names, "slots": 2, "node": node, "ttl": 0}
    slots |= {"resources": {"cpu": "1500m"}, "schedule": times}
    owners = [{"selector": {"matchLabels": TRAIN, "namespace": room.name}}]
    nodes = {"count": 1, "selector": on(whole)["nodeSelector"]}
    whole_node = {"owners": owners, "nodes": nodes, "schedule": times}
    return {f"{room.name}.coming": json.dumps(slots), f"{room.name}.whole": json.dumps(whole_node)}


def wait_kept_out(room: Corner, **strangers: tuple[str, str]) -> None:
    """Create pods for nodes, with CPUs, and return once holds have refused the pods."""
    for name, (node, cpu) in strangers.items():
        room.create_pod(name, {"cpu": cpu}, **on(node))
    for name in strangers:
        room.wait_refused(name, "held by reservation")


@pytest.mark.release
def test_occurrences_end_begin_and_are_left_out_while_leaders_die(
    room: Corner, leaders: Replicas, clock: WallClock, kubeconfig: Path, tmp_path: Path
) -> None:
    node, whole = room.add_nodes(2, cpu="4")
    key, whole_key = f"{room.name}.coming", f"{room.name}.whole"
    with Recorder(kubeconfig, tmp_path, objects=True):
        now = datetime.now(UTC)
        following = now.replace(second=0, microsecond=0) + timedelta(minutes=2)
        times = schedule(now, following)
        room.patch_store(SPEC.store, entries(room, node, whole, times))
        room.create_pod("first", {"cpu": "1500m"}, **on(node))
        assert room.wait_bound("first") == node
        clock.set_wrong(3_600)
        wait_status(room, SPEC, whole_key, phase="Active", backed=True)
        wait_kept_out(room, large=(node, "2"), guest=(whole, "0"))
        train(room, 1, whole)
        clock.set_wrong(-3_600)
        leaders.kill_in_turn(0, is_leader=True)
        clock.set_wrong(0)
        assert room.wait_bound("large") == node
        assert room.wait_bound("guest") == whole
        for name in ("large", "first", "guest"):
            room.delete_pod(name)
        for each in (key, whole_key):
            wait_for(partial(holds, room, each, following), "the next one begins to hold")
        wait_kept_out(room, larger=(node, "2"), late=(whole, "0"))
        room.create_pod("second", {"cpu": "1500m"}, **on(node))
        assert room.wait_bound("second") == node
        train(room, 2, whole)  # Where an owner runs on from the one before.
        times["skip"] = [following.isoformat()]
        room.patch_store(SPEC.store, entries(room, node, whole, times))
        assert room.wait_bound("larger") == node
        assert room.wait_bound("late") == whole
    rules = Rules(schedulers=frozenset({SCHEDULER}), ends=tuple(leaders.ends))
    report = judge(read_history(tmp_path), rules)
    assert report.violations == ()
    assert report.counts["owners"]  # One at the very start of its occurrence may not be sure.


def test_whole_nodes_stay_with_their_owners_whoever_leads(
    room: Corner, leaders: Replicas, kubeconfig: Path, tmp_path: Path
) -> None:
    first, second = room.add_nodes(2, cpu="4")
    with Recorder(kubeconfig, tmp_path, objects=True):
        train(room, 1, first)  # Before they are held.
        key = write(room, SPEC, 2)
        wait_status(room, SPEC, key, phase="Active", backed=True)
        assert parts(room, SPEC, key) == {first: 1, second: 1}
        room.create_pod("stranger", {})
        room.wait_refused("stranger", "held by reservation")
        dies = threading.Thread(target=leaders.kill_in_turn, args=(0,), kwargs={"is_leader": True})
        dies.start()
        for number, node in enumerate((first, second), 2):
            train(room, number, node)
        dies.join()
        train(room, 4, second)
        assert parts(room, SPEC, key) == {first: 1, second: 1}
        assert room.node_of("stranger") is None
        room.patch_store(SPEC.store, {key: None})
        room.wait_bound("stranger")
    rules = Rules(schedulers=frozenset({SCHEDULER}), ends=tuple(leaders.ends))
    report = judge(read_history(tmp_path), rules)
    assert report.violations == ()
    assert report.counts["owners"]
