"""Draws docs/mechanism.svg and docs/phases.svg: how a reservation is kept, and its phases.

python -m hack.diagrams
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

import yaml

from reserver.reservations.enums import Phase

ROOT = Path(__file__).parents[1]
_EXTENDER = ROOT / "scheduler-config/base/kube-scheduler.yaml"
_STYLE = """\
text { font: 14px system-ui, sans-serif; fill: #1f2430; text-anchor: middle }
.card { fill: #fbfbfe; stroke: #d5d7e3 }
.box { fill: #e8eaf6; stroke: #3f51b5; stroke-width: 1.5 }
.held { fill: #3f51b5; stroke: #3f51b5 }
.held + text { fill: #ffffff }
.line { fill: none; stroke: #3f51b5; stroke-width: 1.5 }
.life { stroke: #a9aec6; stroke-dasharray: 4 4 }
.head { fill: #3f51b5 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6e8f2 }
  .card { fill: #1f2430; stroke: #3a4056 }
  .box { fill: #2c3350; stroke: #9fa8da }
  .held { fill: #9fa8da; stroke: #9fa8da }
  .held + text { fill: #1f2430 }
  .line { stroke: #9fa8da }
  .head { fill: #9fa8da }
}"""


class Message(NamedTuple):
    """An arrow from one participant to another, or with both the same, a step of one of them."""

    source: str
    target: str
    text: str


class Transition(NamedTuple):
    """A transition between two phases: a line through points, and its text."""

    points: Sequence[tuple[int, int]]
    text: str
    at: tuple[int, int]


WRITER, API, RESERVER, SCHEDULER = "you, or a manager", "API server", "Reserver", "kube-scheduler"
MESSAGES = (
    Message(WRITER, API, "Reservation for web-0"),
    Message(API, RESERVER, "watch"),
    Message(RESERVER, API, "status: {active}, has room"),
    Message(SCHEDULER, RESERVER, "{filter}: any other pod"),
    Message(RESERVER, SCHEDULER, "not worker-3: held"),
    Message(SCHEDULER, RESERVER, "{filter}: web-0"),
    Message(RESERVER, SCHEDULER, "worker-3"),
    Message(SCHEDULER, RESERVER, "{bind}: web-0 to worker-3"),
    Message(RESERVER, RESERVER, "decides again"),
    Message(RESERVER, API, "bind web-0, with its claim"),
    Message(API, RESERVER, "watch: web-0 has landed"),
    Message(RESERVER, API, "{claimed}: delete the Reservation"),
)
PLACES: Mapping[Phase, tuple[int, int]] = {
    Phase.PENDING: (130, 110),
    Phase.ACTIVE: (400, 110),
    Phase.CLAIMED: (670, 60),
    Phase.EXPIRED: (670, 160),
    Phase.FAILED: (400, 250),
    Phase.INVALID: (130, 250),
}
TRANSITIONS = (
    Transition([(190, 100), (340, 100)], "begins, has a place", (265, 90)),
    Transition([(340, 122), (190, 122)], "loses its place", (265, 140)),
    Transition([(460, 100), (610, 65)], "all slots claimed", (535, 65)),
    Transition([(460, 120), (610, 155)], "time is over", (535, 160)),
    Transition([(390, 130), (390, 230)], "node goes", (345, 185)),
    Transition([(410, 230), (410, 130)], "node comes", (457, 185)),
)


def mechanism() -> str:
    """Return the way of a reservation, and of two pods, as a sequence diagram."""
    extender = yaml.safe_load(_EXTENDER.read_text())["extenders"][0]
    words = {
        "filter": str(extender["filterVerb"]).title(),
        "bind": str(extender["bindVerb"]).title(),
        "active": Phase.ACTIVE,
        "claimed": Phase.CLAIMED,
    }
    step, top = 38, 86
    columns = dict(zip((WRITER, API, RESERVER, SCHEDULER), (100, 350, 600, 850), strict=True))
    height = top + step * len(MESSAGES) + 10
    parts: list[str] = []
    for name, x in columns.items():
        parts += [f'<path class="life" d="M{x} 50V{height - 12}"/>', *_box(name, x, 34, 150)]
    y = top
    for message in MESSAGES:
        text = message.text.format(**words)
        start, end = columns[message.source], columns[message.target]
        if start == end:
            parts += _box(text, start, y - 14, 130, "held")
        else:
            parts += [*_arrow([(start, y), (end, y)]), _text(text, (start + end) // 2, y - 7)]
        y += step
    return _svg(950, height, "The way of a reservation", parts)


def phases() -> str:
    """Return the phases of a reservation, and how it comes from one to another."""
    parts: list[str] = []
    for transition in TRANSITIONS:
        parts += [*_arrow(transition.points), _text(transition.text, *transition.at)]
    for phase in Phase:
        parts += _box(phase, *PLACES[phase], 120, "held" if phase is Phase.ACTIVE else "box")
    parts += [_text("also from Pending and Failed", 650, 198)]
    parts += [_text("a rule is broken: nothing is held", 130, 290)]
    parts += [_text("nothing is held until the node exists", 400, 290)]
    return _svg(760, 310, "The phases of a reservation", parts)


def _box(text: str, x: int, y: int, width: int, kind: str = "box") -> Iterator[str]:
    left = x - width // 2
    yield f'<rect class="{kind}" x="{left}" y="{y - 18}" width="{width}" height="36" rx="6"/>'
    yield _text(text, x, y + 5)


def _text(text: str, x: int, y: int) -> str:
    return f'<text x="{x}" y="{y}">{escape(text)}</text>'


def _arrow(points: Sequence[tuple[int, int]]) -> Iterator[str]:
    (x0, y0), (x, y) = list(pairwise(points))[-1]
    path = "L".join(f"{px} {py}" for px, py in points)
    yield f'<path class="line" d="M{path}"/>'
    length = ((x - x0) ** 2 + (y - y0) ** 2) ** 0.5
    along, across = ((x - x0) / length, (y - y0) / length), (-(y - y0) / length, (x - x0) / length)
    back = [
        (x - 9 * along[0] + side * across[0], y - 9 * along[1] + side * across[1])
        for side in (4, -4)
    ]
    corners = " ".join(f"{px:.1f},{py:.1f}" for px, py in [(x, y), *back])
    yield f'<polygon class="head" points="{corners}"/>'


def _svg(width: int, height: int, title: str, parts: Sequence[str]) -> str:
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    start = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
    card = f'<rect class="card" x="1" y="1" width="{width - 2}" height="{height - 2}" rx="8"/>'
    lines = [start, f"<title>{title}</title>", f"<style>\n{_STYLE}\n</style>", card, *parts]
    return "\n".join([*lines, "</svg>"]) + "\n"


DIAGRAMS = {"mechanism.svg": mechanism, "phases.svg": phases}


def main() -> None:
    """Writes both."""
    for name, draw in DIAGRAMS.items():
        (ROOT / "docs" / name).write_text(draw())


if __name__ == "__main__":
    main()
