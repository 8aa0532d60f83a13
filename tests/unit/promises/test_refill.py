"""Reservations that replace claimed slots: the number of slots, and the room that is held."""

from __future__ import annotations

import json
from typing import Any

from hack.promises.check import Kind
from tests.unit.promises.tape import STORE, Tape

WEB = {"app": "web"}
PLACE = f"{STORE}/web"


def placed(tape: Tape, **slots: int) -> None:
    """Write the placement of a reservation: slots by node."""
    spec: dict[str, Any] = {
        "owners": [{"selector": {"matchLabels": WEB, "namespace": "shop"}}],
        "ttl": "1h",
    }
    spec |= {"resources": {"cpu": "3"}, "refill": True, "refillUpTo": 2}
    parts = [{"node": node, "slots": number} for node, number in slots.items()]
    tape.put("web", json.dumps(spec | {"placements": parts}))
    tape.wait(5)


def owner(tape: Tape, name: str, node: str) -> None:
    tape.land(name, node, PLACE, cpu="3", labels=WEB)
    tape.wait(5)


def kinds(tape: Tape, **more: Any) -> list[str]:
    return tape.kinds(**more)


def test_owners_take_slots_up_to_the_limit_and_not_beyond(tape: Tape) -> None:
    placed(tape, n=1)
    owner(tape, "a", "n")
    placed(tape, n=1, m=1)
    owner(tape, "b", "m")
    assert kinds(tape) == []
    owner(tape, "c", "m")
    assert Kind.CLAIMED_TWICE in kinds(tape)


def test_a_replaced_slot_is_held_from_strangers(tape: Tape) -> None:
    placed(tape, n=1)
    owner(tape, "a", "n")
    placed(tape, n=1, m=1)
    tape.land("stranger", "m", cpu="2")
    assert kinds(tape) == [Kind.GIVEN_AWAY]


def test_once_a_claim_has_ended_either_slot_may_hold_nothing(tape: Tape) -> None:
    placed(tape, n=1)
    owner(tape, "a", "n")
    placed(tape, n=1, m=1)
    tape.delete("a")
    tape.wait(5)
    tape.land("stranger", "m", cpu="2")
    assert kinds(tape) == []
