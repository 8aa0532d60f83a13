"""Work counted in executed lines of Reserver: a clock would measure the machine, too."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import reserver

CODE = str(Path(reserver.__file__).parent)


def lines(play: Callable[[], object]) -> int:
    """Return how many lines of Reserver something runs."""
    count = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        if not frame.f_code.co_filename.startswith(CODE):
            return None
        count += event in {"call", "line"}
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        play()
    finally:
        sys.settrace(before)
    return count
