"""Runs the demo: an embedded cluster, Reserver as its scheduler's extender, a live picture."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import aiohttp
from rich.console import Console, RenderableType
from rich.live import Live

from reserver import app
from reserver.cli import interrupt, ui
from reserver.cli.target import Target
from reserver.settings.serve import Settings
from reserver_demo import keys, workdir
from reserver_demo.clock import SystemClock
from reserver_demo.cluster import EmbeddedCluster
from reserver_demo.pages import pages
from reserver_demo.scenario import Stage, Step, steps
from reserver_demo.scene import node_rows, pod_rows, reservation_rows
from reserver_demo.scheduler.loop import Scheduler
from reserver_demo.view import Page, Progress, Scene, StepRow, draw

_STEP_LIMIT_S = 20.0
_LOOK_EVERY_S = 0.05
_REFRESH_S = 0.2
_READING_S = 2.5
_LEAVE_SCREEN = b"\x1b[?1049l"
"""The escape sequence that leaves the alternate screen."""


@dataclass(slots=True)
class Demo:
    """A running demo: an embedded cluster, and Reserver as its scheduler's extender."""

    cluster: EmbeddedCluster
    reserver: app.Running
    console: Console
    target: Target
    rows: list[StepRow] = field(default_factory=list)
    pages: tuple[Page, ...] = ()
    page: int = 0
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    _go_on: asyncio.Event = field(default_factory=asyncio.Event)

    async def scene(self) -> Scene:
        """Return the present content of the picture."""
        assembly = self.reserver.assembly
        state = assembly.state
        state.ledger.advance(assembly.clock())
        pods = await self.cluster.client.send("GET", "/api/v1/pods")
        return Scene(
            nodes=tuple(node_rows(state)),
            reservations=tuple(reservation_rows(state, time.time())),
            problems=tuple(
                str(problem) for store in assembly.stores for problem in store.cache.problems()
            ),
            pods=tuple(pod_rows(pods)),
            steps=tuple(self.rows),
            pages=self.pages,
            page=self.page,
        )

    async def picture(self) -> RenderableType:
        """Return the picture for the present size of the terminal."""
        return draw(await self.scene(), *self.console.size)

    def press(self, key: str) -> None:
        """Handle a key."""
        self._go_on.set()
        if key in keys.END:
            self.stop.set()
        elif key in keys.NEXT:
            self.page = max(min(self.page + 1, len(self.pages) - 1), 0)
        elif key in keys.PREVIOUS:
            self.page = max(self.page - 1, 0)

    async def play(self, scenario: tuple[Step, ...]) -> bool:
        """Play the scenario; return whether every step had its expected effect."""
        self.rows = [StepRow(text=step.text, progress=Progress.WAITING) for step in scenario]
        for index, step in enumerate(scenario):
            self.rows[index] = StepRow(text=step.text, progress=Progress.RUNNING)
            came_true = await act(step)
            progress = Progress.DONE if came_true else Progress.FAILED
            self.rows[index] = StepRow(text=step.text, progress=progress)
            if self.console.is_terminal:
                await self._let_read()
            else:
                self.console.print(f"{progress.value} {step.text}", soft_wrap=True)
        return all(row.progress is Progress.DONE for row in self.rows)

    async def _let_read(self) -> None:
        """Pause for reading a step, or until a key is pressed."""
        self._go_on.clear()
        try:
            async with asyncio.timeout(_READING_S):
                await self._go_on.wait()
        except TimeoutError:
            pass


async def run(console: Console, *, once: bool) -> bool:
    """Play the scenario; then, unless `once`, stay up until SIGTERM, Ctrl-C or `q`.

    Returns:
        Whether every step had its expected effect.
    """
    with workdir.demo_folder() as folder:
        async with started(folder, console) as demo_:
            playing = asyncio.create_task(play(demo_, None if once else folder))
            stopping = asyncio.create_task(demo_.stop.wait())
            showing = asyncio.create_task(_show(demo_, console))
            with interrupt.handing(demo_.stop.set):
                done, _ = await asyncio.wait({playing, stopping}, return_when="FIRST_COMPLETED")
                all_true = playing in done and playing.result()
                if not once and playing in done:
                    async with ui.serving(demo_.target) as address:
                        invite(demo_, folder, address)
                        await stopping
            for task in (playing, stopping, showing):
                task.cancel()
            await asyncio.wait({playing, stopping, showing})
            _print_outcome(demo_, console)
    return all_true


def _print_outcome(demo_: Demo, console: Console) -> None:
    """Print the outcome of each step on the normal screen."""
    begun = [row for row in demo_.rows if row.progress is not Progress.WAITING]
    if console.is_terminal:
        for row in begun:
            console.print(f"{row.progress.value} {row.text}", soft_wrap=True)
        console.print("The demo is over, and its cluster is gone.")


@asynccontextmanager
async def started(folder: Path, console: Console) -> AsyncIterator[Demo]:
    """Run an embedded cluster whose scheduler has Reserver as its extender.

    Args:
        folder: receives a kubeconfig, and the files for the instructions.
        console: the console of the demo.
    """
    async with EmbeddedCluster() as cluster:
        kubeconfig = folder / "kubeconfig"
        cluster.write_kubeconfig(kubeconfig)
        settings = Settings(
            kubeconfig=kubeconfig,
            http_port=0,
            grpc_address=("127.0.0.1", 0),
            pod_moves=True,
            tenant_ceiling_cluster="none",  # Stories fill a cluster of three nodes.
        )
        async with app.running(settings) as reserver, aiohttp.ClientSession() as session:
            variables = workdir.environment(folder, cluster.url, str(reserver.grpc_address))
            workdir.write_environment(folder, variables)
            scheduler = Scheduler(cluster.client, session, SystemClock(), reserver.url)
            scheduling = asyncio.create_task(scheduler.run())
            try:
                target = Target(address=str(reserver.grpc_address), kubeconfig=kubeconfig)
                yield Demo(cluster, reserver, console, target)
            finally:
                scheduling.cancel()
                await asyncio.wait({scheduling})


async def play(demo_: Demo, folder: Path | None) -> bool:
    """Play the scenario and, given a folder, write the files for the pages into it."""
    stage = Stage(demo_.cluster, demo_.reserver.assembly)
    all_true = await demo_.play(steps(stage, time.time))
    if folder is not None:
        workdir.write_pod(folder, "web-0", {"name": "web-0"}, "1")
        workdir.write_pod(folder, "stranger", {"generateName": "stranger-"}, "500m")
        workdir.write_seat(folder)
    return all_true


def invite(demo_: Demo, folder: Path, address: str) -> None:
    """Show the pages with commands to try; `address` is the address of `reserver ui`."""
    demo_.pages = tuple(pages(folder, address))
    if not demo_.console.is_terminal:
        for page in demo_.pages:
            demo_.console.print("", page.title, *page.lines, sep="\n", soft_wrap=True)


async def _show(demo_: Demo, console: Console) -> None:
    """Redraw until cancelled; without a terminal do nothing.

    The picture is on the alternate screen, so that a resize leaves no remains. A demo whose parent
    (`make`) was killed ends, as no key reaches it any more.
    """
    if not console.is_terminal:
        return
    parent = os.getppid()
    with (
        keys.keys(sys.stdin.fileno(), demo_.press),
        Live(console=console, auto_refresh=False, screen=True) as live,
        interrupt.undoing(partial(os.write, sys.stdout.fileno(), _LEAVE_SCREEN)),
    ):
        while True:
            live.update(await demo_.picture(), refresh=True)
            await asyncio.sleep(_REFRESH_S)
            if os.getppid() != parent:
                demo_.stop.set()


async def act(step: Step) -> bool:
    """Do a step; return whether its expected effect occurred in time."""
    await step.act()
    return await comes_true(step.came_true)


async def comes_true(
    expected: Callable[[], Awaitable[bool]], limit_s: float = _STEP_LIMIT_S
) -> bool:
    """Wait for an expected effect, at most `limit_s` seconds; return whether it occurred."""
    try:
        async with asyncio.timeout(limit_s):
            while not await expected():  # noqa: ASYNC110 - asks the API server, as a user would
                await asyncio.sleep(_LOOK_EVERY_S)
    except TimeoutError:
        return False
    return True
