"""Plans over gRPC: told in parts, one at a time, to who may see pods of all namespaces."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest

from reserver.client import CallFailed, Client
from reserver.cluster.pod import PodName
from reserver.rebalance.plan import Kept, Move
from reserver.rebalance.ways import Compat
from reserver.server.rpc.access import Access, call_of
from reserver.server.rpc.listen import serving
from reserver.server.rpc.refusal import Refusal
from reserver.server.rpc.service import Service
from reserver.wire.k8s.reviews import User
from reserver.wire.rebalance.channel import Planned
from reserver.wire.rebalance.document import MOST_BYTES
from tests.builders import NOW, state_of
from tests.unit.server.rpc.test_access import Nothing

MOVE = Move(
    pod=PodName("shop", "web-0"), uid="u", source="a", target=None, strategy="S", reason="r"
)
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
        self.asked: list[tuple[str, Compat]] = []
        self.parts = parts
        self.gate = asyncio.Event()
        self.gate.set()
        self.is_over = asyncio.Event()

    async def plan(self, policy: str, compat: Compat) -> AsyncGenerator[Planned]:
        self.asked.append((policy, compat))
        self.is_over.clear()
        try:
            for part in self.parts:
                yield part
                await self.gate.wait()
        finally:
            self.is_over.set()


@asynccontextmanager
async def served(planning: Planning) -> AsyncIterator[Client]:
    nothing: Any = Nothing()
    service = Service(
        state=state_of(),
        stores=nothing,
        extender=nothing,
        namespace="reserver-system",
        clock=lambda: NOW,
        access=None,
        obstacles=tuple,
        counted=nothing,
        past=nothing,
        planning=planning,
        moving=None,
        dump=bytes,
    )
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
    assert planning.asked == [("p", Compat.UPSTREAM)]


async def test_a_policy_has_a_bound_and_its_problems_are_named() -> None:
    planning = Planning(Planned(problems=("profiles: is no list",)))
    async with served(planning) as client:
        for policy in ("", "x" * (MOST_BYTES + 1)):
            assert (await failure(client, policy)).fields.keys() == {"policy"}
        assert not planning.asked
        found = await failure(client)
    assert (found.code, found.fields) == ("INVALID_ARGUMENT", {"policy": "profiles: is no list"})


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
