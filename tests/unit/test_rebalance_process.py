"""The processes beside one that serves end with it, whenever that ends."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from typing import Any

import pytest

from hack.programs import started
from reserver.rebalance.modes import Compat
from reserver.rebalance_process import Planner


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
    plan = Planner("", dict).plan("", Compat.PLAN, None)
    planning = asyncio.ensure_future(anext(plan))
    await connecting.wait()
    planning.cancel()
    await asyncio.wait({planning})
    (process,) = started
    assert process.returncode is not None


@pytest.mark.parametrize("said", [b"", b'{"policy": '])
def test_a_planner_whose_caller_ends_before_it_has_asked_ends_quietly(said: bytes) -> None:
    ours, theirs = socket.socketpair()
    number = theirs.fileno()
    command = (sys.executable, "-m", "reserver.cli.plan_child", str(number))
    with started(*command, pass_fds=(number,), stderr=subprocess.PIPE) as process:
        theirs.close()
        with ours:
            ours.sendall(said)
        assert process.communicate(timeout=60)[1] == b""
        assert process.returncode == 0
