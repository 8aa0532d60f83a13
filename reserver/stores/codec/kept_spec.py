"""The spec that the archive keeps of a removed or idle reservation, for `reserver restore`."""

from __future__ import annotations

from reserver.errors import InvalidInput
from reserver.k8s.objects.objects import encode
from reserver.reservations.enums import Outcome
from reserver.reservations.outcome import Ending
from reserver.stores.codec import document

_MOST_SPEC = 2048
"""How many bytes of a spec are kept; of a larger one nothing is."""

_MOST_WRITTEN = 8192
"""So long a text is looked at."""

_NOT_RESTORED = {"author", "expiresAt", "origin", "placements", "requestId", "ttl"}
"""Fields of a spec that another reservation does not inherit; `expires_at` has its end."""


def kept_spec(ending: Ending) -> str:
    """Return what is kept of the spec of a removed or idle reservation; empty if nothing is."""
    if (
        ending.outcome not in {Outcome.REMOVED, Outcome.IDLE}
        or not 0 < len(ending.text) <= _MOST_WRITTEN
    ):
        return ""
    try:
        written = document.parse(ending.text)
    except InvalidInput:
        return ""
    if not isinstance(written, dict):
        return ""
    kept = {key: value for key, value in written.items() if key not in _NOT_RESTORED}
    text = encode(kept).decode()
    return text if len(text.encode()) <= _MOST_SPEC else ""
