"""Reservations that match their owners by labels or by their maker."""

from __future__ import annotations

from typing import Any

from tests.unit.promises.tape import STORE, Tape

WEB = {"app": "web"}
BY_LABEL = {"selector": {"matchLabels": WEB}}


def reserve(tape: Tape, *owners: dict[str, Any], key: str = "seats", **entry: Any) -> str:
    """Write a reservation for pods of the namespace shop, and wait until all have seen it."""
    there = [{k: {"namespace": "shop", **part} for k, part in o.items()} for o in owners]
    tape.put(key, tape.entry(owners=there, **entry))
    tape.wait(5)
    return f"{STORE}/{key}"
