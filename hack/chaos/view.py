"""Progress of a storm, and the table at the end."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from rich.console import Console
from rich.table import Table

_EVERY = 10.0  # seconds between two lines where there is no terminal


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The outcome of a run.

    Attributes:
        run: its name.
        pods: pods created during the storm, without owners.
        pods_bound: pods bound during the storm.
        reservations: reservations written.
        slots: claimed slots of groups.
        forged: pods with forged claims.
        namesakes: pods and ReplicaSets of another namespace with the names of owners.
        owners: owners with a reservation that lived.
        missed: one line for each owner that did not land on its seat.
        faults: number of faults.
        kinds: number of faults of each kind.
        violations: one line for each violation.
        seconds: duration, in seconds.
        folder: folder with history and logs.
    """

    run: str
    pods: int
    pods_bound: int
    reservations: int
    slots: int
    forged: int
    namesakes: int
    owners: int
    missed: tuple[str, ...]
    faults: int
    kinds: str
    violations: tuple[str, ...]
    seconds: float
    folder: Path

    @property
    def is_good(self) -> bool:
        """Whether all promises were kept and all owners landed."""
        return not self.violations and not self.missed


class Progress:
    """A line that changes on a terminal, a line every ten seconds elsewhere."""

    def __init__(self, console: Console, run: str) -> None:
        self._console = console
        self._run = run
        self._status = console.status(run)
        self._began = time.monotonic()
        self._said = float("-inf")

    def __enter__(self) -> Self:
        """Show the line."""
        self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the line."""
        self._status.stop()

    def __call__(self, text: str) -> None:
        """Replace the text."""
        elapsed = time.monotonic() - self._began
        line = f"{self._run:<18} {elapsed:4.0f} s  {text}"
        self._status.update(line)
        if not self._console.is_terminal and elapsed - self._said >= _EVERY:
            self._said = elapsed
            self._console.print(line, highlight=False, soft_wrap=True)


def table(outcomes: Sequence[Outcome]) -> Table:
    """Return the table of all runs; seated are owners on their seats, broken are promises."""
    shown = Table()
    shown.add_column("run", no_wrap=True)
    for title in ("pods", "bound", "holds", "seated", "faults", "broken", "s"):
        shown.add_column(title, justify="right", no_wrap=True)
    for outcome in outcomes:
        landed = outcome.owners - len(outcome.missed)
        shown.add_row(
            outcome.run,
            str(outcome.pods),
            str(outcome.pods_bound),
            str(outcome.reservations),
            f"{landed}/{outcome.owners}",
            str(outcome.faults),
            str(len(outcome.violations)),
            f"{outcome.seconds:.0f}",
            style=None if outcome.is_good else "bold red",
        )
    return shown


def details(outcome: Outcome) -> str:
    """Return the details that are not in the table."""
    others = f"{outcome.forged} pods with forged claims, {outcome.namesakes} namesakes"
    did = f"{outcome.slots} slots of groups claimed, {others}"
    lines = [f"{outcome.run}: {did}, faults: {outcome.kinds}"]
    lines += [f"  violation: {text}" for text in outcome.violations]
    lines += [f"  missed: {text}" for text in outcome.missed]
    if not outcome.is_good:
        lines.append(f"  history and logs: {outcome.folder}")
    return "\n".join(lines)
