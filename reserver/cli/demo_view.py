"""What the demo shows: one picture of nodes, reservations, pods and steps. A pure function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from reserver.cluster.quantity import show

_BAR_WIDTH = 40
_USED, _HELD, _FREE = ("█", "blue"), ("▒", "yellow"), ("·", "bright_black")
_MOST_ROWS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRow:
    """A node's CPU, in millicores."""

    name: str
    allocatable: int
    used: int
    held: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationRow:
    """A reservation; `left_s` is the time until it expires in seconds, None for never."""

    name: str
    owner: str
    node: str
    holds: str
    phase: str
    left_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PodRow:
    """A pod, and its node or why it has none."""

    name: str
    cpu: int
    node: str
    why: str


class Progress(StrEnum):
    """How far a step of the scenario has come."""

    WAITING = " "
    RUNNING = "▸"
    DONE = "✓"
    FAILED = "✗"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow:
    """A step of the scenario."""

    text: str
    progress: Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """All that one picture shows."""

    nodes: Sequence[NodeRow]
    reservations: Sequence[ReservationRow]
    problems: Sequence[str]
    pods: Sequence[PodRow]
    steps: Sequence[StepRow]
    footer: Sequence[str] = ()


def draw(scene: Scene) -> RenderableType:
    """Return the picture of a scene."""
    parts: list[RenderableType] = [
        _panel("What happens", _steps(scene.steps, brief=bool(scene.footer))),
        _panel("Nodes: CPU", _nodes(scene.nodes)),
        _panel("Reservations", _reservations(scene.reservations, scene.problems)),
        _panel("Pods", _pods(scene.pods)),
    ]
    if scene.footer:
        parts.append(_panel("Your turn", Text("\n".join(scene.footer))))
    return Group(*parts)


def bar(row: NodeRow) -> Text:
    """Return a node's CPU as a bar: used, held, free; what is there at all takes a cell."""
    whole = max(row.allocatable, row.used + row.held, 1)
    used = _cells(row.used, whole)
    held = min(_cells(row.held, whole), _BAR_WIDTH - used)
    text = Text()
    for (mark, style), width in (
        (_USED, used),
        (_HELD, held),
        (_FREE, _BAR_WIDTH - used - held),
    ):
        text.append(mark * width, style)
    return text


def time_left(seconds: float | None) -> str:
    """Return how long a reservation still lives, for a person."""
    if seconds is None:
        return "for ever"
    if seconds <= 0:
        return "over"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h {minutes:02}m"
    return f"{minutes}m {rest:02}s" if minutes else f"{rest}s"


def _cells(amount: int, whole: int) -> int:
    return max(round(_BAR_WIDTH * amount / whole), int(amount > 0))


def _panel(title: str, content: RenderableType) -> Panel:
    return Panel(content, title=title, title_align="left", border_style="bright_black")


def _steps(rows: Sequence[StepRow], *, brief: bool) -> RenderableType:
    """Return the steps; one line for all of them, if `brief` and all came true."""
    if brief and all(row.progress is Progress.DONE for row in rows):
        return Text(f"✓ all {len(rows)} steps came true", "green")
    styles = {
        Progress.WAITING: "bright_black",
        Progress.RUNNING: "bold",
        Progress.DONE: "green",
        Progress.FAILED: "bold red",
    }
    return Text("\n").join(
        Text(f"{row.progress.value} {row.text}", styles[row.progress]) for row in rows
    )


def _nodes(rows: Sequence[NodeRow]) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    for row in rows[:_MOST_ROWS]:
        free = row.allocatable - row.used - row.held
        table.add_row(
            row.name,
            bar(row),
            Text(f"{show('cpu', row.used)} used", "blue" if row.used else "bright_black"),
            Text(f"{show('cpu', row.held)} held", "yellow" if row.held else "bright_black"),
            Text(f"{show('cpu', free)} free", "bold red" if free < 0 else ""),
        )
    return _with_rest(table, len(rows), "nodes")


def _reservations(rows: Sequence[ReservationRow], problems: Sequence[str]) -> RenderableType:
    refused = Text("\n").join(Text(f"Refused  {problem}", "red") for problem in problems)
    if not rows:
        return refused or Text("none", "bright_black")
    table = Table.grid(padding=(0, 2))
    for row in rows[:_MOST_ROWS]:
        style = "yellow" if row.phase == "Active" else "bright_black"
        table.add_row(
            Text(row.phase, style),
            row.holds,
            f"on {row.node}",
            f"for {row.owner}",
            time_left(row.left_s),
            Text(row.name, "bright_black"),
        )
    shown = _with_rest(table, len(rows), "reservations")
    return Group(shown, refused) if problems else shown


def _pods(rows: Sequence[PodRow]) -> RenderableType:
    if not rows:
        return Text("none", "bright_black")
    table = Table.grid(padding=(0, 2))
    for row in rows[-_MOST_ROWS:]:
        verdict = Text(f"on {row.node}", "green") if row.node else Text("Pending", "red")
        table.add_row(row.name, show("cpu", row.cpu), verdict, Text(row.why, "bright_black"))
    return _with_rest(table, len(rows), "pods")


def _with_rest(table: Table, count: int, what: str) -> RenderableType:
    if count <= _MOST_ROWS:
        return table
    return Group(table, Text(f"and {count - _MOST_ROWS} more {what}", "bright_black"))
