import asyncio
from typing import Any

from reserver.kube.lag import Lag
from reserver.kube.watched import Watched


class Reflector:
    """As much of one as tells whether its view lacks anything."""

    def __init__(self) -> None:
        self.lag = Lag()
        self.current = self.lag.over


async def test_whoever_waits_goes_on_when_nothing_lacks_anywhere_at_one_time() -> None:
    first, second = reflectors = Reflector(), Reflector()
    nothing: Any = None
    watched = Watched(*[nothing] * 8, reflectors=reflectors, clock=nothing)  # type: ignore[misc,arg-type]
    waiting = asyncio.create_task(watched.caught_up())
    for change in (first.lag.end, lambda: first.lag.begin(0.0), second.lag.end):
        await asyncio.sleep(0)
        change()
    for _ in range(3):
        await asyncio.sleep(0)
    assert not waiting.done()
    first.lag.end()
    await waiting
