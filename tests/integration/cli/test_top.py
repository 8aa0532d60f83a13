"""`top nodes`: used, held and free resources; progress only on a terminal."""

from __future__ import annotations

import asyncio
import sys

import pytest

from reserver.cli.terminal import progress
from tests.integration.cli.runs import FLAGS, Run
from tests.integration.world import World
from tests.terminal import terminal


async def test_top_shows_used_held_and_free(run: Run) -> None:
    await run("create", "a", "--node", "worker-1", "--cpu", "3", *FLAGS)
    lines = (await run("top", "nodes", "--slot", "cpu=1")).stdout.splitlines()
    assert [line.split() for line in lines if "cpu" in line] == [
        ["worker-1", "cpu", "4", "0", "3", "1", "1"],
        ["worker-2", "cpu", "4", "0", "0", "4", "4"],
    ]
    ghost = await run("top", "nodes", "worker-2", "ghost")
    assert (ghost.exit_code, ghost.stderr) == (1, "reserver: there is no node ghost\n")
    wrong = await run("top", "nodes", "--slot", "cpu=lots")
    assert wrong.exit_code == 2
    assert "--slot: cpu: 'lots' is not a quantity" in wrong.stderr


async def test_patience_says_nothing_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    async with progress("Waiting"):
        pass
    assert capsys.readouterr() == ("", "")


async def test_top_shows_the_nodes_again(world: World) -> None:
    environment = {"RESERVER_ADDRESS": str(world.running.grpc_address)}
    command = (sys.executable, "-m", "reserver", "top", "nodes", "-w")

    def look_twice() -> int:
        with terminal(*command, environment=environment) as screen:
            screen.read_until("worker-1")
            screen.read_until("worker-1")
            screen.press("\x03")
            return screen.end()

    assert await asyncio.to_thread(look_twice) == 130
