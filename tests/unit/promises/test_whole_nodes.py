"""Whole nodes: nobody but owners and the pods of DaemonSets is bound there."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hack.promises.check import Kind
from tests.unit.promises.tape import STORE, Tape

TRAIN = {"app": "train"}
PLACE = f"{STORE}/train"


def hold(tape: Tape, *nodes: str) -> None:
    """Write the whole nodes that are held."""
    spec: dict[str, Any] = {
        "owners": [{"selector": {"matchLabels": TRAIN, "namespace": "shop"}}],
        "nodes": {"count": 1, "selector": {"pool": "gpu"}},
        "ttl": "1h",
        "placements": [{"node": node, "slots": 1} for node in nodes],
    }
    tape.put("train", json.dumps(spec))
    tape.wait(5)


@pytest.mark.parametrize("cpu", ["0", "1"])
def test_a_stranger_on_it_is_an_intruder_whatever_it_requests(tape: Tape, cpu: str) -> None:
    hold(tape, "n")
    tape.land("elsewhere", "m", cpu=cpu)
    assert tape.kinds() == []
    tape.land("stranger", "n", cpu=cpu)
    assert tape.kinds() == [Kind.GIVEN_AWAY]


def test_owners_and_a_daemon_sets_pod_may_be_there_in_any_number(tape: Tape) -> None:
    hold(tape, "n")
    for name in ("a", "b"):
        tape.land(name, "n", PLACE, cpu="1", labels=TRAIN)
        tape.wait(5)
    tape.land("agent", "n", cpu="1", maker="agent", kind="DaemonSet")
    assert tape.kinds() == []
    tape.delete("a")
    tape.wait(5)
    tape.land("stranger", "n", cpu="1")
    assert tape.kinds() == [Kind.GIVEN_AWAY]


def test_who_calls_itself_a_daemon_sets_is_an_intruder(tape: Tape) -> None:
    hold(tape, "n")
    tape.land("forged", "n", maker="agent", kind="DaemonSet", version="example.com/v1")
    assert tape.kinds() == [Kind.GIVEN_AWAY]


def test_before_and_after_it_is_held_anybody_may_be_there(tape: Tape) -> None:
    hold(tape)
    tape.land("early", "n")
    tape.wait(5)
    hold(tape, "n")
    tape.remove("train")
    tape.wait(5)
    tape.land("late", "n")
    assert tape.kinds() == []
