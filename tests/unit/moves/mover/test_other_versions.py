"""PodMoves whose status or spec another version of Reserver wrote."""

from typing import Any

import pytest

from reserver.errors import InvalidInput
from reserver.k8s.objects.objects import decode, encode
from reserver.moves import podmove, podmove_status
from reserver.moves.phases import MovePhase
from tests.unit.moves.api_server import MOVES, SEATS, Document
from tests.unit.moves.surge_world import SurgeWorld
from tests.unit.moves.world import World


def read(status: Any) -> podmove.MoveObject:
    metadata = {"name": "move", "namespace": "shop", "creationTimestamp": "2030-01-01T00:00:00Z"}
    made = {"metadata": metadata, "spec": {"pod": {"name": "web-0"}}, "status": status}
    return decode(podmove.MoveObject, encode(made))


@pytest.mark.parametrize("reason", ["Because", ""])
def test_a_reason_of_another_version_reads_as_none(reason: str) -> None:
    said = {"phase": "Landing", "reason": reason, "evictedAt": "2030-01-01T00:00:00Z"}
    status = podmove.read_object(read(said)).status
    assert (status.phase, status.reason) == (MovePhase.LANDING, None)


@pytest.mark.parametrize(
    ("field", "value"), [("phase", "Parking"), ("evictedAt", "soon"), ("evictedAt", 17)]
)
def test_a_status_that_this_version_cannot_read_is_refused_and_stays(
    field: str, value: Any
) -> None:
    made = read({"phase": "Landing", field: value})
    with pytest.raises(InvalidInput, match=r"^status"):
        podmove.read_object(made)
    assert podmove_status.has_begun(made.status)


@pytest.mark.parametrize(
    ("status", "stays"),
    [
        (None, False),
        ({"phase": "Pending"}, False),
        ({"phase": "Failed", "reason": "InvalidSpec"}, False),
        ({"phase": "Failed", "reason": "SeatRefused"}, True),
        ({"phase": "Reserving"}, True),
    ],
)
def test_the_status_of_a_move_that_has_begun_stays(status: Any, *, stays: bool) -> None:
    assert podmove_status.has_begun(read(status).status) is stays


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("status", {"phase": "Parking"}),
        ("status", {"reason": "WaitsForTide"}),
        ("spec", {"timeout": "1y"}),
        ("spec", {"mode": "ReserveTwice"}),
    ],
)
async def test_another_version_may_finish_a_move_that_this_one_cannot_read(
    world: World, part: str, change: Document
) -> None:
    """Its status was overwritten after the eviction, and nobody renewed the seat any more."""
    world.move()
    world.schedules = False
    while world.status.get("phase") != "Landing":
        await world.round()
    told: list[str] = []
    before = world.api.objects[f"{MOVES}/move"]
    world.api.put(MOVES, before | {part: before[part] | change})
    await world.start()
    assert world.reserver.features.mover is not None
    world.reserver.features.mover.subscribers.append(lambda known: told.append(known.told))
    await world.rounds(5, 1)
    assert world.status["evictedAt"] == before["status"]["evictedAt"]
    assert world.status["phase"] == (change.get("phase") or "Landing")
    assert (len(world.api.of(SEATS)), len(told)) == (1, 0 if "reason" in change else 1)
    world.api.put(MOVES, world.api.objects[f"{MOVES}/move"] | {part: before[part]})
    world.schedules = True
    assert (await world.settle())["reason"] == "Landed"


async def test_the_end_that_another_version_wrote_stays(world: World) -> None:
    world.move()
    await world.settle()
    moved = world.api.objects[f"{MOVES}/move"]
    said = moved["status"] | {"reason": "LandedTwice"}
    world.api.put(MOVES, moved | {"status": said})
    await world.start()
    await world.rounds(3)
    assert world.status == said


@pytest.mark.parametrize("restarts", [True, False])
async def test_the_copy_of_a_move_that_this_version_cannot_read_stays(*, restarts: bool) -> None:
    world = SurgeWorld()
    await world.start()
    world.becomes_ready = False
    world.move(mode="SurgeFirst")
    while not world.copies():
        await world.round()
    before = world.api.objects[f"{MOVES}/move"]
    world.api.put(MOVES, before | {"status": before["status"] | {"phase": "Parking"}})
    if restarts:
        await world.start()
    await world.rounds(5, 1)
    assert (len(world.copies()), len(world.marks())) == (1, 0)
    world.api.put(MOVES, world.api.objects[f"{MOVES}/move"] | {"status": before["status"]})
    world.becomes_ready = True
    assert (await world.settle())["reason"] == "Landed"
