"""The test bed of moves: nodes of four cores, and a Reserver that carries out PodMoves."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from hack.bed import bed
from hack.bed.bed import Bed, Setup
from hack.bed.install import MOVES, SURGE
from hack.bed.mishaps import Mishaps

CORES = 4
"""Cores of a node."""

SCHEDULER = "moving"
_FLAGS = ("--pod-moves", "--surge-moves", "--default-quota", "none", "--log-level", "info")


@contextmanager
def opened(nodes: int, mishaps: Mishaps, keep: Path | None) -> Iterator[Bed]:
    """Run the bed; logs and histories stay only in a given folder."""
    with ExitStack() as stack:
        folder = keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        setup = Setup(scheduler=SCHEDULER, mishaps=mishaps, flags=_FLAGS)
        yield stack.enter_context(bed.opened(nodes, str(CORES), folder, setup, [*MOVES, *SURGE]))
