"""The costliest writes for Reserver that the role `edit` in one namespace allows.

Each entry is a class of findings, drawn anew at each turn: sizes just within the bounds of a real
API server, the extremes of each number, names without precedent.
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
