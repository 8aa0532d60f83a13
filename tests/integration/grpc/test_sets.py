"""Sets over gRPC: created whole, or refused without a trace."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest

from reserver.base.pacer import Pacer
from reserver.grpc import creation
from reserver.v1 import reservation_pb2 as pb
from tests.integration.grpc.calls import entries, refused, spec
from tests.integration.world import World


async def test_a_set_is_created_whole(world: World) -> None:
    wanted = entries(spec("worker-1", cpu="3"), spec("worker-2", cpu="3"))
    answer = await world.api.CreateSet(pb.CreateSetRequest(reservations=wanted))
    assert [each.status.backed for each in answer.reservations] == [True, True]
    assert sorted(await world.written()) == ["part-0", "part-1"]


async def test_a_set_of_which_one_does_not_fit_leaves_nothing(world: World) -> None:
    await world.api.Create(pb.CreateRequest(name="first", spec=spec("worker-2", cpu="3")))
    wanted = entries(spec("worker-1", cpu="3"), spec("worker-2", cpu="3"))
    code, reason, fields = await refused(
        world.api.CreateSet(pb.CreateSetRequest(reservations=wanted))
    )
    assert (code, reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "NO_ROOM")
    assert fields == {"reservations[1]": "worker-2 has too little cpu (1 of 3) free"}
    assert list(await world.written()) == ["first"]
    assert not world.running.assembly.ledger.held_on("worker-1")


@pytest.mark.parametrize(
    "impossible",
    [
        [spec("worker-1", cpu="400")],
        [spec("nowhere")],
        [spec("worker-1", cpu="3"), spec("worker-1", cpu="3")],
    ],
    ids=["too-large", "no-node", "too-much-together"],
)
async def test_a_set_that_can_never_fit_is_told_so(world: World, impossible: Any) -> None:
    request = pb.CreateSetRequest(reservations=entries(*impossible))
    code, reason, _ = await refused(world.api.CreateSet(request))
    assert (code, reason) == (grpc.StatusCode.FAILED_PRECONDITION, "CAN_NEVER_FIT")
    assert not len(world.running.assembly.ledger)


async def test_a_refusal_of_much_and_of_long_words_arrives(world: World) -> None:
    request = pb.CreateSetRequest(reservations=entries(*[spec("n" * 200)] * 500))
    code, reason, fields = await refused(world.api.CreateSet(request))
    assert (code, reason) == (grpc.StatusCode.FAILED_PRECONDITION, "CAN_NEVER_FIT")
    assert "reservations[0]" in fields
    code, _, fields = await refused(
        world.api.Create(pb.CreateRequest(name="\N{SNOWMAN}" * 2**18, spec=spec()))
    )
    assert (code, list(fields)) == (grpc.StatusCode.INVALID_ARGUMENT, ["name"])
    code, reason, _ = await refused(world.api.Create(pb.CreateRequest(name="n" * 2**21)))
    assert (code, reason) == (grpc.StatusCode.INVALID_ARGUMENT, "MESSAGE_TOO_LONG")
    large = spec()
    large.owners.extend(pb.Owner(pod=pb.PodOwner(name="x" * 200)) for _ in range(5000))
    code, *_ = await refused(world.api.Create(pb.CreateRequest(name="large", spec=large)))
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert not len(world.running.assembly.ledger)


async def test_sets_from_many_clients_never_hold_more_than_there_is(world: World) -> None:
    async def one(number: int) -> bool:
        wanted = entries(spec("worker-1"), spec("worker-2"), prefix=f"set{number}")
        call = world.api.CreateSet(pb.CreateSetRequest(reservations=wanted))
        code = await call.code()
        assert code in {grpc.StatusCode.OK, grpc.StatusCode.RESOURCE_EXHAUSTED}
        return code is grpc.StatusCode.OK

    created = await asyncio.gather(*map(one, range(30)))
    assert sum(created) == 4
    assert len(await world.written()) == 8
    for node in ("worker-1", "worker-2"):
        assert world.running.assembly.ledger.held_on(node)["cpu"] == 4000


async def test_a_set_gives_way_after_each_of_its_reservations(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    ways: list[None] = []

    class Counted(Pacer):
        async def give_way(self) -> bool:
            ways.append(None)
            return await super().give_way()

    monkeypatch.setattr(creation, "Pacer", Counted)
    wanted = entries(*[spec(cpu="1m")] * 50)
    await world.api.CreateSet(pb.CreateSetRequest(reservations=wanted))
    assert len(ways) >= 5 * 50  # Written, read, judged, shown at first and at last.
