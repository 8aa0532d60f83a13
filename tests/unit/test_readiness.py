import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from reserver.errors import NotReady
from reserver.k8s.watch.lag import Lag
from reserver.process import readiness as module
from reserver.process.readiness import ProcessReadiness, Pulse
from reserver.scheduling.state import State


class Reflector:
    """The part of a reflector that shows whether its view lags."""

    def __init__(self) -> None:
        self.lag = Lag()
        self.current = self.lag.over
        self.doubted: list[float] = []

    def distrust(self, seconds: float) -> None:
        self.doubted.append(seconds)
        self.lag.begin(0.0)

    def obstacle(self) -> str:
        return "is out of date" if self.doubted else ""


def complete() -> State:
    state = State()
    state.is_complete = True
    return state


async def test_whoever_waits_goes_on_when_nothing_lacks_anywhere_at_one_time() -> None:
    first, second = reflectors = Reflector(), Reflector()
    nothing: Any = None
    readiness = ProcessReadiness(nothing, cast("Any", reflectors), nothing)
    waiting = asyncio.create_task(readiness.caught_up())
    for change in (first.lag.end, lambda: first.lag.begin(0.0), second.lag.end):
        await asyncio.sleep(0)
        change()
    for _ in range(3):
        await asyncio.sleep(0)
    assert not waiting.done()
    first.lag.end()
    await waiting


async def test_one_watch_after_the_other_that_breaks_is_no_excuse(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "STALE_AFTER_S", 0.02)
    first, second = reflectors = Reflector(), Reflector()
    nothing: Any = None
    readiness = ProcessReadiness(complete(), cast("Any", reflectors), nothing)
    first.lag.end()
    waiting = asyncio.create_task(readiness.caught_up())
    while not waiting.done():  # None of them lacks anything for long, and never both nothing.
        await asyncio.sleep(0)
        first.lag.begin(0.0)
        second.lag.end()
        await asyncio.sleep(0)
        second.lag.begin(0.0)
        first.lag.end()
    with pytest.raises(NotReady, match="one watch after the other"):
        await waiting


def looking(now: Callable[[], float]) -> tuple[ProcessReadiness, tuple[Reflector, ...]]:
    """Return the readiness of a process with two collections and an injected clock."""
    reflectors = (Reflector(), Reflector())
    nothing: Any = None
    readiness = ProcessReadiness(nothing, cast("Any", reflectors), nothing, pulse=Pulse(now))
    return readiness, reflectors


def test_what_decides_first_after_a_standstill_finds_all_in_doubt() -> None:
    ticks = iter((0.0, 0.1, 7.1, 7.2))
    readiness, reflectors = looking(lambda: next(ticks))
    readiness._check_pulse()
    assert not any(each.doubted for each in reflectors)
    assert readiness.obstacles() == ("is out of date",) * 2
    readiness._check_pulse()
    assert [each.doubted for each in reflectors] == [[7.0]] * 2


async def test_bind_calls_wait_after_a_standstill_even_if_nobody_has_noticed_it_yet() -> None:
    ticks = iter((0.0, 2.0, 2.0))
    readiness, (first, second) = looking(lambda: next(ticks))
    first.lag.end()
    second.lag.end()
    waiting = asyncio.create_task(readiness.caught_up())
    for _ in range(3):
        await asyncio.sleep(0)
    assert not waiting.done()
    first.lag.end()
    second.lag.end()
    await waiting


@pytest.mark.parametrize(("gap", "stood"), [(0.1, 0.0), (1.0, 0.0), (1.5, 1.5), (40.0, 40.0)])
def test_it_stood_still_if_nobody_could_look_for_longer_than_a_second(
    gap: float, stood: float
) -> None:
    ticks = iter((5.0, 5.0 + gap, 5.1 + gap))
    pulse = Pulse(lambda: next(ticks))
    assert pulse.stood_still() == stood
    assert not pulse.stood_still()


class Held:
    """A lease that a test can lose."""

    def __init__(self) -> None:
        self.lost = ""

    def obstacle(self) -> str:
        return self.lost


class SlowEtcd:
    """An etcd that agrees after something has happened."""

    obstacle = ""

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        self.meanwhile = meanwhile

    async def agrees(self, *_: object) -> bool:
        self.meanwhile()
        return True


@pytest.mark.parametrize("case", ["nothing", "lease", "standstill", "noticed standstill"])
async def test_nothing_is_written_if_another_may_decide_once_etcd_has_answered(case: str) -> None:
    now, lease, nothing = [0.0], Held(), cast("Any", None)
    pulse = Pulse(lambda: now[0])
    reflectors = (Reflector(), Reflector())

    def meanwhile() -> None:
        lease.lost = "standing by: the other leads" if case == "lease" else ""
        now[0] += 3.0 if "standstill" in case else 0.5
        if case == "noticed standstill":  # The beat was first; less than makes the views stale.
            pulse.stood_still()

    readiness = ProcessReadiness(
        complete(),
        cast("Any", reflectors),
        nothing,
        cast("Any", lease),
        pulse,
        etcd=cast("Any", SlowEtcd(meanwhile)),
    )
    for reflector in reflectors:
        reflector.lag.end()
    assert await readiness.may_write() is (case == "nothing")
