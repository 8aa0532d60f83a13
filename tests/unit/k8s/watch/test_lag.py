import asyncio
from typing import Literal, NamedTuple

import pytest

from reserver.errors import ApiError
from reserver.k8s.watch.lag import Lag, catch_up
from tests.unit.k8s.fakes import ScriptedClient


def listed(at: float = 100.0, revision: int = 10) -> Lag:
    lag = Lag()
    lag.listed(at, revision)
    return lag


def test_a_list_is_as_old_as_its_beginning_and_what_came_after_it_may_lack() -> None:
    lag = listed(at=100.0)
    assert lag.since == 100.0
    assert not lag.over.is_set()


@pytest.mark.parametrize(
    ("reached", "goals", "is_over"),
    [
        ((), (), False),
        ((), (10,), True),
        ((), (20,), False),
        ((15,), (20,), False),
        ((15,), (20, 15), True),
        ((20,), (20,), True),
        ((25,), (20,), True),
        ((25,), (), False),
        ((), (20, 10), True),
        ((), (20, 15), False),
    ],
)
def test_nothing_lacks_once_as_much_is_told_as_there_was(
    reached: tuple[int, ...],
    goals: tuple[int, ...],
    is_over: bool,  # noqa: FBT001 - a scenario
) -> None:
    for is_reached_first in (True, False):
        lag = listed(revision=10)
        first, second = (reached, goals) if is_reached_first else (goals, reached)
        report, aim = (lag.reached, lag.aim) if is_reached_first else (lag.aim, lag.reached)
        for revision in first:
            report(revision)
        for revision in second:
            aim(revision)
        assert lag.over.is_set() is is_over
        assert (lag.since is None) is is_over


def test_what_is_missed_twice_is_missed_since_the_first_time() -> None:
    lag = listed()
    lag.aim(10)
    lag.begin(200.0)
    lag.begin(201.0)
    assert lag.since == 200.0


def test_how_far_a_watch_had_to_come_does_not_count_for_the_next() -> None:
    lag = listed()
    lag.aim(20)
    lag.begin(200.0)
    lag.reached(20)
    assert not lag.over.is_set()
    lag.aim(20)
    assert lag.over.is_set()


def test_a_new_list_knows_what_was_missed_before() -> None:
    lag = listed(at=100.0)
    lag.listed(300.0, 30)
    assert lag.since == 300.0
    lag.aim(30)
    assert lag.over.is_set()


async def test_whoever_waits_for_the_end_does_not_go_on_at_a_new_list() -> None:
    lag = listed()
    waiting = asyncio.create_task(lag.over.wait())
    await asyncio.sleep(0)
    lag.listed(300.0, 30)
    await asyncio.sleep(0)
    assert not waiting.done()
    lag.aim(30)
    await waiting


class Pods(NamedTuple):
    path: str = "/api/v1/pods"
    selector: dict[str, str] = {}  # noqa: RUF012 - nobody writes to it


class Impatience(asyncio.Event):
    """An event whose waits time out; the watch advances a little before each timeout."""

    def __init__(self, lag: Lag, more: int) -> None:
        super().__init__()
        self._lag, self._more = lag, more

    async def wait(self) -> Literal[True]:
        if self._more:
            self._lag.reached(self._lag.revision + self._more)
        if self.is_set():
            return True
        raise TimeoutError


@pytest.mark.parametrize(("more", "is_mute"), [(0, True), (2, False)])
async def test_a_watch_is_mute_that_tells_nothing_of_what_was_missed_for_a_while(
    more: int,
    is_mute: bool,  # noqa: FBT001 - a scenario
) -> None:
    lag = listed(revision=10)
    lag.over = Impatience(lag, more)
    changed = {"metadata": {"name": "a", "resourceVersion": "20"}}
    event = {"type": "MODIFIED", "object": changed}
    client = ScriptedClient({"metadata": {"resourceVersion": "20"}, "items": []}, [event])
    if is_mute:
        with pytest.raises(ApiError, match="does not tell what was missed"):
            await catch_up(client, Pods(), lag)
    else:
        await catch_up(client, Pods(), lag)
        assert lag.revision == 20
