"""A watch continues after its stream broke."""

from __future__ import annotations

from typing import Any

import grpc
import pytest

from reserver.client import CallFailed, ChangeKind
from reserver.client.connection import Attempts, ConnectionTerms
from reserver.client.following import Following
from reserver.v1 import reservation_pb2 as pb


class Broken:
    """An error of either channel."""

    def __init__(self, code: grpc.StatusCode) -> None:
        self._code = code

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return "gone"

    def trailing_metadata(self) -> Any:
        return ()


def message(kind: str, name: str = "", token: str = "") -> pb.WatchResponse:
    reservation = pb.Reservation(name=name, id=f"shop/{name}")
    return pb.WatchResponse(kind=f"KIND_{kind}", reservation=reservation, resume_token=token)


def following(notified: list[str] | None = None) -> tuple[Following, pb.WatchRequest]:
    def note(error: CallFailed, *_: float) -> None:
        if notified is not None:
            notified.append(error.code)

    request = pb.WatchRequest()
    return Following(request, ConnectionTerms(address="a:1", retrying=note)), request


def seen(one: Following, *messages: pb.WatchResponse) -> list[tuple[ChangeKind, str]]:
    return [
        (change.kind, change.reservation.name) for each in messages for change in one.changes(each)
    ]


def test_a_broken_stream_is_resumed_where_it_was() -> None:
    notified: list[str] = []
    one, request = following(notified)
    one.begins()
    assert seen(one, message("ADDED", "a"), message("BOOKMARK", token="7")) == [
        (ChangeKind.ADDED, "a")
    ]
    one.breaks(Broken(grpc.StatusCode.UNAVAILABLE), 100.0)
    assert (request.resume_token, notified) == ("7", ["UNAVAILABLE"])
    assert 0 < one.pause_s() <= 0.1


def test_what_went_while_the_stream_was_broken_for_too_long_is_shown_as_deleted() -> None:
    one, request = following()
    one.begins()
    seen(one, message("ADDED", "a"), message("ADDED", "b"), message("BOOKMARK", token="7"))
    one.breaks(Broken(grpc.StatusCode.OUT_OF_RANGE), 100.0)
    assert not request.resume_token
    one.begins()
    reported = seen(one, message("ADDED", "b"), message("BOOKMARK", token="9"))
    assert reported == [(ChangeKind.ADDED, "b"), (ChangeKind.DELETED, "a")]


def test_a_watch_that_is_not_allowed_ends() -> None:
    one, _ = following()
    with pytest.raises(CallFailed, match="PERMISSION_DENIED"):
        one.breaks(Broken(grpc.StatusCode.PERMISSION_DENIED), 100.0)


def test_a_call_is_repeated_until_nobody_need_be_there_any_more() -> None:
    attempts = Attempts(ConnectionTerms(address="a:1", deadline_s=10, connect_s=3), began=100.0)
    assert attempts.left_s(104.0) == 6.0
    assert attempts.left_s(111.0) == 0.0
    assert 0 < attempts.pause_s(Broken(grpc.StatusCode.UNAVAILABLE), 100.0) <= 0.1
    with pytest.raises(CallFailed, match="UNAVAILABLE: gone"):
        attempts.pause_s(Broken(grpc.StatusCode.UNAVAILABLE), 103.0)
    with pytest.raises(CallFailed, match="NOT_FOUND"):
        attempts.pause_s(Broken(grpc.StatusCode.NOT_FOUND), 100.0)
