"""The demo's screen: nodes, reservations, pods, and the current step or page.

A pure function of the scene and the size of the terminal, which the picture never exceeds. There
are no frames, so that commands can be copied without them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from rich.console import Group, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from reserver.cluster.quantity import show

LEAST_WIDTH, LEAST_HEIGHT = 80, 24
"""The smallest terminal in which the whole text is readable."""

_LONGEST_BAR = 40
_BESIDE_A_BAR = 44
_GAP = 2
_LINES_OF_TEXT = 9
"""The least number of lines for steps or pages, including the title."""

_USED, _HELD, _FREE = ("█", "blue"), ("▒", "yellow"), ("░", "bright_black")
_COMMAND = "  "
_NOBODY_FITS = "nodes are available: "


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRow:
    """A node's CPU, in millicores."""

    name: str
    allocatable: int
    used: int
    held: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationRow:
    """A reservation; `left_s` is its remaining time in seconds, None for ever."""

    name: str
    owner: str
    node: str
    holds: str
    phase: str
    left_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PodRow:
    """A pod, and its node or the reason for having none."""

    name: str
    cpu: int
    node: str
    why: str


class Progress(StrEnum):
    """The progress of a step of the scenario."""

    WAITING = " "
    RUNNING = "▸"
    DONE = "✓"
    FAILED = "✗"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow:
    """A step of the scenario."""

    text: str
    progress: Progress


@dataclass(frozen=True, slots=True)
class Page:
    """Instructions for the user: a title and lines; indented lines are commands."""

    title: str
    lines: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """The content of one screen; `pages` are empty until the scenario has been played."""

    nodes: Sequence[NodeRow]
    reservations: Sequence[ReservationRow]
    problems: Sequence[str]
    pods: Sequence[PodRow]
    steps: Sequence[StepRow]
    pages: Sequence[Page] = ()
    page: int = 0


def draw(scene: Scene, width: int = LEAST_WIDTH, height: int = LEAST_HEIGHT) -> RenderableType:
    """Return the picture of a scene, for a terminal of `width` columns and `height` lines."""
    wanted = [len(scene.nodes), len(scene.reservations) + len(scene.problems), len(scene.pods)]
    titles_and_keys = len(wanted) + 1
    most = _shares([max(each, 1) for each in wanted], height - _LINES_OF_TEXT - titles_and_keys)
    rest = height - titles_and_keys - sum(most)
    return Group(
        *(_your_turn(scene, rest) if scene.pages else _what_happens(scene.steps, rest)),
        _title("Nodes: CPU"),
        *_rows(_nodes(scene.nodes, width), most[0], width),
        _title("Reservations"),
        *_rows([*_reservations(scene.reservations), *_refused(scene.problems)], most[1], width),
        _title("Pods"),
        *_rows(_pods(scene.pods), most[2], width),
        _keys(scene),
    )


def bar(row: NodeRow, length: int = _LONGEST_BAR) -> Text:
    """Return a node's CPU as a bar: used, held, free; any amount above 0 has at least a cell."""
    whole = max(row.allocatable, row.used + row.held, 1)
    used = _cells(row.used, whole, length)
    held = min(_cells(row.held, whole, length), length - used)
    text = Text()
    for (mark, style), cells in ((_USED, used), (_HELD, held), (_FREE, length - used - held)):
        text.append(mark * cells, style)
    return text


def node_table(rows: Sequence[NodeRow], width: int) -> RenderableType:
    """Return the bars of all nodes, for a terminal of `width` columns."""
    return Group(*_rows(_nodes(rows, width), len(rows), width))


def time_left(seconds: float | None) -> str:
    """Return the remaining time of a reservation in words."""
    if seconds is None:
        return "for ever"
    if seconds <= 0:
        return "over"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h {minutes:02}m"
    return f"{minutes}m {rest:02}s" if minutes else f"{rest}s"


def _cells(amount: int, whole: int, length: int) -> int:
    return max(round(length * amount / whole), int(amount > 0))


def _shares(wanted: Sequence[int], room: int) -> list[int]:
    """Return the lines of each section within `room`: the longest shrink first, to 1 at least."""
    given = list(wanted)
    while sum(given) > room and max(given) > 1:
        given[given.index(max(given))] -= 1
    return given


def _title(text: str) -> RenderableType:
    return Rule(Text(text, "bold"), align="left", style="bright_black")


def _what_happens(steps: Sequence[StepRow], room: int) -> list[RenderableType]:
    """Return the started steps, without the first ones if they do not fit."""
    styles = {Progress.RUNNING: "bold", Progress.DONE: "green", Progress.FAILED: "bold red"}
    begun = [row for row in steps if row.progress is not Progress.WAITING]
    lines = [Text(f"{row.progress} {row.text}", styles[row.progress]) for row in begun]
    title = f"What happens: {len(begun)} of {len(steps)}"
    return [_title(title), *_padded(lines[-(room - 1) :], room - 1)]


def _your_turn(scene: Scene, room: int) -> list[RenderableType]:
    """Return the open page, and the following pages that fit."""
    parts: list[RenderableType] = []
    count = 0
    for number, page in enumerate(scene.pages[scene.page :], start=scene.page + 1):
        if parts and count + 1 + len(page.lines) > room:
            break
        parts.append(_title(f"Your turn, {number} of {len(scene.pages)}: {page.title}"))
        parts += [_instruction(line) for line in page.lines]
        count += 1 + len(page.lines)
    return _padded(parts, room)


def _instruction(line: str) -> Text:
    command, mark, remark = line.partition("  # ")
    text = Text(command, "cyan" if line.startswith(_COMMAND) else "", no_wrap=True)
    return text.append(f"{mark}{remark}", "bright_black")


def _padded(lines: Sequence[RenderableType], room: int) -> list[RenderableType]:
    return [*lines, *[Text("")] * (room - len(lines))]


def _keys(scene: Scene) -> Text:
    failed = any(row.progress is Progress.FAILED for row in scene.steps)
    if not scene.pages:
        keys = "space: go on at once   q: end"
    elif failed:
        keys = "a step did not come true   n, p: next and previous page   q: end"
    else:
        keys = "n, space: next page   p: previous page   q: end; until then all of it stays up"
    return Text(keys, "bold red" if failed else "bold", no_wrap=True)


def _nodes(rows: Sequence[NodeRow], width: int) -> list[list[Text]]:
    length = min(max(width - _BESIDE_A_BAR, 10), _LONGEST_BAR)
    return [
        [
            Text(row.name),
            bar(row, length),
            Text(f"{show('cpu', row.used)} used", "blue" if row.used else "bright_black"),
            Text(f"{show('cpu', row.held)} held", "yellow" if row.held else "bright_black"),
            _free(row.allocatable - row.used - row.held),
        ]
        for row in rows
    ]


def _free(amount: int) -> Text:
    return Text(f"{show('cpu', amount)} free", "bold red" if amount < 0 else "")


def _reservations(rows: Sequence[ReservationRow]) -> list[list[Text]]:
    return [
        [
            Text(row.name),
            Text(row.phase, "yellow" if row.phase == "Active" else "bright_black"),
            Text(row.holds),
            Text(f"on {row.node}" if row.node else "nowhere yet"),
            Text(f"for {row.owner}"),
            Text(time_left(row.left_s)),
        ]
        for row in rows
    ]


def _refused(problems: Sequence[str]) -> list[Text]:
    return [Text(f"refused: {problem}", "red") for problem in problems]


def _pods(rows: Sequence[PodRow]) -> list[list[Text]]:
    return [
        [
            Text(row.name),
            Text(show("cpu", row.cpu)),
            Text(f"on {row.node}", "green") if row.node else Text("Pending", "red"),
            Text(row.why.partition(_NOBODY_FITS)[2] or row.why, "bright_black"),
        ]
        for row in rows
    ]


def _fitting(widths: Sequence[int], room: int) -> list[int]:
    """Return widths of columns that fit into `room`: the widest shrink first."""
    fitting = list(widths)
    room -= _GAP * (len(widths) - 1)
    while sum(fitting) > room and max(fitting) > 1:
        fitting[fitting.index(max(fitting))] -= 1
    return fitting


def _rows(rows: Sequence[list[Text] | Text], most: int, width: int) -> list[RenderableType]:
    """Return the last rows, each on one line, below the number of hidden rows."""
    if not rows:
        return [Text("none", "bright_black")]
    hidden = len(rows) - most + 1 if len(rows) > most else 0
    table = Table.grid(padding=(0, _GAP))
    cells = [row for row in rows[hidden:] if isinstance(row, list)]
    widths = [max(cell.cell_len for cell in column) for column in zip(*cells, strict=True)]
    for length in _fitting(widths, width):
        table.add_column(no_wrap=True, overflow="ellipsis", width=length)
    alone: list[RenderableType] = []
    for row in rows[hidden:]:
        if isinstance(row, list):
            table.add_row(*row)
        else:
            row.no_wrap, row.overflow = True, "ellipsis"
            alone.append(row)
    more = [Text(f"… and {hidden} more", "bright_black")] if hidden else []
    return [*more, *([table] if table.rows else []), *alone]
