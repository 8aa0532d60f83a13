"""The page of `reserver ui` in Chromium, and its cost for Reserver."""

import asyncio
import json
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from hack.bed.pace import slowness
from hack.bench.report import TooSlow, milliseconds, progress, table
from hack.bench.scale import Scale
from hack.programs import cpu_s, started
from hack.reserver_process import ReserverProcess
from reserver.client import Client
from reserver_demo.cluster import EmbeddedCluster

_NAMESPACE = "reserver-system"
_RECURS = 10
"""One in this many reservations recurs."""

_DEMO = (18, 36)
_HOLDS = 4
"""Reservations on each node of the large cluster."""

_ENTRIES = 4_000
"""Entries of one ConfigMap."""

_CHANGES, _EVERY_S = 100, 0.1
_OPENED, _SETTLED_MS = 5, 2_000
_PATIENCE_S = 120.0
"""Longest wait for an answer: on busy cores a new Reserver answers late."""

_QUIET, _LOOK_S = 0.2, 2.0
"""Share of a core below which a Reserver has finished its start, and seconds of the sample."""

_SCROLL = """async () => {
  const box = document.querySelector('.rows');
  const took = [];
  for (let step = 0; step < 240; step++) {
    const began = performance.now();
    box.scrollTop += 700;
    await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
    took.push((performance.now() - began) / 1000);
  }
  return took.sort((a, b) => a - b);
}"""
_PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime / 1000"
_HEAP = "performance.memory.usedJSHeapSize / 2 ** 20"


def _share(of_core: float) -> str:
    return f"{max(0, of_core) * 100:.1f} %"


def _mebibytes(size: float) -> str:
    return f"{size:.0f} MiB"


_ROWS: Mapping[str, tuple[Callable[[float], str], tuple[float, ...]]] = {
    "first paint": (milliseconds, (0.3, 2)),
    "all there, bars to point at": (milliseconds, (1, 2)),
    "scroll step, p50": (milliseconds, (0.033,)),
    "scroll step, p95": (milliseconds, (0.033,)),
    "heap of the tab": (_mebibytes, (150,)),
    "Reserver, of a core": (_share, (0.05,)),
    "`reserver ui`, of a core": (_share, ()),
}
"""Format and bounds of each figure, for the small and for the large cluster; bounds of time apply
to an idle core."""


def measure(scale: Scale) -> Iterator[str]:
    """Yield the table of the page.

    Raises:
        TooSlow: a figure is above its bound.
    """
    if find_spec("playwright") is None:
        progress("no page: `make bench` installs Playwright")
        return
    sizes = (_DEMO, (scale.nodes, scale.nodes * _HOLDS))
    found = [dict(zip(_ROWS, asyncio.run(_measured(*size)), strict=True)) for size in sizes]
    rows = [
        (name, *(shown(each[name]) for each in found), ", ".join(map(shown, bounds)))
        for name, (shown, bounds) in _ROWS.items()
    ]
    header = (*(f"{nodes:,} nodes, {count:,} reservations" for nodes, count in sizes), "at most")
    yield table("The page, with ten changes a second", ("figure", *header), rows)
    slow = slowness()
    for each, of_size in zip(found, (0, -1), strict=True):
        for name, (shown, bounds) in _ROWS.items():
            slower = 1 if shown is _mebibytes else slow
            if bounds and each[name] > bounds[of_size] * slower:
                raise TooSlow(f"the page: {name} is {shown(each[name])}")


async def _measured(nodes: int, reservations: int) -> tuple[float, ...]:
    """Return the figures, in the order of their rows; Reserver's exclude the cost of changes."""
    progress(f"the page, with {nodes:,} nodes and {reservations:,} reservations")
    with TemporaryDirectory(prefix="reserver-page-") as name:
        folder = Path(name)
        async with EmbeddedCluster() as cluster, AsyncExitStack() as until:
            await _fill(cluster, nodes, reservations)
            cluster.write_kubeconfig(folder / "kubeconfig")
            flags = ("--log-level", "info", "--grpc-address", "127.0.0.1:0")
            reserver = ReserverProcess(folder / "kubeconfig", folder / "log", *flags)
            await asyncio.to_thread(reserver.start)
            until.push_async_callback(asyncio.to_thread, reserver.stop)
            client = await until.enter_async_context(
                Client(reserver.grpc_address, deadline_s=_PATIENCE_S)
            )
            (alone,) = await _spent(client, reserver.process.pid)
            words = ("--address", reserver.grpc_address, "--kubeconfig", str(folder / "kubeconfig"))
            command = until.enter_context(_command(*words))
            line = await asyncio.to_thread(command.stdout.readline)  # type: ignore[union-attr]
            async with _browsing(line.split()[-1]) as (page, seconds):
                own, others = await _spent(client, reserver.process.pid, command.pid)
                heap = float(await page.evaluate(_HEAP))
    return (*seconds, heap, own - alone, others)


def _command(*words: str) -> AbstractContextManager[subprocess.Popen[str]]:
    command = (sys.executable, "-m", "reserver", "ui", "--no-browser", *words)
    return started(*command, stdout=subprocess.PIPE, text=True)


async def _fill(cluster: EmbeddedCluster, nodes: int, reservations: int) -> None:
    """Create nodes, and reservations as Reserver stores them."""
    for name in (_NAMESPACE, "shop"):
        await cluster.client.send("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    for number in range(nodes):
        size = {"cpu": "64", "memory": "256Gi"}
        await cluster.create_node(f"worker-{number}", size, {"zone": f"eu-{number % 3}"})
    for first in range(0, reservations, _ENTRIES):
        some = range(first, min(first + _ENTRIES, reservations))
        data = {f"web-{number}": json.dumps(_entry(number, nodes)) for number in some}
        metadata = {"name": f"reservations-{first}", "labels": {"reserver.io/store": "true"}}
        body = {"metadata": metadata, "data": data}
        await cluster.client.send("POST", f"/api/v1/namespaces/{_NAMESPACE}/configmaps", body)


def _entry(number: int, nodes: int) -> dict[str, Any]:
    when: dict[str, Any] = {"ttl": f"{1 + number % 20}h"}
    if number % _RECURS == 0:
        when = {"schedule": {"cron": f"{number % 60} */3 * * *", "duration": "2h"}}
    return {
        "owners": [{"pod": {"namespace": "shop", "name": f"web-{number}"}}],
        "node": f"worker-{number % nodes}",
        "resources": {"cpu": 2 + number % 4 * 2, "memory": "8Gi"},
        **when,
    }


async def _spent(client: Client, *pids: int) -> list[float]:
    """Return the share of a core that each process takes while one reservation changes."""
    while await _share_of(pids[0]) > _QUIET:
        pass
    changed = await anext(each async for each in client.list() if each.spec.schedule is None)
    began, before = time.monotonic(), [cpu_s(pid) for pid in pids]
    for change in range(_CHANGES):
        await client.extend(changed.id, timedelta(hours=1, minutes=change))
        await asyncio.sleep(_EVERY_S)
    took = time.monotonic() - began
    return [(cpu_s(pid) - spent) / took for pid, spent in zip(pids, before, strict=True)]


async def _share_of(pid: int) -> float:
    before = cpu_s(pid)
    await asyncio.sleep(_LOOK_S)
    return (cpu_s(pid) - before) / _LOOK_S


@asynccontextmanager
async def _browsing(address: str) -> AsyncIterator[tuple[Any, tuple[float, ...]]]:
    """Open the page and scroll through it; yield it, with the times of both."""
    from playwright.async_api import async_playwright  # noqa: PLC0415 - an optional package

    arguments = ["--no-sandbox", "--disable-dev-shm-usage", "--enable-precise-memory-info"]
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=arguments
        )
        opened = []
        for _ in range(_OPENED):
            page = await browser.new_page(viewport={"width": 1280, "height": 800})
            began = time.monotonic()
            await page.goto(address)
            await page.locator("#state.good").wait_for()
            await page.locator(".bar").first.wait_for()
            opened.append((time.monotonic() - began, await page.evaluate(_PAINT)))
            if len(opened) < _OPENED:
                await page.close()
        interactive, paint = map(median, zip(*opened, strict=True))
        await page.wait_for_timeout(_SETTLED_MS)
        took = await page.evaluate(_SCROLL)
        yield page, (paint, interactive, median(took), took[len(took) * 19 // 20])
        await browser.close()
