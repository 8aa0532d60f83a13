"""Plans over gRPC: told in parts, one at a time, to who may see pods of all namespaces."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import grpc
import pytest

from reserver.client import CallFailed, Client, MakeRoom, PodOwner, Spec
from reserver.client.spec_message import write_spec
from reserver.cluster.pod import PodName
from reserver.errors import InvalidInput
from reserver.rebalance.modes import Compat
from reserver.rebalance.plan import Kept, Landing, Move
from reserver.server.rpc.access import Access, call_of
from reserver.server.rpc.listen import serving
from reserver.server.rpc.rebalance import MOST_WANTED, Rebalance
from reserver.server.rpc.refusal import Refusal
from reserver.v1 import rebalance_pb2 as pb
from reserver.wire.k8s.reviews import User
from reserver.wire.rebalance.channel import Planned, Question, Room, line, read
from reserver.wire.rebalance.document import MOST_BYTES
from tests.builders import NOW
from tests.unit.server.rpc.services import service_of

MOVE = Move(
    pod=PodName("shop", "web-0"), uid="u", source="a", target=None, strategy="S", reason="r"
)
SPEC = Spec(owners=(PodOwner("shop", "job-0"),), slots=2, resources={"cpu": "2"})
KEPT = Kept(pod=PodName("shop", "web-1"), node="a", strategy="S", why="w")


class Planning:
    """Plans as it is told.

    Attributes:
        asked: what was asked for.
        parts: what it says.
        gate: it waits for it after the first part.
        is_over: the last plan has ended, or was ended.
    """

    def __init__(self, *parts: Planned) -> None:
        self.asked: list[tuple[str, Compat, Room | None]] = []
        self.parts = parts
        self.gate = asyncio.Event()
        self.gate.set()
        self.is_over = asyncio.Event()

    async def plan(self, policy: str, compat: Compat, room: Room | None) -> AsyncGenerator[Planned]:
        self.asked.append((policy, compat, room))
        self.is_over.clear()
        try:
            for part in self.parts:
                yield part
                await self.gate.wait()
        finally:
            self.is_over.set()


@asynccontextmanager
async def served(planning: Planning) -> AsyncIterator[Client]:
    service = service_of(planning=planning)
    async with (
        serving(("127.0.0.1", 0), service, tuple, 1.0) as address,
        Client(address) as client,
    ):
        yield client


async def failure(client: Client, policy: str = "p", **options: Any) -> CallFailed:
    with pytest.raises(CallFailed) as caught:
        await client.rebalance.plan(policy, **options)
    return caught.value


async def test_a_plan_comes_in_parts_with_what_is_being_done() -> None:
    last = Planned(more_kept=3, notes=("n",), warnings=("v",), complete=True)
    parts = (Planned(progress="planning"), Planned(moves=(MOVE,)), Planned(kept=(KEPT,)), last)
    planning, said = Planning(*parts), list[str]()
    async with served(planning) as client:
        plan = await client.rebalance.plan("p", Compat.UPSTREAM, progress=said.append)
    assert said == ["planning"]
    assert (plan.moves, plan.kept, plan.more_kept) == ((MOVE,), (KEPT,), 3)
    assert (plan.notes, plan.warnings) == (("n",), ("v",))
    assert planning.asked == [("p", Compat.UPSTREAM, None)]


async def test_a_policy_has_a_bound_and_its_problems_are_named() -> None:
    planning = Planning(Planned(problems=(("policy", "profiles: is no list"),)))
    async with served(planning) as client:
        for policy in ("", "x" * (MOST_BYTES + 1)):
            assert (await failure(client, policy)).fields.keys() == {"policy"}
        assert not planning.asked
        found = await failure(client)
    assert (found.code, found.fields) == ("INVALID_ARGUMENT", {"policy": "profiles: is no list"})


async def test_room_is_asked_for_pods_that_wait_and_for_what_nobody_has_created() -> None:
    web, job = Landing(PodName("shop", "web-0"), "a"), Landing(PodName("shop", "job#1"), "b")
    parts = (Planned(landings=(web,)), Planned(landings=(job,)))
    planning = Planning(*parts, Planned(fewest_moves=2, complete=True))
    asked = MakeRoom(pods=[("shop", "web-0")], reservations={"job": SPEC}, together=True)
    async with served(planning) as client:
        plan = await client.rebalance.plan(make_room=asked)
        await client.rebalance.plan("p", make_room=MakeRoom())
    assert (plan.landings, plan.fewest_moves) == ((web, job), 2)
    (policy, _, room), (_, _, everybody) = planning.asked
    assert room is not None
    assert (policy, room.pods, room.together) == ("", (PodName("shop", "web-0"),), True)
    (slots,) = room.slots
    assert [str(pod.name) for pod in slots.pods()] == ["shop/job#0", "shop/job#1"]
    assert {pod.requests["cpu"] for pod in slots.pods()} == {2000}
    question = Question(policy="", room=room, compat=Compat.PLAN, kubeconfig="", held={})
    assert read(Question, line(question)) == question  # So it reaches the process that plans.
    assert everybody == Room()


@pytest.mark.parametrize(
    ("asked", "field", "remedy"),
    [
        ({"pods": [("shop", "web")] * (MOST_WANTED + 1)}, "makeRoom", "at most"),
        (
            {"pods": [("shop", "web")], "reservations": {"job": replace(SPEC, slots=MOST_WANTED)}},
            "makeRoom",
            "at most",
        ),
        (
            {"reservations": {"Job": SPEC}},
            "makeRoom.reservations[0].name",
            "use lower case letters",
        ),
        (
            {"reservations": {"job": replace(SPEC, resources={"cpu": "many"})}},
            "makeRoom.reservations[0].spec.resources.cpu",
            "many",
        ),
        (
            {"reservations": {"job": replace(SPEC, description="x" * 600_000)}},
            "makeRoom.reservations[0].spec",
            "too many",
        ),
    ],
)
async def test_what_room_is_asked_for_has_bounds(
    asked: dict[str, Any], field: str, remedy: str
) -> None:
    planning = Planning()
    async with served(planning) as client:
        found = await failure(client, "", make_room=MakeRoom(**asked))
    assert (found.code, list(found.fields)) == ("INVALID_ARGUMENT", [field])
    assert remedy in found.fields[field]
    assert not planning.asked


async def test_room_that_cannot_be_made_is_named() -> None:
    where, why = "makeRoom.pods[0]", "shop/web-0 does not wait for a node; leave it out"
    async with served(Planning(Planned(problems=((where, why),)))) as client:
        assert (await failure(client, "", make_room=MakeRoom())).fields == {where: why}
        found = await failure(client, "", compat=Compat.UPSTREAM, make_room=MakeRoom())
    assert found.fields.keys() == {"judging"}


async def test_a_name_is_given_to_one_reservation() -> None:
    wanted = pb.WantedReservation(name="job", spec=write_spec(SPEC))
    request = pb.PlanRequest(make_room=pb.MakeRoom(reservations=[wanted, wanted]))
    planning = Planning()
    rebalance = Rebalance(planning, lambda: NOW, "reserver-system")
    context: Any = None
    with pytest.raises(InvalidInput, match=r"makeRoom.reservations\[1\].name: job is given twice"):
        await anext(aiter(rebalance.Plan(request, context)))


@pytest.mark.parametrize(
    ("part", "code"),
    [
        (Planned(failure="403 Forbidden", is_refused=True), "FAILED_PRECONDITION"),
        (Planned(failure="no answer"), "UNAVAILABLE"),
        (Planned(progress="planning"), "UNAVAILABLE"),  # And then nothing more.
    ],
)
async def test_why_there_is_no_plan_is_told(part: Planned, code: str) -> None:
    async with served(Planning(part)) as client:
        assert (await failure(client)).code == code


async def test_one_plan_is_made_at_a_time_and_ends_with_its_deadline() -> None:
    planning = Planning(Planned(progress="planning"), Planned(complete=True))
    planning.gate.clear()
    async with served(planning) as client:
        begun = asyncio.Event()
        first = asyncio.create_task(
            client.rebalance.plan("p", deadline_s=1.0, progress=lambda _: begun.set())
        )
        await begun.wait()
        assert (await failure(client)).reason == "TOO_MANY"
        with pytest.raises(CallFailed, match="DEADLINE"):
            await first
        await planning.is_over.wait()
        planning.gate.set()
        assert (await client.rebalance.plan("p")).moves == ()


async def test_who_plans_may_do_so_in_all_namespaces() -> None:
    asked = []

    class Reviewer:
        async def may(self, user: User, verb: str, resource: str, name: str) -> bool:  # noqa: ARG002
            asked.append((verb, resource, name))
            return False

    reviewer: Any = Reviewer()
    call = call_of("/reserver.v1.RebalanceService/Plan")
    with pytest.raises(Refusal) as caught:
        await Access(reviewer).require(User("somebody", "u", ()), call, "")
    assert caught.value.code is grpc.StatusCode.PERMISSION_DENIED
    assert asked == [("get", "reservations/plan", "/")]
