"""Occurrences begin and end by the clock, through a change of leaders, as the promises have it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hack.bed.bed import scheduling
from hack.bed.replicas import Replicas
from hack.bed.wall_clock import WallClock
from hack.controlplane.cluster import ControlPlane
from hack.promises.check import Rules, judge, read_history
from hack.promises.record import Recorder
from hack.reserver_process import wait_for
from tests.e2e.cluster import Corner
from tests.e2e.forms import SPEC
from tests.e2e.test_status import status

pytestmark = pytest.mark.controlplane

SCHEDULER = "over-leaders"
OWNERS = ("first", "second")
ENDS, BEGINS = timedelta(seconds=10), timedelta(seconds=32)


@pytest.fixture
def clock(tmp_path: Path) -> WallClock:
    return WallClock(tmp_path / "clock")


@pytest.fixture
def leaders(
    reserver_kubeconfig: Path, control_plane: ControlPlane, tmp_path: Path, clock: WallClock
) -> Iterator[Replicas]:
    """A leader and its standby, and a kube-scheduler that asks whichever leads."""
    with (
        Replicas(reserver_kubeconfig, tmp_path, 2, prepare=clock.code) as replicas,
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


def test_occurrences_end_begin_and_are_left_out_while_leaders_die(
    room: Corner, leaders: Replicas, clock: WallClock, kubeconfig: Path, tmp_path: Path
) -> None:
    (node,) = room.add_nodes(1, cpu="4")
    key = f"{room.name}.coming"
    with Recorder(kubeconfig, tmp_path, objects=True):
        now = datetime.now(UTC)
        following = now.replace(second=0, microsecond=0) + timedelta(minutes=2)
        names = [{"pod": {"name": name, "namespace": room.name}} for name in OWNERS]
        spec: dict[str, Any] = {"owners": names, "slots": 2, "node": node, "ttl": 0}
        spec |= {"resources": {"cpu": "1500m"}, "schedule": schedule(now, following)}
        room.patch_store(SPEC.store, {key: json.dumps(spec)})
        room.create_pod("first", {"cpu": "1500m"})
        assert room.wait_bound("first") == node
        clock.set_wrong(3_600)
        room.create_pod("large", {"cpu": "2"})
        room.wait_refused("large", "held by reservation")
        clock.set_wrong(-3_600)
        leaders.kill_in_turn(0, is_leader=True)
        clock.set_wrong(0)
        assert room.wait_bound("large") == node
        room.delete_pod("large")
        room.delete_pod("first")
        wait_for(lambda: holds(room, key, following), "the next one begins to hold")
        room.create_pod("larger", {"cpu": "2"})
        room.wait_refused("larger", "held by reservation")
        room.create_pod("second", {"cpu": "1500m"})
        assert room.wait_bound("second") == node
        spec["schedule"]["skip"] = [following.isoformat()]
        room.patch_store(SPEC.store, {key: json.dumps(spec)})
        assert room.wait_bound("larger") == node
    rules = Rules(schedulers=frozenset({SCHEDULER}), ends=tuple(leaders.ends))
    report = judge(read_history(tmp_path), rules)
    assert report.violations == ()
    assert report.counts["owners"]  # One at the very start of its occurrence may not be sure.
