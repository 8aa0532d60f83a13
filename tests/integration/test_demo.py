"""The demo, from its first step to its last, as `reserver demo --once` plays it."""

from __future__ import annotations

import io

from rich.console import Console

from reserver.cli.demo_run import run


async def test_every_step_of_the_demo_comes_true() -> None:
    output = io.StringIO()
    assert await run(Console(file=output, width=120), once=True)
    lines = output.getvalue().splitlines()
    assert len(lines) == 9
    assert all(line.startswith("✓") for line in lines)
