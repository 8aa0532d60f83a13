import asyncio
from collections.abc import Callable
from typing import NoReturn

import pytest

from reserver.errors import LeadershipLost, WentBack
from reserver.k8s.lease import Lease
from tests.unit.k8s.fakes import Request, refused
from tests.unit.k8s.leases import LeaseServer


class World:
    """A Lease, and candidates that wait on the clock of a test."""

    def __init__(self) -> None:
        self.server = LeaseServer()
        self.first, self.second = map(self.server.candidate, ("first", "second"))
        self.on_sleep: Callable[[], None] = lambda: None

    async def sleep(self, seconds: float) -> None:
        self.server.elapsed += seconds
        self.on_sleep()

    async def acquired_after(self, candidate: Lease) -> float:
        began = self.server.elapsed
        await candidate.acquire()
        return self.server.elapsed - began


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    world = World()
    monkeypatch.setattr(asyncio, "sleep", world.sleep)
    return world


async def test_whoever_comes_first_leads_and_the_other_says_who(world: World) -> None:
    assert await world.acquired_after(world.first) == 0
    assert world.first.obstacle() == ""
    assert world.second.obstacle() == "lease system/reserver is not held yet"
    assert world.server.lease is not None
    spec = world.server.lease["spec"]
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"]) == ("first", 15)
    assert spec["acquireTime"] == spec["renewTime"] == "2030-03-17T17:46:40.000000Z"


async def test_a_standby_takes_over_when_the_lease_was_not_renewed_for_its_duration(
    world: World,
) -> None:
    await world.first.acquire()
    assert await world.acquired_after(world.second) == pytest.approx(16)
    assert not world.first.is_held
    assert world.server.lease is not None
    assert world.server.lease["spec"]["leaseTransitions"] == 2
    assert world.first.obstacle() == "lease system/reserver is not held yet"


async def test_a_standby_takes_over_at_once_when_the_lease_is_released(world: World) -> None:
    await world.first.acquire()
    await world.first.release()
    assert not world.first.is_held
    assert await world.acquired_after(world.second) == 0
    await world.first.release()  # Not its own any more.
    assert world.second.is_held


async def kept_for(world: World, seconds: float) -> None:
    """Let the first candidate keep its lease for so many seconds."""
    until = world.server.elapsed + seconds

    def look() -> None:
        if world.server.elapsed > until:
            raise asyncio.CancelledError

    world.on_sleep = look
    with pytest.raises(asyncio.CancelledError):
        await world.first.keep()
    world.on_sleep = lambda: None


async def test_a_lease_that_is_renewed_stays(world: World) -> None:
    await world.first.acquire()
    await kept_for(world, 120)
    assert world.first.is_held
    assert world.server.lease is not None
    assert world.server.lease["spec"]["leaseTransitions"] == 1


@pytest.mark.parametrize("fault", ["lost", "unanswered"])
async def test_a_leader_that_cannot_renew_ends_before_anybody_else_may_lead(
    world: World, fault: str
) -> None:
    await world.first.acquire()
    began = world.server.elapsed
    world.server.faults = [fault] * 1000
    with pytest.raises(LeadershipLost, match="connection refused"):
        await world.first.keep()
    assert 10 <= world.server.elapsed - began < 15


async def test_a_leader_whose_api_server_is_silent_ends_before_anybody_else_may_lead(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.first.acquire()
    began = world.server.elapsed

    def silence(timeout_s: float) -> NoReturn:
        world.server.elapsed += timeout_s
        raise TimeoutError

    monkeypatch.setattr(asyncio, "timeout", silence)
    with pytest.raises(LeadershipLost, match="did not answer in time"):
        await world.first.keep()
    assert 10 <= world.server.elapsed - began < 15


async def test_a_lease_counts_from_before_its_request(world: World) -> None:
    answer = world.server._answer

    async def slowly(request: Request) -> bytes:
        answered = await answer(request)
        world.server.elapsed += 12  # As where the process stood still.
        return answered

    world.server._answer = slowly  # type: ignore[method-assign]
    await world.first.acquire()
    assert not world.first.is_held


async def test_a_few_requests_without_an_answer_cost_no_leadership(world: World) -> None:
    await world.first.acquire()
    world.server.faults = ["unanswered", "lost", "unanswered"]
    calls = iter(range(8))

    def look() -> None:
        if next(calls, None) is None:
            raise asyncio.CancelledError

    world.on_sleep = look
    with pytest.raises(asyncio.CancelledError):
        await world.first.keep()
    assert world.first.is_held


async def test_a_leader_that_was_paused_does_not_believe_that_it_leads(world: World) -> None:
    await world.first.acquire()
    world.server.elapsed += 20
    assert not world.first.is_held
    await world.second.acquire()
    with pytest.raises(LeadershipLost, match="second leads"):
        await world.first.keep()


async def test_a_leader_that_was_paused_does_not_take_the_lease_back(world: World) -> None:
    await world.first.acquire()
    await world.second._try()
    world.server.elapsed += 15
    assert await world.second._try()
    for _ in range(3):
        assert not await world.first._try()
    assert world.second.is_held


async def test_who_deletes_the_lease_makes_no_second_leader(world: World) -> None:
    await world.first.acquire()
    assert not await world.second._try()
    world.server.lease = None
    assert await world.acquired_after(world.second) > 15
    assert not world.first.is_held


async def test_a_leader_whose_lease_was_deleted_makes_it_again(world: World) -> None:
    await world.first.acquire()
    world.server.lease = None
    await kept_for(world, 60)
    assert world.first.is_held
    assert world.server.lease is not None


async def test_why_a_lease_cannot_be_had_is_told(world: World) -> None:
    async def forbid(*_: object) -> bytes:
        if world.server.elapsed > 1005:
            raise asyncio.CancelledError
        raise refused(403)

    world.server._answer = forbid  # type: ignore[assignment,method-assign]
    with pytest.raises(asyncio.CancelledError):
        await world.first.acquire()
    assert "scheduler-config/core/rbac-reserver.yaml" in world.first.obstacle()


async def test_a_lease_that_is_as_it_was_long_ago_is_not_kept(world: World) -> None:
    """Etcd was restored to a time at which the present leader led."""
    await world.first.acquire()
    backup = world.server.lease

    def restore() -> None:
        if world.server.version == 3:
            world.server.lease = backup

    world.on_sleep = restore
    with pytest.raises(WentBack, match="it is at resourceVersion 1 and was at 3"):
        await world.first.keep()
    assert world.first.is_held  # A successor does not know the lost writes.
    await kept_for(world, 60)
    assert world.first.is_held
