"""The number of files that a Filter call, or an edit of a store ConfigMap, enters.

A change that adds a file to one of these paths has to raise a number here.
"""

from __future__ import annotations

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
from tests.waiting import until_answered

CODE = Path(reserver.__file__).parent
MOST_OF_A_CALL, MOST_OF_AN_EDIT = 28, 65

UNRELATED = re.compile(r".*\b(gc_tuning|loop_watchdog|reload|tenant_ceiling)\.py")
"""Unrelated files, which watch the event loop, the nodes or the settings."""

LOOPS = re.compile("grpc/service|process/readiness|k8s/credentials")
"""Files with periodic tasks of their own: health, readiness, renewed tokens."""

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


class _Entered(set[str]):
    """The files of Reserver that were entered, without unrelated ones.

    Attributes:
        started_by: only files that files with this prefix have started.
    """

    def __init__(self, started_by: str = "") -> None:
        super().__init__()
        self.started_by = started_by

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call" or (file := _file(frame)) is None or file in self:
            return
        begun: str = file
        caller = frame.f_back
        while caller is not None:
            begun = _file(caller) or begun
            caller = caller.f_back
        is_unrelated = UNRELATED.match(begun) or UNRELATED.match(file) or LOOPS.match(begun)
        if begun.startswith(self.started_by) and not is_unrelated:
            self.add(file)


def _file(frame: FrameType) -> str | None:
    """Return the file of a function of Reserver; None for any other function."""
    name = frame.f_code.co_filename
    return name.removeprefix(f"{CODE}/") if name.startswith(f"{CODE}/") else None


async def _write(world: World, key: str, method: str, path: str) -> None:
    """Write an entry; return once its status says that it holds."""
    body = {
        "metadata": {"name": "reservations", "labels": {"reserver.io/store": "true"}},
        "data": {key: json.dumps(SPEC)},
    }
    media = "application/json" if method == "POST" else "application/merge-patch+json"
    await world.cluster.client.send(method, path, body, media=media)

    async def is_backed() -> bool:
        with suppress(ApiError):
            status = (await world.data("reservations-status")).get(key, "{}")
            return bool(json.loads(status).get("backed"))
        return False

    await until_answered(is_backed)


async def test_a_filter_call_and_an_edit_enter_few_files(tmp_path: Path) -> None:
    async with serving(tmp_path) as world, aiohttp.ClientSession() as session:
        await _write(world, "a", "POST", CONFIGMAPS)
        call, edit = _Entered("http/"), _Entered()
        args = {"Pod": POD, "NodeNames": ["worker-1", "worker-2"]}
        sys.setprofile(call)
        try:
            async with session.post(f"{world.running.url}/filter", json=args) as response:
                verdict = await response.json()
            sys.setprofile(edit)
            await _write(world, "b", "PATCH", f"{CONFIGMAPS}/reservations")
        finally:
            sys.setprofile(None)
    assert verdict["NodeNames"] == ["worker-2"]
    assert 0 < len(call) <= MOST_OF_A_CALL, sorted(call)
    assert 0 < len(edit) <= MOST_OF_AN_EDIT, sorted(edit)
