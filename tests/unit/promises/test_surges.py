"""Surges are judged: the copy is ready before the pod goes, and nothing of it stays."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.promises.tape import NOW, Tape, rfc3339

EARLY, EVICTED, OUTLIVED = (
    "removed before its copy was ready",
    "evicted while it surged",
    "surge outlived its move",
)


class Surging(Tape):
    """A pod on worker-1, a move of it by SurgeFirst, and its copy."""

    def __init__(self) -> None:
        super().__init__()
        self.node("worker-1")
        self.node("worker-2")
        self.land("web-0", "worker-1", maker="web")
        self.status: dict[str, Any] = {"podUID": self._uid("web-0")}

    def _uid(self, name: str) -> str:
        return str(self._objects["pods", f"shop/{name}"]["metadata"]["uid"])

    def move(self, phase: str, **status: str) -> None:
        self.status |= {"phase": phase, **status}
        metadata = {"name": "move", "namespace": "shop", "uid": "uid-move"}
        spec = {"pod": {"name": "web-0"}, "mode": "SurgeFirst"}
        body = {"metadata": metadata, "spec": spec, "status": self.status}
        self._write("podmoves", "shop/move", body)

    def copy(self, *, is_ready: bool) -> None:
        self.land("web-1", "worker-2", annotations={"reserver.io/surge": "move/uid-move"})
        self.status["replacement"] = {"name": "web-1", "uid": self._uid("web-1")}
        self.move("Surging")
        self.turn(is_ready=is_ready)

    def seat(self, node: str, copy: str) -> None:
        """Hold room for the copy, and for the replacement of the pod."""
        made_by = [{"kind": "PodMove", "name": "move", "uid": "uid-move"}]
        metadata = {"name": "seat", "namespace": "shop", "uid": "uid-seat"}
        owner = {"controller": {"kind": "ReplicaSet", "name": "web"}}
        replaces = {"replaces": {"uid": self._uid("web-0"), "existing": []}}
        spec = {"owners": [owner | replaces, {"pod": {"name": copy}}], "resources": {"cpu": "1"}}
        spec |= {"node": node, "policy": "Require", "expiresAt": rfc3339(NOW + 600)}
        body = {"metadata": metadata | {"ownerReferences": made_by}, "spec": spec}
        self._write("reservations", "shop/seat", body)

    def turn(self, *, is_ready: bool) -> None:
        """Make the copy ready or unready."""
        body = self._objects["pods", "shop/web-1"]
        body["status"]["conditions"] = [{"type": "Ready", "status": str(is_ready)}]
        self._write("pods", "shop/web-1", body)

    def hand_over(self) -> None:
        self.move("HandingOver")
        body = self._objects["pods", "shop/web-1"]
        body["metadata"]["annotations"] = {}
        self._write("pods", "shop/web-1", body)

    def leave(self, *conditions: dict[str, str]) -> None:
        body = self._objects["pods", "shop/web-0"]
        body["status"]["conditions"] = list(conditions)
        body["metadata"]["deletionTimestamp"] = rfc3339(NOW)
        self._write("pods", "shop/web-0", body)
        self.delete("web-0")


@pytest.fixture
def tape() -> Surging:
    return Surging()


def test_a_copy_that_is_ready_and_takes_over_is_right(tape: Surging) -> None:
    tape.copy(is_ready=True)
    tape.hand_over()
    tape.leave()
    tape.move("Succeeded")
    tape.wait(120)
    assert tape.kinds() == []


def test_a_copy_takes_its_seat_while_the_pod_is_there(tape: Surging) -> None:
    """A later pod gets the rest."""
    tape.seat("worker-2", copy="web-1")
    tape.wait(5)
    tape.land("web-1", "worker-2", "shop/seat#uid-seat")
    tape.land("stranger", "worker-2", cpu="3")
    report = tape.report()
    assert [str(each.kind) for each in report.violations] == []
    assert report.counts["owners"] == 1


def test_a_pod_that_goes_while_its_copy_is_not_ready_is_found(tape: Surging) -> None:
    tape.copy(is_ready=True)
    tape.hand_over()
    tape.turn(is_ready=False)
    tape.leave()
    assert tape.kinds() == [EARLY]


def test_a_pod_that_goes_when_its_copy_is_gone_is_found(tape: Surging) -> None:
    tape.copy(is_ready=True)
    tape.hand_over()
    tape.delete("web-1")
    tape.leave()
    assert tape.kinds() == [EARLY]


def test_a_pod_may_leave_by_itself_before_the_handover(tape: Surging) -> None:
    tape.copy(is_ready=False)
    tape.leave()
    assert tape.kinds() == []


@pytest.mark.parametrize(("fallback", "found"), [("", [EVICTED]), ("a roll-out", [])])
def test_only_a_move_that_fell_back_evicts(tape: Surging, fallback: str, found: list[str]) -> None:
    tape.move("Evicting", fallback=fallback)
    reason = {"reason": "EvictionByEvictionAPI"}
    tape.leave({"type": "DisruptionTarget", "status": "True", **reason})
    assert [kind for kind in tape.kinds() if kind == EVICTED] == found


@pytest.mark.parametrize(("seconds", "found"), [(0.1, []), (120, [OUTLIVED])])
def test_a_copy_does_not_outlive_its_move(tape: Surging, seconds: float, found: list[str]) -> None:
    tape.copy(is_ready=False)
    tape.move("Failed")
    tape.wait(seconds)
    tape.delete("web-1")
    assert tape.kinds() == found


def test_a_copy_that_is_left_at_the_end_is_found(tape: Surging) -> None:
    tape.copy(is_ready=False)
    tape.move("Failed")
    tape.wait(120)
    assert tape.kinds() == [OUTLIVED]
