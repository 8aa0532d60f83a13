"""Evictions of moves are judged: each needs its seat, and the seats of its group."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from tests.unit.promises.moves.moved import WITHOUT, Moved

BEFORE_GROUP = "evicted before its group had seats"
PAIR = {"name": "pair", "size": 2}


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


def test_who_evicts_without_a_seat_on_purpose_is_right(tape: Moved) -> None:
    tape.move("Evicting", mode="EvictOnly")
    tape.evict()
    assert tape.found() == []


@pytest.mark.parametrize(
    "phases", [("Evicting",), ("Evicting", "Reserving"), ("Succeeded",), ("Aborted",)]
)
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


def test_a_removal_by_surge_before_the_group_has_seats_is_caught(tape: Moved) -> None:
    tape.hold(backed="True")
    tape.move("Surging", group=PAIR)
    tape.move("HandingOver")
    tape.delete("web-0")
    tape.member("Evicting")
    assert tape.found(BEFORE_GROUP) == [BEFORE_GROUP]


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
