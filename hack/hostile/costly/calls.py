"""The costliest calls."""

from __future__ import annotations

from hack.hostile.costly import documents
from hack.hostile.costly.documents import APP, REQUIRED
from hack.hostile.costly.entry import WHAT_IF, Document, Entries, Target, enter

ENTRIES: Entries = {}


@enter(ENTRIES, WHAT_IF)
def what_if(target: Target, turn: int) -> Document:
    """Ask a WhatIf with huge specs (security 2): 3 MB."""
    terms = [
        documents.term({"app": f"x{number}"}) for number in range(target.many(3_000 + turn % 2))
    ]
    spec = documents.placed(target, slots=100, affinity={"podAntiAffinity": {REQUIRED: terms}})
    spec |= {"owners": [{"pod": {"name": "nobody", "namespace": APP}}]}
    return {"reservations": [spec] * 8}
