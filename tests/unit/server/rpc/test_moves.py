"""Moves over gRPC: what the caller has to be allowed, and what is written when something fails."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from reserver.cluster.pod import PodName
from reserver.errors import ApiError, ReserverError
from reserver.server.rpc.access import Access, call_of
from reserver.server.rpc.move_feed import Known, MoveFeed
from reserver.server.rpc.move_writing import MoveWriting
from reserver.server.rpc.refusal import Refusal
from reserver.v1 import move_pb2 as pb
from reserver.wire.k8s.objects import encode
from reserver.wire.k8s.reviews import User
from tests.builders import NOW


@pytest.mark.parametrize(
    ("method", "request_", "asked"),
    [
        ("CreateMoves", pb.CreateMovesRequest(namespace="shop"), ("create", "shop/")),
        ("GetMove", pb.GetMoveRequest(namespace="shop", name="a"), ("get", "shop/a")),
        ("ListMoves", pb.ListMovesRequest(namespace="shop"), ("list", "shop/")),
        ("ListMoves", pb.ListMovesRequest(), ("list", "/")),
        ("WatchMoves", pb.WatchMovesRequest(namespace="shop"), ("watch", "shop/")),
        ("UpdateMove", pb.UpdateMoveRequest(namespace="shop", name="a"), ("patch", "shop/a")),
        ("DeleteMove", pb.DeleteMoveRequest(namespace="shop", name="a"), ("delete", "shop/a")),
    ],
)
async def test_a_caller_needs_the_right_that_kubectl_would_need(
    method: str, request_: Any, asked: tuple[str, str]
) -> None:
    questions = []

    class Reviewer:
        async def may(self, user: User, verb: str, resource: str, name: str) -> bool:  # noqa: ARG002
            questions.append((verb, resource, name))
            return False

    reviewer: Any = Reviewer()
    call = call_of(f"/reserver.v1.MoveService/{method}")
    with pytest.raises(Refusal, match="may not"):
        await Access(reviewer).require(User("u", "", ()), call, call.target(request_))
    verb, target = asked
    assert questions == [(verb, "podmoves", target)]
    assert call.writes == (verb in {"create", "patch", "delete"})


class Nowhere:
    """Moves that no watch shows."""

    def get(self, _: PodName) -> Known | None:
        return None


class Api:
    """An API server that answers as it is told.

    Attributes:
        answers: what creating a PodMove raises, by its name.
        written: names, in order; without those that were deleted.
        creations: how often it was asked to create.
        asked: set once it was.
        gate: it waits for it before it answers.
    """

    def __init__(self, **answers: ApiError) -> None:
        self.answers = answers
        self.written: list[str] = []
        self.creations = 0
        self.asked = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()

    async def create(self, path: str, body: Any) -> bytes:  # noqa: ARG002
        self.creations += 1
        self.asked.set()
        await self.gate.wait()
        name = body["metadata"]["name"]
        if name in self.answers:
            raise self.answers[name]
        self.written.append(name)
        return encode(body | {"metadata": body["metadata"] | {"uid": f"uid-{name}"}})

    async def patch(self, path: str, body: object) -> bytes:
        raise NotImplementedError

    async def delete(self, path: str, options: Any) -> bytes:
        name = path.rpartition("/")[2]
        assert options == {"preconditions": {"uid": f"uid-{name}"}}
        self.written.remove(name)
        return b"{}"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reserver.server.rpc.move_feed.SHOWN_S", 0.0)


def writing(api: Api) -> MoveWriting:
    return MoveWriting(api, MoveFeed(Nowhere()), lambda: NOW)


def group(*names: str) -> pb.CreateMovesRequest:
    moves = [
        pb.CreateMovesRequest.Entry(name=name, spec=pb.MoveSpec(pod=pb.MovedPod(name=name)))
        for name in names
    ]
    said = pb.MoveGroup(name="g")
    return pb.CreateMovesRequest(namespace="shop", moves=moves, group=said, request_id="r")


@pytest.mark.parametrize(
    ("error", "left"),
    [
        (ApiError(403, "Forbidden", "quota"), []),
        (ApiError(500, "InternalError", "a webhook"), ["a", "c"]),
        (ApiError(0, "", "no answer"), ["a", "c"]),
    ],
)
async def test_what_was_refused_is_taken_back_and_what_may_be_written_is_repeated(
    error: ApiError, left: list[str]
) -> None:
    api = Api(b=error)
    write = writing(api)
    with pytest.raises(ApiError) as caught:
        await write.create(group("a", "b", "c"))
    assert caught.value is error
    assert api.written == left
    api.answers.clear()
    api.written.clear()
    moves = await write.create(group("a", "b", "c"))  # The id is free again.
    assert [each.uid for each in moves] == ["uid-a", "uid-b", "uid-c"]


async def test_who_stops_waiting_does_not_undo_it() -> None:
    api = Api()
    api.gate.clear()
    write = writing(api)
    first = asyncio.create_task(write.create(group("a")))
    await api.asked.wait()
    first.cancel()
    second = asyncio.create_task(write.create(group("a")))
    api.gate.set()
    (move,) = await second
    assert (move.uid, api.creations, api.written) == ("uid-a", 1, ["a"])


async def test_a_name_whose_owner_is_not_seen_yet_is_asked_for_again() -> None:
    api = Api(a=ApiError(409, "AlreadyExists", "it is there"))
    with pytest.raises(ReserverError, match="does not show yet"):
        await writing(api).create(group("a"))


async def test_a_group_may_be_larger_than_one_call_writes_and_never_smaller() -> None:
    api = Api()
    request = group("a", "b")
    request.group.size = 5
    moves = await writing(api).create(request)
    assert {each.spec.group.size for each in moves} == {5}
    request.group.size = 1
    request.request_id = "other"
    with pytest.raises(ReserverError, match=r"group\.size"):
        await writing(api).create(request)
