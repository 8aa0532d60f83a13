"""Reserver is away, or its clock is set forward, while an evicted pod waits for its node."""

from __future__ import annotations

import pytest

from reserver.moves.attendance import AWAY_S, Attendance
from tests.unit.moves.api_server import SEATS
from tests.unit.moves.test_closing import fill, until
from tests.unit.moves.world import World


async def landing(within: str = "10m") -> World:
    """Return three nodes, and a move to worker-2 whose replacement waits for its node."""
    world = World(nodes=3)
    await world.start()
    world.schedules = False
    world.move(timeout=within)
    await until(world, "Landing")
    await world.round()
    return world


def remove_seat(world: World) -> None:
    """Remove the seat, as the cleaner does once it has expired."""
    (seat,) = world.api.of(SEATS)
    world.api.remove(f"{SEATS}/{seat['metadata']['name']}")


def seats(world: World) -> list[str]:
    """Return the nodes of the seats that the replacement may take."""
    (pod,) = (pod for pod in world.reserver.state.pods.values() if pod.name.name == "web-1")
    return [seat.node for seat in world.reserver.state.ledger.seats(pod)]


@pytest.mark.parametrize("restarts", [True, False])
@pytest.mark.parametrize(("within", "away_s"), [("30s", 61), ("10m", 700), ("10m", 1200)])
async def test_an_evicted_pod_has_its_seat_and_time_to_land_after_an_outage(
    within: str, away_s: float, *, restarts: bool
) -> None:
    """The time to land was over, and the seat was released."""
    world = await landing(within)
    world.api.now += away_s
    if restarts:
        await world.start()
    await world.rounds(6, 1)
    assert (world.status["phase"], seats(world)) == ("Landing", ["worker-2"])
    world.schedules = True
    assert (await world.settle())["reason"] == "Landed"


@pytest.mark.parametrize("taken", [(), ("worker-2",)])
async def test_a_seat_that_expired_in_an_outage_is_written_again_where_there_is_room(
    taken: tuple[str, ...],
) -> None:
    world = await landing()
    world.api.now += 7200
    for node in taken:
        fill(world, node)
    await world.start()
    await world.round()
    remove_seat(world)
    await world.rounds(12, 1)
    assert (world.status["phase"], world.status["reason"]) == ("Landing", "WaitsForReplacement")
    assert seats(world)
    assert not set(taken).intersection(seats(world))
    world.schedules = True
    await world.settle()
    assert world.status["to"] not in {"worker-1", *taken}


async def test_the_time_to_land_ends_also_after_an_outage() -> None:
    world = await landing("30s")
    world.api.now += 61
    await world.start()
    await world.rounds(29, 1)
    assert world.status["phase"] == "Landing"
    await world.rounds(4, 1)
    assert world.status["reason"] == "DeadlineExceeded"
    assert not world.api.of(SEATS)


@pytest.mark.parametrize(
    ("gap_s", "since"), [(0.0, 0.0), (AWAY_S, 0.0), (AWAY_S + 1, AWAY_S + 1), (-1.0, -1.0)]
)
def test_who_decides_no_more_for_a_minute_was_away(gap_s: float, since: float) -> None:
    attendance = Attendance()
    assert attendance.at(1000.0) == 1000.0
    assert attendance.at(1000.0 + gap_s) == 1000.0 + since
