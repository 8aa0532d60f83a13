"""Reserver reports the code that blocked its event loop."""

from __future__ import annotations

import asyncio
import re
import time
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from structlog.testing import capture_logs

from reserver.errors import ApiError
from reserver.extender.placer import Placer
from reserver.reservations.reservation import Ref
from reserver.scheduling.state import State
from tests.integration.world import serving
from tests.waiting import until

HOLDER = "extender.placer.Placer.look"


async def _metrics(url: str) -> str:
    async with aiohttp.ClientSession() as session, session.get(f"{url}/metrics") as answer:
        return await answer.text()


async def test_what_holds_the_event_loop_is_told_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_held = asyncio.Event()

    def hold(_placer: Placer, _ref: Ref, _state: State) -> None:
        time.sleep(0.3)  # The fault that is to be found.
        has_held.set()

    monkeypatch.setattr(Placer, "_consider", hold)
    with capture_logs() as logs:
        async with serving(tmp_path) as world:
            nobody = Ref.of_object("shop", "nobody")
            world.running.assembly.placer.refused(nobody, ApiError(0, "", "so that it looks"))
            await has_held.wait()

            def told() -> list[Any]:  # On a slow machine others hold it as well, and it for less.
                return [each for each in logs if each.get("by") == HOLDER and each["seconds"] > 0.3]

            line = (await until(told))[0]
            exposed = await _metrics(world.running.url)
    assert line["event"] == "event loop held"
    assert line["task"] == "Placer.run"
    assert line["cpu_seconds"] < 0.2  # It slept.
    series = rf'reserver_event_loop_blocked_seconds_sum\{{by="{HOLDER}"\}} (\S+)'
    seconds = re.search(series, exposed)
    assert seconds is not None
    assert float(seconds[1]) >= 0.3
