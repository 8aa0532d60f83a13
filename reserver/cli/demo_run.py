"""Runs the demo: an embedded cluster, reserver in front of its scheduler, a live picture."""

from __future__ import annotations

import asyncio
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
from rich.console import Console
from rich.live import Live

from reserver import app
from reserver.cli.demo_scenario import NAMESPACE, STORE, Stage, Step, steps
from reserver.cli.demo_scene import node_rows, pod_rows, reservation_rows
from reserver.cli.demo_view import Progress, Scene, StepRow, draw
from reserver.config import Settings
from reserver.sim.clock import SystemClock
from reserver.sim.cluster import EmbeddedCluster
from reserver.sim.scheduler.loop import Scheduler

_STEP_LIMIT_S = 20.0
_LOOK_EVERY_S = 0.05
_REFRESH_S = 0.2
_READING_S = 1.5


@dataclass(slots=True)
class Demo:
    """A demo under way: an embedded cluster, reserver in front of its scheduler."""

    cluster: EmbeddedCluster
    reserver: app.Running
    console: Console
    footer: tuple[str, ...] = ()
    rows: list[StepRow] = field(default_factory=list)

    async def scene(self) -> Scene:
        """Return what the picture shows now."""
        assembly = self.reserver.assembly
        state = assembly.state
        state.ledger.advance(time.time())
        pods = await self.cluster.client.send("GET", "/api/v1/pods")
        return Scene(
            nodes=tuple(node_rows(state)),
            reservations=tuple(reservation_rows(state, time.time())),
            problems=tuple(
                str(problem) for store in assembly.stores for problem in store.cache.problems()
            ),
            pods=tuple(pod_rows(pods)),
            steps=tuple(self.rows),
            footer=self.footer,
        )

    async def play(self, scenario: tuple[Step, ...]) -> bool:
        """Play the scenario; return whether all came true."""
        self.rows = [StepRow(text=step.text, progress=Progress.WAITING) for step in scenario]
        for index, step in enumerate(scenario):
            self.rows[index] = StepRow(text=step.text, progress=Progress.RUNNING)
            came_true = await _act(step)
            progress = Progress.DONE if came_true else Progress.FAILED
            self.rows[index] = StepRow(text=step.text, progress=progress)
            if self.console.is_terminal:
                await asyncio.sleep(_READING_S)
            else:
                self.console.print(f"{progress.value} {step.text}", soft_wrap=True)
        return all(row.progress is Progress.DONE for row in self.rows)


async def run(console: Console, *, once: bool) -> bool:
    """Play the scenario; then, unless `once`, stay up until SIGTERM or Ctrl-C.

    Returns:
        Whether all that was expected came true.
    """
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    with tempfile.TemporaryDirectory(prefix="reserver-demo-") as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        async with started(kubeconfig, console) as demo_:
            playing = asyncio.create_task(_play(demo_, None if once else kubeconfig))
            stopping = asyncio.create_task(stop.wait())
            showing = asyncio.create_task(_show(demo_, console))
            done, _ = await asyncio.wait({playing, stopping}, return_when="FIRST_COMPLETED")
            all_true = playing in done and playing.result()
            if not once and playing in done:
                await stopping
            for task in (playing, stopping, showing):
                task.cancel()
            await asyncio.wait({playing, stopping, showing})
            if console.is_terminal or not all_true:
                console.print(draw(await demo_.scene()))
    return all_true


@asynccontextmanager
async def started(kubeconfig: Path, console: Console) -> AsyncIterator[Demo]:
    """An embedded cluster whose scheduler has reserver as its extender."""
    async with EmbeddedCluster() as cluster:
        cluster.write_kubeconfig(kubeconfig)
        settings = Settings(kubeconfig=kubeconfig, http_port=0, grpc_address=("127.0.0.1", 0))
        async with app.running(settings) as reserver, aiohttp.ClientSession() as session:
            scheduler = Scheduler(cluster.client, session, SystemClock(), reserver.url)
            scheduling = asyncio.create_task(scheduler.run())
            try:
                yield Demo(cluster, reserver, console)
            finally:
                scheduling.cancel()
                await asyncio.wait({scheduling})


async def _play(demo_: Demo, kubeconfig: Path | None) -> bool:
    """Play the scenario and, given a kubeconfig to hand out, invite the user to go on."""
    stage = Stage(demo_.cluster, demo_.reserver.assembly)
    all_true = await demo_.play(steps(stage, time.time))
    if kubeconfig is not None:
        demo_.footer = _invitation(demo_, kubeconfig)
        if not demo_.console.is_terminal:
            demo_.console.print("\n".join(demo_.footer), soft_wrap=True)
    return all_true


async def _show(demo_: Demo, console: Console) -> None:
    """Redraw until cancelled, where there is a terminal to draw on."""
    if not console.is_terminal:
        return
    with Live(console=console, auto_refresh=False, transient=True) as live:
        while True:
            live.update(draw(await demo_.scene()), refresh=True)
            await asyncio.sleep(_REFRESH_S)


async def _act(step: Step) -> bool:
    await step.act()
    try:
        async with asyncio.timeout(_STEP_LIMIT_S):
            while not await step.came_true():  # noqa: ASYNC110 - asks the API server, as a user would
                await asyncio.sleep(_LOOK_EVERY_S)
    except TimeoutError:
        return False
    return True


def _invitation(demo_: Demo, kubeconfig: Path) -> tuple[str, ...]:
    pods = f"{demo_.cluster.url}/api/v1/namespaces/default/pods"
    return (
        "It stays up. From this folder, in another terminal:",
        f"  export KUBECONFIG={kubeconfig} RESERVER_ADDRESS={demo_.reserver.grpc_address}",
        f"  export PATH={Path(sys.executable).parent}:$PATH",
        "  reserver create web --node worker-3 --owner pod/web-0 -n default --cpu 1",
        "  reserver top nodes; reserver explain pod default/normal-pod",
        "  python examples/global_manager.py --address $RESERVER_ADDRESS \\",
        "    --kubeconfig $KUBECONFIG --node worker-2",
        "with kubectl:",
        f"  kubectl edit configmap -n {NAMESPACE} {STORE}",
        "  kubectl create -f examples/stranger.json       # lands on worker-2; try a second one",
        "  kubectl create -f examples/web-0.yaml          # lands on its seat",
        "or without:",
        f"  curl --json @examples/stranger.json {pods}",
        "Ctrl-C ends it.",
    )
