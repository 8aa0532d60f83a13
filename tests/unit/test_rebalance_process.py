"""The process that rebalances ends with the one that serves, whenever that ends."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from reserver.rebalance_process import RebalanceProcess
from tests.unit.wire.rebalance.test_channel import ORDERS


async def test_a_process_ends_if_its_start_is_cancelled_before_anybody_knows_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[asyncio.subprocess.Process] = []
    start, connecting = asyncio.create_subprocess_exec, asyncio.Event()

    async def starting(*command: str, **options: Any) -> asyncio.subprocess.Process:
        started.append(await start(*command, **options))
        return started[0]

    async def connect(**_: object) -> None:
        connecting.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(asyncio, "create_subprocess_exec", starting)
    monkeypatch.setattr(asyncio, "open_connection", connect)
    running = asyncio.ensure_future(RebalanceProcess(ORDERS, dict).run())
    await connecting.wait()
    running.cancel()
    await asyncio.wait({running})
    (process,) = started
    assert process.returncode is not None
