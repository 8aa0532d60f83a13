"""Calls that waited for the same answer get their turns one after the other."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import grpc

from reserver.grpc.access import CallAccess
from reserver.grpc.service import serving
from reserver.k8s.objects.reviews import User
from reserver.v1 import reservation_pb2 as pb
from reserver.v1.reservation_pb2_grpc import ReservationServiceStub
from tests.turns import turns
from tests.unit.grpc.doors.served import ROOT, channel
from tests.unit.grpc.services import Nothing, service_of
from tests.unit.grpc.test_access import Reviewer, code_of
from tests.waiting import until

CALLS = 20


class _SharedReview(Reviewer):
    """Answers all questions at the same moment, as one review of equal questions does."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0
        self.is_answered = asyncio.Event()

    async def may(self, user: User, verb: str, resource: str, name: str) -> bool:
        self.asked += 1
        await self.is_answered.wait()
        return await super().may(user, verb, resource, name)


async def test_calls_that_share_a_review_are_not_answered_in_one_iteration() -> None:
    reviewer, found = _SharedReview(), Counter[int]()
    async with turns() as turn:

        class Stores(Nothing):
            def find(self, _: str) -> None:
                found[turn()] += 1

        service = service_of(stores=Stores(), access=CallAccess(reviewer))
        site = serving(("127.0.0.1", 0), service, tuple, 1.0)
        async with site as address, channel(address) as made:
            get: Any = ReservationServiceStub(made).Get
            calls = [get(pb.GetRequest(name="a"), metadata=ROOT) for _ in range(CALLS)]
            await until(lambda: reviewer.asked == CALLS)
            reviewer.is_answered.set()
            codes = {await code_of(call) for call in calls}
    assert codes == {grpc.StatusCode.NOT_FOUND}
    assert found.total() == CALLS
    assert max(found.values()) == 1
