"""Windows of moves, and their times."""

from __future__ import annotations

from datetime import UTC, datetime

HOUR = 3600.0
NIGHT, WEEKEND = "0 22 * * * 6h", "0 0 * * SAT 48h"


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
