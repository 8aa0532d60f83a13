"""`release`: by name or by options, after a confirmation."""

from __future__ import annotations

import asyncio
import json
import shlex
import sys

from tests.integration.cli.runs import FLAGS, Run
from tests.integration.world import World
from tests.terminal import terminal


async def test_what_options_mean_is_released_after_a_yes(run: Run) -> None:
    for name, node in (("a", "worker-1"), ("b", "worker-2"), ("c", "worker-2")):
        await run("create", name, "--node", node, "--cpu", "1", *FLAGS)
    asked = await run("release", "--all", "--node", "worker-2")
    assert asked.exit_code == 2
    assert "pass --yes" in asked.stderr
    done = await run("release", "--all", "--node", "worker-2", "--yes")
    assert done.exit_code == 0
    names = (await run("get", "-o", "name")).stdout.split()
    assert names == ["reserver-system/reservations/a"]
    nothing = await run("release", "--all", "--node", "worker-2", "--yes", "-o", "json")
    assert json.loads(nothing.stdout) == {"reservations": []}
    assert (await run("release", "a", "--all")).exit_code == 2
    assert (await run("release")).exit_code == 2


async def test_ctrl_c_releases_nothing(run: Run, world: World) -> None:
    await run("create", "a", "--node", "worker-1", "--cpu", "1", *FLAGS)
    command = (sys.executable, "-m", "reserver", "release", "--all")
    environment = {"RESERVER_ADDRESS": str(world.running.grpc_address)}

    def press() -> int:
        with terminal(*command, environment=environment) as screen:
            screen.read_until("[y/N]")
            screen.press("\x03")
            return screen.end()

    assert await asyncio.to_thread(press) == 130
    assert (await run("get", "-o", "name")).stdout == "reserver-system/reservations/a\n"


async def test_nobody_is_asked_about_a_list_that_goes_into_a_pipe(run: Run, world: World) -> None:
    await run("create", "a", "--node", "worker-1", "--cpu", "1", *FLAGS)
    piped = f"{shlex.quote(sys.executable)} -m reserver release --all | cat"
    environment = {"RESERVER_ADDRESS": str(world.running.grpc_address)}

    def look() -> str:
        with terminal("sh", "-c", piped, environment=environment) as screen:
            screen.end()
            return screen.written

    assert await asyncio.to_thread(look) == (
        "reserver: --all: input or output is not a terminal; pass --yes\r\n"
    )


async def test_of_what_is_released_a_program_gets_what_it_was(run: Run) -> None:
    for name in ("a", "b", "c", "d"):
        await run("create", name, "--node", "worker-1", "--cpu", "100m", *FLAGS)
    a, b, c, _ = json.loads((await run("get", "-o", "json")).stdout)["reservations"]
    assert json.loads((await run("release", "a", "-o", "json")).stdout) == a
    several = await run("release", "b", "ghost", "c", "-o", "json")
    assert (several.exit_code, json.loads(several.stdout)) == (1, {"reservations": [b, c]})
    assert several.stderr == "reserver: there is no reservation 'ghost'\n"
    left = await run("release", "--all", "--yes", "-o", "name")
    assert left.stdout == "reserver-system/reservations/d\n"
