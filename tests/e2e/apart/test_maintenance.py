"""MaintenanceWindows on the real control plane: nodes are emptied in turn, and given back."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from kubernetes.client import PolicyV1Api
from kubernetes.client.exceptions import ApiException

from hack.chaos.moving.deadly import Deadly
from hack.promises.check import Kind, Rules, judge, read_history
from hack.promises.record import Recorder
from hack.reserver_process import ReserverProcess, wait_for
from tests.e2e.apart.conftest import SCHEDULER
from tests.e2e.apart.maintaining import DRAINED, DRAINING, IN_PROGRESS, PLANNED, Plan, shown
from tests.e2e.apart.yard import Yard, cordon, keep
from tests.e2e.forms import OBJECT
from tests.e2e.test_placement import parts, write

pytestmark = pytest.mark.controlplane
PROMISES = {Kind.EVICTED_WITHOUT_SEAT, Kind.PLACED_IN_MAINTENANCE, Kind.CORDON_LIFTED}


@pytest.fixture
def _judged(kubeconfig: Path, tmp_path: Path) -> Iterator[None]:
    """Judge Reserver's actions in the test by its promises."""
    with Recorder(kubeconfig, tmp_path, objects=True, moves=True):
        yield
    report = judge(read_history(tmp_path), Rules(schedulers=frozenset({SCHEDULER})))
    assert not [each for each in report.violations if each.kind in PROMISES]
    assert report.counts["writes"]


@pytest.fixture
def plan(yard: Yard, mishaps: Deadly) -> Iterator[Plan]:
    made = Plan(yard)
    yield made
    mishaps.disarm()
    for name in tuple(made.written):
        made.delete(name)


@pytest.mark.usefixtures("_judged")
def test_nodes_are_emptied_in_turn_with_seats_and_budgets_and_given_back(plan: Plan) -> None:
    yard, (first, second) = plan.yard, plan.yard.nodes
    corner = yard.corner
    yard.deploy("web", first, replicas=2, cpu="1")
    policy: Any = PolicyV1Api(corner.api.api_client)
    keep(policy, corner.name, "web", available=1)
    hold = write(corner, OBJECT, "hold", resources={"cpu": "1"})
    wait_for(lambda: parts(corner, OBJECT, hold), "the hold is placed")
    (refuge,) = corner.add_nodes(1, cpu="8")
    corner.create_pod("scout", {"cpu": "100m"}, nodeSelector={"kubernetes.io/hostname": refuge})
    corner.wait_bound("scout")  # Else pods may go to the second node, which Reserver knows already.
    window = plan.window(first, second, starts_in_s=600)
    plan.wait(window, **{first: "Drained", second: "Waiting"})
    yard.wait_on("web", refuge, replicas=2)
    moves = [move["spec"].get("mode", "ReserveFirst") for move in yard.written()]
    assert moves == ["ReserveFirst"] * 2
    assert plan.is_cordoned(first)
    assert not plan.is_cordoned(second)
    plan.wait_conditions(first, PLANNED, DRAINED)
    plan.change(window, start=shown(datetime.now(UTC)))
    plan.wait(window, **{first: "InMaintenance"})
    plan.wait_conditions(first, DRAINED, IN_PROGRESS)
    plan.wait_conditions(second, PLANNED)
    wait_for(lambda: first not in parts(corner, OBJECT, hold), "the hold is not there")
    cordon(corner.api, {first}, is_cordoned=False)
    plan.wait(window, **{first: "Done", second: "InMaintenance"})
    wait_for(lambda: set(parts(corner, OBJECT, hold)) == {refuge}, "the hold has left both")
    plan.change(window, end=shown(datetime.now(UTC) + timedelta(seconds=1)))
    plan.wait_given_back(first, second)


@pytest.mark.usefixtures("_judged")
def test_a_window_that_is_deleted_ends_its_moves_and_lifts_only_its_own_cordon(plan: Plan) -> None:
    yard, (first, second) = plan.yard, plan.yard.nodes
    yard.deploy("web", first, cpu="3")
    yard.deploy("full", second, cpu="3")
    cordon(plan.api, {second}, is_cordoned=True)
    window = plan.window(first, second, maxUnavailable=2)
    plan.wait(window, **{first: "Draining", second: "Draining"})
    wait_for(lambda: len(plan.open_moves()) == 2, "moves wait for seats")
    plan.delete(window)
    plan.wait_given_back(first)
    wait_for(lambda: not plan.open_moves(), "no move is left")
    wait_for(lambda: not plan.conditions(second), "the conditions are gone")
    assert plan.is_cordoned(second)
    assert yard.nodes_of("web") == [first]
    cordon(plan.api, {second}, is_cordoned=False)


def test_a_window_that_comes_again_gives_nodes_back_and_takes_them_for_the_next(plan: Plan) -> None:
    yard, (node, other) = plan.yard, plan.yard.nodes
    this = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(minutes=1)
    following = this + timedelta(minutes=20)
    schedule = {"cron": f"{this.minute},{following.minute} * * * *", "duration": "15m"}
    times: dict[str, Any] = {"start": None, "end": None, "schedule": schedule}
    window = plan.window(node, surge=True, drainBefore="1s", **times)
    plan.wait(window, **{node: "InMaintenance"})
    assert plan.status(window)["start"] == shown(this)
    schedule["duration"] = f"{(datetime.now(UTC) - this).seconds + 2}s"
    plan.change(window, schedule=schedule)
    plan.wait(window, **{node: "Planned"})
    assert plan.status(window)["start"] == shown(following)
    yard.deploy("web", node, cpu="1")
    ahead = (following - datetime.now(UTC)).seconds - 2
    plan.change(window, drainBefore=f"{ahead}s")
    plan.wait(window, **{node: "Drained"})
    yard.wait_on("web", other)
    assert [move["spec"].get("mode") for move in yard.written()] == ["SurgeFirst"]
    assert plan.is_cordoned(node)
    plan.change(window, schedule=schedule | {"until": shown(this)})
    plan.wait_given_back(node)
    wait_for(lambda: plan.phase(window) == "Over", "the window is over")


def test_what_finds_no_seat_stays_unless_the_window_allows_it(plan: Plan) -> None:
    yard, (first, second) = plan.yard, plan.yard.nodes
    yard.deploy("web", first, cpu="3")
    yard.deploy("full", second, cpu="3")
    window = plan.window(first, starts_in_s=3)
    wait_for(plan.open_moves, "a move waits for a seat")
    wait_for(lambda: plan.phase(window) == "Active", "it has started")
    assert plan.phases(window) == {first: "Draining"}
    assert yard.nodes_of("web") == [first]
    plan.change(window, allowUnseated=True)
    plan.wait(window, **{first: "InMaintenance"})


def test_overlapping_windows_hand_a_node_over_and_each_has_its_turn_once(plan: Plan) -> None:
    node, _ = plan.yard.nodes
    one, two = plan.window(node, name="-1"), plan.window(node, name="-2")
    plan.wait(one, **{node: "InMaintenance"})
    plan.wait(two, **{node: "Waiting"})
    plan.delete(one)
    plan.wait(two, **{node: "InMaintenance"})
    assert plan.is_cordoned(node)
    cordon(plan.api, {node}, is_cordoned=False)
    plan.wait(two, **{node: "Done"})
    plan.delete(two)
    plan.wait_given_back(node)


@pytest.mark.usefixtures("_judged")
def test_reserver_that_is_killed_at_any_write_goes_on(
    plan: Plan, mover: ReserverProcess, mishaps: Deadly
) -> None:
    yard, (first, second) = plan.yard, plan.yard.nodes
    yard.deploy("web", first, cpu="1")
    name = yard.corner.name
    writes = (f"/nodes/{first}", f"/nodes/{first}/status", "/podmoves", f"/{name}/status")

    is_up = Event()
    is_up.set()

    def kill() -> None:
        is_up.wait()  # It is not killed while this test waits for its start.
        mover.process.kill()

    def kill_at(path: str, *, is_done: bool) -> None:
        mishaps.arm(kill, at=path, is_done=is_done)

    def start_again(*paths: str) -> None:
        """Have it killed at each of these writes once more, and started again."""
        for turn, path in enumerate((*paths, "")):
            mover.wait_ended()
            is_up.clear()
            if path:
                kill_at(path, is_done=bool(turn % 2))
            mover.start()
            is_up.set()

    kill_at(writes[0], is_done=False)
    window = plan.window(first)
    start_again(*writes)
    plan.wait(window, **{first: "InMaintenance"})
    yard.wait_on("web", second)
    assert len(yard.written()) == 1
    kill_at(writes[0], is_done=True)
    plan.delete(window)
    start_again(writes[1])
    plan.wait_given_back(first)


@pytest.mark.usefixtures("_judged")
def test_holds_leave_a_node_that_others_maintain(plan: Plan) -> None:
    yard, (first, second) = plan.yard, plan.yard.nodes
    corner = yard.corner
    hold = write(corner, OBJECT, "hold", resources={"cpu": "2"})
    wait_for(lambda: parts(corner, OBJECT, hold), "the hold is placed")
    (node,) = parts(corner, OBJECT, hold)
    others = {"type": DRAINING, "status": "True", "reason": "KubectlDrain", "message": ""}
    corner.api.patch_node_status(node, {"status": {"conditions": [others]}})
    (other,) = {first, second} - {node}
    wait_for(lambda: set(parts(corner, OBJECT, hold)) == {other}, "the hold has left")
    assert plan.conditions(node) == {DRAINING}


@pytest.mark.parametrize(
    "spec",
    [
        {"nodes": []},
        {"end": "2020-01-01T00:00:00Z"},
        {"end": None},
        {"schedule": {"cron": "0 22 * * *", "duration": "2h"}},
        {"start": None, "end": None, "schedule": {"cron": "0 22 * * *", "duration": "721h"}},
        {"start": None, "end": None, "schedule": {"cron": "0 22 * * *"}},
        {"end": "2099-01-01T00:00:00Z"},
        {"drainBefore": "169h"},
        {"drainBefore": "soon"},
        {"maxUnavailable": 0},
        {"maxUnavailable": "101%"},
        {"nodes": ["a"] * 501},
    ],
)
def test_the_api_server_refuses_what_reserver_could_not_read(
    plan: Plan, spec: dict[str, Any]
) -> None:
    with pytest.raises(ApiException, match="nvalid"):
        plan.window("a", **spec)
