"""What costs Reserver most of what somebody with `edit` in one namespace may write.

Each entry is a class of findings, drawn anew at each turn: sizes just within what a real API server
lets through, the extremes of each number, names that nobody has used before.
"""

from __future__ import annotations

from hack.hostile.costly import calls, configmaps, moves, pods, requests, reservations, webhooks
from hack.hostile.costly.entry import Entries

CATALOGUE: Entries = {
    **reservations.ENTRIES,
    **pods.ENTRIES,
    **requests.ENTRIES,
    **configmaps.ENTRIES,
    **calls.ENTRIES,
    **moves.ENTRIES,
    **webhooks.ENTRIES,
}
