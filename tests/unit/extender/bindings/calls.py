"""Bind calls, and waits for the requests that they send."""

import asyncio

from reserver.extender.protocol import ExtenderBindingArgs
from tests.builders import pod, reservation
from tests.unit.extender.conftest import Served

SEAT = reservation("r", cpu="2")
OWNER = pod("owner", cpu="2")


async def bind(served: Served, asked: ExtenderBindingArgs) -> str:
    """Bind a pod; return the error, empty once the pod is bound."""
    return (await served.bindings.bind(asked)).refusal or ""


async def until_asked(served: Served, count: int = 1) -> None:
    """Wait until the API server has received so many bindings."""
    for _ in range(100):
        if len(served.cluster.bound) >= count:
            return
        await asyncio.sleep(0)
    raise AssertionError(f"{len(served.cluster.bound)} bindings were asked for")


async def begun(served: Served, args: ExtenderBindingArgs) -> asyncio.Task[str]:
    """Begin a Bind call; the API server answers its binding once the gate opens."""
    served.cluster.gate.clear()
    binding = asyncio.create_task(bind(served, args))
    await until_asked(served)
    return binding
