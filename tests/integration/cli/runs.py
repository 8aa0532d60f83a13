"""Helpers for tests of commands."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable

from typer.testing import CliRunner, Result

from reserver.cli.main import app
from tests.integration.world import CONFIGMAPS, World

Run = Callable[..., Awaitable[Result]]


def runs_beside(world: World) -> Run:
    """Return a runner of commands, each on its own event loop, as in its own process."""

    async def run(*arguments: str, text: str | None = None, **variables: str) -> Result:
        invoke = CliRunner().invoke
        environment = {"RESERVER_ADDRESS": world.running.grpc_address, **variables}
        return await asyncio.to_thread(invoke, app, arguments, input=text, env=environment)

    return run


def untimed(text: str) -> str:
    """Return an output without times and durations."""
    text = re.sub(r"until .*\d\d:\d\d( tomorrow)?$", "until T", text, flags=re.MULTILINE)
    return re.sub(r"(\d+[dhms]){1,2}\b", "SPAN", text)


async def write(world: World, configmap: str, data: dict[str, str]) -> None:
    """Write a store as another client does."""
    metadata = {"name": configmap, "labels": {"reserver.io/store": "true"}}
    await world.cluster.client.send("POST", CONFIGMAPS, {"metadata": metadata, "data": data})


FLAGS = ("--owner", "pod/web-0", "-n", "shop")
