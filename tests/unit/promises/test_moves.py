"""Moves are judged: no eviction without a seat, and no seat outlives its move."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from tests.unit.promises.tape import NOW, Tape, rfc3339

WITHOUT, OUTLIVED = "evicted without a seat", "seat outlived its move"
BEFORE_GROUP = "evicted before its group had seats"
PAIR = {"name": "pair", "size": 2}
GIVEN_UP = "seat given up before the landing"


class Moved(Tape):
    """A pod on worker-1, and a move of it."""

    def __init__(self) -> None:
        super().__init__()
        self.node("worker-1")
        self.node("worker-2")
        self.land("web-0", "worker-1", maker="web")
        self.uid = self._objects["pods", "shop/web-0"]["metadata"]["uid"]
        self.spec: dict[str, Any] = {"pod": {"name": "web-0"}}
        self.status: dict[str, Any] = {}

    def move(self, phase: str, *, seat: str = "seat", **spec: Any) -> None:
        self.spec |= spec
        self.status |= {"phase": phase, "podUID": self.uid, "reservation": seat}
        metadata = {"name": "move", "namespace": "shop", "uid": "uid-move"}
        body = {"metadata": metadata, "spec": self.spec, "status": self.status}
        self._write("podmoves", "shop/move", body)

    def member(self, phase: str, namespace: str = "shop") -> None:
        """Write another move of the same group."""
        metadata = {"name": "other", "namespace": namespace, "uid": f"uid-other-{namespace}"}
        spec = {"pod": {"name": "db-0"}, "group": self.spec["group"]}
        status = {"phase": phase, "podUID": "uid-db", "reservation": "seat-2"}
        body = {"metadata": metadata, "spec": spec, "status": status}
        self._write("podmoves", f"{namespace}/other", body)

    def hold(self, *, node: str = "worker-2", backed: str = "", uid: str = "uid-move") -> None:
        made_by = [{"kind": "PodMove", "name": "move", "uid": uid}]
        metadata = {"name": "seat", "namespace": "shop", "uid": "uid-seat"}
        owner = {"controller": {"kind": "ReplicaSet", "name": "web"}}
        spec = {
            "owners": [owner | {"replaces": {"uid": self.uid, "existing": ["uid-waits"]}}],
            "resources": {"cpu": "1"},
            "node": node,
            "policy": "Require",
            "expiresAt": rfc3339(NOW + 600),
        }
        status = {"phase": "Active", "conditions": [{"type": "Backed", "status": backed}]}
        body = {"metadata": metadata | {"ownerReferences": made_by}, "spec": spec}
        self._write("reservations", "shop/seat", body | ({"status": status} if backed else {}))

    def evict(self) -> None:
        body = self._objects["pods", "shop/web-0"]
        body["status"]["conditions"] = [
            {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
        ]
        body["metadata"]["deletionTimestamp"] = rfc3339(self.now)
        self._write("pods", "shop/web-0", body)
        self.delete("web-0")

    def volume(self, *hosts: str) -> None:
        """Have the pod use a claim whose volume is on some nodes only."""
        terms = [{"key": "kubernetes.io/hostname", "operator": "In", "values": list(hosts)}]
        affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": terms}]}}
        body = {"metadata": {"name": "pv", "uid": "uid-pv"}, "spec": {"nodeAffinity": affinity}}
        self._write("persistentvolumes", "/pv", body)
        claim = {"name": "data", "namespace": "shop", "uid": "uid-data"}
        body = {"metadata": claim, "spec": {"volumeName": "pv"}}
        self._write("persistentvolumeclaims", "shop/data", body)
        pod = self._objects["pods", "shop/web-0"]
        pod["spec"]["volumes"] = [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]
        self._write("pods", "shop/web-0", pod)

    def found(self, *kinds: str) -> list[str]:
        return [kind for kind in self.kinds() if kind in (kinds or {WITHOUT, OUTLIVED})]


@pytest.fixture
def tape() -> Moved:
    return Moved()


def land_replacement(tape: Moved) -> None:
    tape.pod("web-1", maker="web")
    tape.bind("web-1", "worker-2", "shop/seat#uid-seat")
    tape.move("Succeeded")
    tape._delete("reservations", "shop/seat")
    tape.wait(60)


def test_a_move_with_a_seat_is_right(tape: Moved) -> None:
    tape.move("Reserving")
    tape.hold(backed="False")
    tape.hold(backed="True")
    tape.move("Evicting")
    tape.evict()
    land_replacement(tape)
    assert tape.kinds() == []


def test_a_pod_that_waited_before_is_no_owner_of_the_seat(tape: Moved) -> None:
    tape.pod("waits", maker="web")
    tape.move("Reserving")
    tape.hold(backed="True")
    tape.wait(5)
    tape.bind("waits", "worker-1")
    tape.evict()
    land_replacement(tape)
    assert tape.kinds() == []


@pytest.mark.parametrize(("is_restarted", "found"), [(True, []), (False, ["given away"])])
def test_a_sibling_that_waits_takes_the_seat_only_after_a_restart(
    tape: Moved, *, is_restarted: bool, found: list[str]
) -> None:
    tape.node("worker-2", cpu="1")
    tape.move("Reserving")
    tape.hold(backed="True")
    tape.wait(5)
    tape.pod("sibling", maker="web")
    tape.evict()
    tape.wait(5)
    ends = (tape.now,) if is_restarted else ()
    tape.wait(5)
    tape.bind("sibling", "worker-2", "shop/seat#uid-seat")
    tape.move("Succeeded")
    tape._delete("reservations", "shop/seat")
    tape.wait(60)
    assert [kind for kind in tape.kinds(ends=ends) if kind == "given away"] == found


@pytest.mark.parametrize(
    "holds",
    [
        pytest.param((), id="none"),
        pytest.param(({"backed": "False"},), id="not backed"),
        pytest.param(({"node": "worker-1", "backed": "True"},), id="where it is"),
        pytest.param(({"backed": "True"}, {"backed": "False"}), id="no longer backed"),
    ],
)
def test_an_eviction_without_a_seat_is_caught(tape: Moved, holds: Iterable[Any]) -> None:
    tape.move("Reserving")
    for each in holds:
        tape.hold(**each)
        tape.wait(5)
    tape.evict()
    assert tape.found() == [WITHOUT]


@pytest.mark.parametrize(
    ("hosts", "found"),
    [(("worker-1",), [WITHOUT]), (("worker-3", "worker-1"), [WITHOUT]), (("worker-2",), [])],
)
def test_an_eviction_for_a_seat_that_cannot_use_the_volume_is_caught(
    tape: Moved, hosts: tuple[str, ...], found: list[str]
) -> None:
    tape.volume(*hosts)
    tape.move("Reserving")
    tape.hold(backed="True")
    tape.evict()
    assert tape.found(WITHOUT) == found


def test_a_seat_that_goes_before_anybody_has_landed_on_it_is_caught(tape: Moved) -> None:
    tape.hold(backed="True")
    tape.evict()
    tape.move("Landing")
    tape._delete("reservations", "shop/seat")
    tape.move("Failed", reason="DeadlineExceeded")
    assert tape.found(GIVEN_UP) == [GIVEN_UP]


@pytest.mark.parametrize(
    ("reason", "found"),
    [("SeatImpossible", [GIVEN_UP]), ("GroupFailed", [GIVEN_UP]), ("LandedElsewhere", [])],
)
def test_a_move_that_ends_as_if_nobody_had_been_evicted_is_caught(
    tape: Moved, reason: str, found: list[str]
) -> None:
    tape.hold(backed="True")
    tape.evict()
    tape.move("Landing")
    tape.status["reason"] = reason
    tape.move("Failed")
    tape._delete("reservations", "shop/seat")
    assert tape.found(GIVEN_UP) == found


def test_who_has_claimed_a_seat_needs_it_no_more(tape: Moved) -> None:
    tape.hold(backed="True")
    tape.evict()
    tape.move("Landing")
    tape.pod("web-1", maker="web")
    tape.bind("web-1", "worker-2", "shop/seat#uid-seat")
    tape._delete("reservations", "shop/seat")
    tape.status["reason"] = "Landed"
    tape.move("Succeeded")
    assert tape.found(GIVEN_UP, OUTLIVED) == []


def test_a_seat_that_is_written_after_the_eviction_is_too_late(tape: Moved) -> None:
    tape.move("Evicting")
    tape.evict()
    tape.hold(backed="True")
    assert tape.found(WITHOUT) == [WITHOUT]


def test_what_says_that_it_is_backed_a_moment_later_was(tape: Moved) -> None:
    tape.move("Reserving")
    tape.hold()
    tape.evict()
    tape.hold(backed="True")
    assert tape.found(WITHOUT) == []


@pytest.mark.parametrize(
    ("node", "claims", "found"),
    [
        ("worker-2", ("shop/seat#uid-seat",), []),
        ("worker-2", (), [WITHOUT]),
        ("worker-1", ("shop/seat#uid-seat",), [WITHOUT]),
    ],
    ids=["claimed elsewhere", "claimed by nobody", "claimed where it was"],
)
def test_a_seat_that_came_and_went_in_a_gap_shows_in_its_claim(
    tape: Moved, node: str, claims: Iterable[str], found: list[str]
) -> None:
    tape.move("Evicting")
    before = tape.revision
    tape.hold(node=node, backed="True")
    tape.evict()
    tape.pod("web-1", maker="web")
    tape.bind("web-1", node, *claims)
    tape._delete("reservations", "shop/seat")
    tape.miss("reservations", before, gone=["shop/seat"])
    assert tape.records.pop()["type"] == "LISTED"  # The seat is gone.
    assert tape.found(WITHOUT) == found


def test_a_seat_that_its_move_names_in_a_gap_is_found_after_it(tape: Moved) -> None:
    tape.move("Reserving", seat="")
    before = tape.revision
    tape.hold(backed="True")
    tape.evict()
    tape.move("Landing")
    tape.miss("podmoves", before)
    assert tape.found(WITHOUT) == []


@pytest.mark.parametrize(("backed", "found"), [("True", []), ("False", [WITHOUT])])
def test_a_seat_that_stands_after_a_gap_is_judged_by_what_it_says_then(
    tape: Moved, backed: str, found: list[str]
) -> None:
    tape.move("Evicting")
    before = tape.revision
    tape.hold()
    tape.evict()
    tape.hold(backed=backed)
    tape.miss("reservations", before)
    assert tape.found(WITHOUT) == found


def test_who_evicts_without_a_seat_on_purpose_is_right(tape: Moved) -> None:
    tape.move("Evicting", mode="EvictOnly")
    tape.evict()
    assert tape.found() == []


@pytest.mark.parametrize("phases", [("Evicting",), ("Evicting", "Reserving"), ("Succeeded",)])
def test_a_group_whose_members_have_had_seats_is_right(
    tape: Moved, phases: tuple[str, ...]
) -> None:
    tape.hold(backed="True")
    tape.move("Evicting", group=PAIR)
    for phase in phases:
        tape.member(phase)
    tape.evict()
    tape.move("Landing")
    assert tape.found(BEFORE_GROUP, WITHOUT) == []


@pytest.mark.parametrize(
    ("phase", "namespace"), [("Reserving", "shop"), ("Failed", "shop"), ("Evicting", "office")]
)
def test_an_eviction_before_the_own_namespaces_group_has_seats_is_caught(
    tape: Moved, phase: str, namespace: str
) -> None:
    tape.hold(backed="True")
    tape.move("Evicting", group=PAIR)
    tape.member(phase, namespace)
    tape.evict()
    tape.move("Landing")
    tape.member("Evicting")
    assert tape.found(BEFORE_GROUP) == [BEFORE_GROUP]


@pytest.mark.parametrize("phase", ["Succeeded", "Failed", "Aborted"])
def test_a_seat_that_stands_when_its_move_has_ended_is_caught(tape: Moved, phase: str) -> None:
    tape.hold(backed="True")
    tape.move(phase)
    tape.wait(60)
    assert tape.found() == [OUTLIVED]


def test_a_seat_whose_move_was_deleted_is_caught(tape: Moved) -> None:
    tape.hold(backed="True")
    tape.move("Reserving")
    tape._delete("podmoves", "shop/move")
    tape.wait(60)
    assert tape.found() == [OUTLIVED]
    tape._delete("reservations", "shop/seat")
    assert tape.found() == [OUTLIVED]
