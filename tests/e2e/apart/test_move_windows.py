"""A PodMove waits for the window in which its pod may be moved, on real Kubernetes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hack.promises.check import Kind, Rules, judge, read_history
from hack.promises.record import Recorder
from tests.e2e.apart.conftest import SCHEDULER
from tests.e2e.apart.yard import Yard

MOVES = {Kind.EVICTED_WITHOUT_SEAT, Kind.EVICTED_OUTSIDE_WINDOW, Kind.SEAT_OUTLIVED}
WINDOW = "reserver.io/move-window"

pytestmark = pytest.mark.controlplane


def daily(start: datetime) -> str:
    return f"{start.minute} {start.hour} * * * 1h"


def test_a_move_waits_for_the_window_of_its_pod_and_goes_on_in_it(
    yard: Yard, kubeconfig: Path, tmp_path: Path
) -> None:
    first, second = yard.nodes
    now = datetime.now(UTC)
    pod = yard.deploy("web", first, annotations={WINDOW: daily(now + timedelta(hours=3))})
    with Recorder(kubeconfig, tmp_path, objects=True, moves=True):
        yard.move("web", pod, to={"node": second})
        yard.wait_phase("web", "Pending", reason="WaitsForWindow")
        status = yard.status("web")
        opens = datetime.fromisoformat(status["windowOpensAt"])
        assert timedelta(hours=2, minutes=58) < opens - now <= timedelta(hours=3)
        assert "annotation reserver.io/move-window of the pod" in status["message"]
        assert yard.nodes_of("web") == [first]
        body = {"metadata": {"annotations": {WINDOW: daily(now - timedelta(minutes=10))}}}
        yard.corner.api.patch_namespaced_pod(pod, yard.corner.name, body)
        yard.wait_phase("web", "Succeeded", reason="Landed")
        yard.wait_released()
    report = judge(read_history(tmp_path), Rules(schedulers=frozenset({SCHEDULER})))
    assert not [each for each in report.violations if each.kind in MOVES]
    assert yard.nodes_of("web") == [second]
    conditions = {each["type"] for each in yard.status("web")["conditions"]}
    assert conditions == {"WindowOpened", "Evicted", "Done"}


def test_a_broken_window_keeps_its_own_pod_until_the_move_is_urgent(yard: Yard) -> None:
    first, second = yard.nodes
    broken = yard.deploy("broken", first, annotations={WINDOW: "at night"})
    other = yard.deploy("other", first)
    yard.move("broken", broken, to={"node": second})
    yard.move("other", other, to={"node": second})
    yard.wait_phase("other", "Succeeded", reason="Landed")
    yard.wait_phase("broken", "Pending", reason="WaitsForWindow")
    assert "'at night' is no window; write cron" in yard.status("broken")["message"]
    yard.change("broken", urgent=True)
    yard.wait_phase("broken", "Succeeded", reason="Landed")
