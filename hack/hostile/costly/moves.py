"""The costliest PodMoves."""

from __future__ import annotations

from hack.hostile.costly.entry import MOVE, Document, Entries, Target, enter

ENTRIES: Entries = {}


@enter(ENTRIES, MOVE, standing=50)
def greedy_move(_: Target, turn: int) -> Document:
    """Request a seat that cannot be placed, for a day: fifty once blocked all others (doors 6)."""
    to = {"nodeSelector": {"hostile.example/zone": f"none-{turn}"}}
    return {"pod": {"name": f"bound-{turn % 50}"}, "to": to, "timeout": "24h"}
