"""docs/architecture.md lists files that a Filter call and an edit do enter."""

import asyncio
import json
import re
import sys
from contextlib import suppress
from pathlib import Path
from types import FrameType

import aiohttp

import reserver
from reserver.errors import ApiError
from tests.integration.world import CONFIGMAPS, World, serving

CODE = Path(reserver.__file__).parent
MAP = (CODE.parent / "docs/architecture.md").read_text()
MOST_FILES = 10
"""So many files a way of the map names at most."""

BESIDE = ("sim/", "server/stalls.py", "server/garbage.py")
"""What has nothing to do with it: the API server, and what looks at the event loop."""

SPEC = {
    "owners": [{"pod": {"name": "web-0", "namespace": "shop"}}],
    "node": "worker-1",
    "resources": {"cpu": "2"},
    "ttl": 0,
}
POD = {
    "metadata": {"name": "stranger", "namespace": "shop", "uid": "1", "labels": {"app": "web"}},
    "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "3"}}}]},
    "status": {},
}


def _way(heading: str) -> tuple[list[str], int]:
    """Return the files that the numbered list under a heading names, and how many are entered."""
    section = MAP.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    (count,) = re.findall(r"(\d+) files in all", section)
    return re.findall(r"^\d+\. `([\w/.]+)`", section, re.MULTILINE), int(count)


class _Visits(set[str]):
    """The files of Reserver that were entered, but for what goes on beside."""

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call" or (file := _file(frame)) is None or file in self:
            return
        begun: str = file
        caller = frame.f_back
        while caller is not None:
            begun = _file(caller) or begun
            caller = caller.f_back
        if not (begun.startswith(BESIDE) or file.startswith(BESIDE)):
            self.add(file)


def _file(frame: FrameType) -> str | None:
    """Return the file of Reserver that a function is in, None for any other."""
    name = frame.f_code.co_filename
    return name.removeprefix(f"{CODE}/") if name.startswith(f"{CODE}/") else None


async def _write(world: World, entries: dict[str, object], method: str, path: str) -> None:
    body = {
        "metadata": {"name": "reservations", "labels": {"reserver.io/store": "true"}},
        "data": {key: json.dumps(spec) for key, spec in entries.items()},
    }
    media = "application/json" if method == "POST" else "application/merge-patch+json"
    await world.cluster.client.send(method, path, body, media=media)


async def _acknowledged(world: World, key: str) -> None:
    """Wait until the status of an entry says that it holds."""
    async with asyncio.timeout(20):
        while True:
            with suppress(ApiError):
                if json.loads((await world.data("reservations-status")).get(key, "{}")).get(
                    "backed"
                ):
                    return
            await asyncio.sleep(0.02)


async def test_a_filter_call_and_an_edit_go_the_ways_of_the_map(tmp_path: Path) -> None:
    async with serving(tmp_path) as world, aiohttp.ClientSession() as session:
        await _write(world, {"a": SPEC}, "POST", CONFIGMAPS)
        await _acknowledged(world, "a")
        call, edit = _Visits(), _Visits()
        args = {"Pod": POD, "NodeNames": ["worker-1", "worker-2"]}
        sys.setprofile(call)
        try:
            async with session.post(f"{world.running.url}/filter", json=args) as response:
                verdict = await response.json()
            sys.setprofile(edit)
            await _write(world, {"b": SPEC}, "PATCH", f"{CONFIGMAPS}/reservations")
            await _acknowledged(world, "b")
        finally:
            sys.setprofile(None)
    assert verdict["NodeNames"] == ["worker-2"]
    for heading, visits in (("The way of a Filter call", call), ("The way of an edit", edit)):
        way, entered = _way(heading)
        assert 0 < len(way) <= MOST_FILES
        assert set(way) <= visits, f"{heading}: {set(way) - visits} is not on it"
        assert len(visits) <= entered, f"{heading}: {sorted(visits)}"
