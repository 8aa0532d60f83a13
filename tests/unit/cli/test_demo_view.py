"""The demo's picture fits the terminal, whatever there is to be shown."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from reserver_demo.pages import pages
from reserver_demo.view import (
    LEAST_WIDTH,
    NodeRow,
    Page,
    PodRow,
    Progress,
    ReservationRow,
    Scene,
    StepRow,
    draw,
)

SIZES = [(80, 24), (100, 30), (120, 40), (200, 60)]
FOLDER = Path("/tmp/reserver-12345678")


def scene(count: int = 3, *, page: int = 0, played: bool = True) -> Scene:
    """Return a scene with so many objects of each kind, and with long names and reasons."""
    progress = Progress.DONE if played else Progress.RUNNING
    return Scene(
        nodes=[
            NodeRow(name=f"worker-{i}", allocatable=8000, used=3500, held=500) for i in range(count)
        ],
        reservations=[
            ReservationRow(
                name=f"a-long-name-of-a-reservation-{i}",
                owner="default/a-long-name-of-a-pod",
                node="worker-1",
                holds="500m cpu, 1Gi memory",
                phase="Active",
                left_s=599,
            )
            for i in range(count)
        ],
        problems=["typo: resources.cpu: '1x' is not a quantity; write " + "quantities " * 30],
        pods=[PodRow(name=f"default/{i}", cpu=1, node="", why="no " * 90) for i in range(count)],
        steps=[StepRow(text=f"step {i}", progress=progress) for i in range(9)],
        pages=list(pages(FOLDER)) if played else (),
        page=page,
    )


def drawn(shown: Scene, width: int, height: int) -> list[str]:
    output = io.StringIO()
    Console(file=output, width=width, height=height).print(draw(shown, width, height))
    return output.getvalue().splitlines()


@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize("count", [0, 1, 3, 40])
@pytest.mark.parametrize("played", [False, True])
def test_a_picture_is_as_large_as_the_terminal(
    width: int, height: int, count: int, *, played: bool
) -> None:
    lines = drawn(scene(count, played=played), width, height)
    assert len(lines) <= height
    assert max(map(cell_len, lines)) <= width
    assert lines[-1].endswith("q: end") or "q: end;" in lines[-1]


def test_each_page_can_be_read_whole_in_the_smallest_terminal() -> None:
    for number, page in enumerate(pages(FOLDER)):
        shown = "\n".join(drawn(scene(40, page=number), 80, 24))
        assert f"Your turn, {number + 1} of " in shown
        for line in page.lines:
            assert line in shown


def test_what_is_to_be_pasted_wraps_nowhere() -> None:
    for page in pages(FOLDER):
        assert all(cell_len(line) <= LEAST_WIDTH for line in page.lines), page.title


def test_a_large_terminal_shows_several_pages() -> None:
    shown = "\n".join(drawn(scene(), 200, 60))
    assert shown.count("Your turn, ") == len(list(pages(FOLDER)))


def test_what_finds_no_place_is_counted() -> None:
    shown = drawn(scene(40), 80, 24)
    more = [line for line in shown if line.startswith("… and ")]
    assert len(more) == 3
    assert all(line.endswith(" more") for line in more)


def test_where_the_scenario_stands_is_said() -> None:
    steps = [
        StepRow(text="one", progress=Progress.DONE),
        StepRow(text="two", progress=Progress.RUNNING),
        StepRow(text="three", progress=Progress.WAITING),
    ]
    empty = scene(0, played=False)
    shown = drawn(
        Scene(nodes=empty.nodes, reservations=(), problems=(), pods=(), steps=steps), 80, 24
    )
    assert shown[0].startswith("What happens: 2 of 3")
    assert shown[1:3] == ["✓ one", "▸ two"]
    assert not any("three" in line for line in shown)


def test_a_step_that_failed_is_said_with_the_keys() -> None:
    failed = [StepRow(text="one", progress=Progress.FAILED)]
    page = Page("go on", ("text",))
    shown = Scene(nodes=(), reservations=(), problems=(), pods=(), steps=failed, pages=(page,))
    assert drawn(shown, 80, 24)[-1].startswith("a step did not come true")


def test_a_long_reason_gives_way_to_names_and_nodes() -> None:
    pods = [
        PodRow(name="default/reserved-pod", cpu=4000, node="worker-1", why=""),
        PodRow(name="default/normal-pod", cpu=5000, node="", why="held " * 30),
    ]
    empty = scene(0, played=False)
    shown = Scene(nodes=(), reservations=(), problems=(), pods=pods, steps=empty.steps)
    lines = drawn(shown, 80, 24)
    assert any(line.startswith("default/reserved-pod  4  on worker-1") for line in lines)
    assert any(line.startswith("default/normal-pod    5  Pending") for line in lines)
