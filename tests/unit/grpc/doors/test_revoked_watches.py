"""Watches whose caller loses the right to them."""

from __future__ import annotations

from typing import Any

import grpc
import pytest

from reserver.errors import ApiError
from reserver.grpc.access import UNCONFIRMED_S, CallAccess, call_of
from reserver.v1 import reservation_pb2 as pb
from reserver.v1.reservation_pb2_grpc import ReservationServiceStub
from tests.unit.grpc.doors.served import ROOT, begun, channel, served
from tests.unit.grpc.test_access import Reviewer, code_of
from tests.waiting import until


class Revoking(Reviewer):
    """Revokes a token or a right."""

    def __init__(self) -> None:
        super().__init__()
        self.is_known = self.may_watch = True
        self.reviews = 0

    async def authenticate(self, token: str, peer: str) -> Any:
        self.reviews += 1
        return await super().authenticate(token, peer) if self.is_known else None

    async def may(self, *_: Any) -> bool:
        return self.may_watch


@pytest.mark.parametrize(
    ("taken", "code"),
    [
        ("is_known", grpc.StatusCode.UNAUTHENTICATED),
        ("may_watch", grpc.StatusCode.PERMISSION_DENIED),
    ],
)
async def test_a_watch_ends_with_the_right_to_it(taken: str, code: grpc.StatusCode) -> None:
    reviewer = Revoking()
    async with served(reviewer, again_s=0.02) as address, channel(address) as made:
        stub = ReservationServiceStub(made)
        watch = await begun(stub.Watch(pb.WatchRequest(), metadata=ROOT))
        before = reviewer.reviews
        await until(lambda: reviewer.reviews >= before + 3)
        assert not watch.done()
        setattr(reviewer, taken, False)
        assert await code_of(watch.read()) is code


async def test_a_watch_goes_on_while_the_api_server_is_away() -> None:
    reviewer = Revoking()
    async with served(reviewer, again_s=0.02) as address, channel(address) as made:
        stub = ReservationServiceStub(made)
        watch = await begun(stub.Watch(pb.WatchRequest(), metadata=ROOT))
        reviewer.answers = False
        before = reviewer.reviews
        await until(lambda: reviewer.reviews >= before + 3)
        assert not watch.done()
        reviewer.answers, reviewer.is_known = True, False
        assert await code_of(watch.read()) is grpc.StatusCode.UNAUTHENTICATED


async def test_a_watch_does_not_go_on_for_ever_without_the_api_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("reserver.grpc.access.UNCONFIRMED_S", 0.0)
    reviewer = Reviewer()
    reviewer.answers = False
    access = CallAccess(reviewer, again_s=0.0)
    with pytest.raises(ApiError):
        await access.last(call_of("/reserver.v1.ReservationService/Watch"), dict(ROOT), "p")
    assert UNCONFIRMED_S >= 60
