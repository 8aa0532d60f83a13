"""Reservations that are released when idle: not while a pod uses them, and not early."""

from __future__ import annotations

import json

import pytest

from hack.promises.check import Kind
from tests.unit.promises.tape import STORE, Tape

WEB = {"app": "web"}
PLACE = f"{STORE}/web"


def reserve(tape: Tape) -> None:
    """Write a reservation of two slots that is released after an idle minute; let time pass."""
    owners = [{"selector": {"matchLabels": WEB, "namespace": "shop"}}]
    spec = {"owners": owners, "resources": {"cpu": "2"}, "slots": 2, "node": "n", "ttl": "1h"}
    tape.put("web", json.dumps(spec | {"releaseIfIdle": "1m"}))
    tape.wait(5)


def owner(tape: Tape, name: str) -> None:
    tape.land(name, "n", PLACE, cpu="2", labels=WEB)
    tape.wait(5)


@pytest.mark.parametrize(
    ("after", "found"), [(60, []), (40, [Kind.RESERVATION_LOST])], ids=["in time", "early"]
)
def test_it_goes_once_it_was_idle_for_so_long(tape: Tape, after: float, found: list[Kind]) -> None:
    reserve(tape)
    tape.wait(after)
    tape.edit({"web": None})
    assert tape.kinds() == found


@pytest.mark.parametrize(
    ("after", "found"), [(60, []), (40, [Kind.RESERVATION_LOST])], ids=["in time", "early"]
)
@pytest.mark.parametrize("how", ["deleted", "finished"])
def test_it_counts_from_when_its_pod_went(
    tape: Tape, how: str, after: float, found: list[Kind]
) -> None:
    reserve(tape)
    owner(tape, "a")
    tape.wait(600)
    tape.delete("a") if how == "deleted" else tape.finish("a")
    tape.wait(after)
    tape.edit({"web": None})
    assert tape.kinds() == found


def test_while_a_pod_uses_it_the_rest_is_held_from_strangers(tape: Tape) -> None:
    reserve(tape)
    owner(tape, "a")
    tape.wait(600)
    tape.land("stranger", "n", cpu="1")
    assert tape.kinds() == [Kind.GIVEN_AWAY]


def test_once_it_was_idle_for_so_long_strangers_land(tape: Tape) -> None:
    reserve(tape)
    tape.wait(60)
    tape.land("stranger", "n", cpu="4")
    assert tape.kinds() == []


def test_what_stands_long_after_is_left_over(tape: Tape) -> None:
    reserve(tape)
    tape.wait(80)
    assert tape.kinds() == []
    tape.wait(60)
    assert tape.kinds() == [Kind.LEFT_OVER]
