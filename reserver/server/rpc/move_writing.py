"""Writes PodMoves for those who call: all of a request or none, and once per request id."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from reserver.cluster.pod import PodName
from reserver.errors import ApiError, InvalidInput, NotReady, under
from reserver.migration.move import ALONE, MOST_IN_GROUP, Group
from reserver.server.rpc import refusal
from reserver.server.rpc.move_feed import Known, MoveFeed
from reserver.server.rpc.requested import Requests, digest_of
from reserver.v1 import move_pb2 as pb
from reserver.wire.k8s import names
from reserver.wire.k8s.objects import decode
from reserver.wire.migration import moveform, podmove, statusform

_AT_ONCE = 8
"""So many are written at once; bindings have the rest of the connections."""

_REMEMBERED_BYTES = 16 * 2**20
_LEAST_BYTES = 1024
"""What is remembered of one move beside what was asked for takes less."""

Document = Mapping[str, Any]


class Client(Protocol):
    """What calls the API server (`kube.api.client.ApiClient`)."""

    async def create(self, path: str, body: object) -> bytes:
        """Create an object."""

    async def patch(self, path: str, body: object) -> bytes:
        """Change an object."""

    async def delete(self, path: str, options: object) -> bytes:
        """Delete an object."""


@dataclass(frozen=True, slots=True)
class Begun:
    """A request to create that is under way, or done.

    Attributes:
        digest: of what was asked for.
        size: what is remembered of it at most, in bytes.
        task: ends with what was written, packed.
    """

    digest: bytes
    size: int
    task: asyncio.Task[list[bytes]]


class MoveWriting:
    """Writes PodMoves."""

    def __init__(self, client: Client, feed: MoveFeed, clock: Callable[[], float]) -> None:
        """Write with a client what a feed will show; `clock` gives unix seconds."""
        self._client = client
        self._feed = feed
        self._running: set[asyncio.Task[list[bytes]]] = set()
        self._requests: Requests[Begun] = Requests(_REMEMBERED_BYTES, clock)

    async def create(self, request: pb.CreateMovesRequest) -> list[pb.PodMove]:
        """Write the moves of a request, all or none.

        Raises:
            InvalidInput: a field is wrong.
            Refusal: a name is taken.
            ApiError: they cannot be written.
        """
        begun = self._requests.before(request)
        if begun is None:
            task = asyncio.create_task(self._all(_documents(request), request.request_id))
            self._running.add(task)
            size = 2 * request.ByteSize() + _LEAST_BYTES * len(request.moves)
            begun = Begun(digest_of(request), size, task)
            self._requests.remember(request, begun)
            task.add_done_callback(partial(self._ended, request, begun))
        packed = await asyncio.shield(begun.task)
        return [pb.PodMove.FromString(each) for each in packed]

    def _ended(
        self, request: pb.CreateMovesRequest, begun: Begun, task: asyncio.Task[list[bytes]]
    ) -> None:
        self._running.discard(task)
        if task.cancelled() or task.exception() is not None:
            self._requests.forget(request, begun)

    async def _all(self, documents: Sequence[Document], request_id: str) -> list[bytes]:
        free = asyncio.Semaphore(_AT_ONCE)

        async def one(index: int, document: Document) -> podmove.MoveObject | Known:
            async with free:
                return await self._one(document, request_id, f"moves[{index}].name")

        answers = await asyncio.gather(
            *(one(*each) for each in enumerate(documents)), return_exceptions=True
        )
        written = [each for each in answers if not isinstance(each, BaseException)]
        failures = [each for each in answers if isinstance(each, BaseException)]
        if failures:
            # Without an answer it may be written: who repeats the call goes on from there.
            final = (each for each in failures if not _may_be_written(each))
            failure = next(final, None)
            if failure is not None:
                await self._take_back(written)
            raise failure or failures[0]
        for each in written:
            await self._shown(each.metadata)
        return [_show(each).SerializeToString() for each in written]

    async def _one(
        self, document: Document, request_id: str, path: str
    ) -> podmove.MoveObject | Known:
        metadata = document["metadata"]
        name = PodName(metadata["namespace"], metadata["name"])
        try:
            answer = await self._client.create(podmove.collection(name.namespace), document)
        except ApiError as exc:
            if not exc.is_conflict:
                raise
        else:
            return decode(podmove.MoveObject, answer)
        there = await self._feed.until(name, lambda known: known is not None)
        if there is None:
            raise NotReady(f"there is a PodMove {name} that the watch does not show yet")
        written_by = (there.metadata.annotations or {}).get(moveform.REQUEST_ID)
        if not request_id or written_by != request_id:
            raise refusal.taken(f"{name}: the name is taken", [(path, "is taken")])
        return there

    async def _take_back(self, written: Sequence[podmove.MoveObject | Known]) -> None:
        """Delete what was written now of a group that is not whole: none of it has begun."""
        for each in written:
            if not isinstance(each, podmove.MoveObject):
                continue  # By an earlier call: who makes this one may have no right to delete it.
            name = PodName(each.metadata.namespace, each.metadata.name)
            with suppress(ApiError):  # Without the others it fails at its deadline.
                options = {"preconditions": {"uid": each.metadata.uid}}
                await self._client.delete(podmove.path(name), options)

    async def _shown(self, metadata: podmove.MoveMetadata) -> None:
        """Wait until the watch shows a PodMove that was written."""

        def is_shown(known: Known | None) -> bool:
            return known is not None and known.metadata.revision >= metadata.revision

        await self._feed.until(PodName(metadata.namespace, metadata.name), is_shown)

    async def pause(self, name: PodName, uid: str, *, paused: bool) -> pb.PodMove:
        """Have a move begin nothing new, or go on.

        Args:
            name: of the PodMove.
            uid: only if it has this one, if it is not empty.
            paused: whether it stops.

        Raises:
            Refusal: there is no such move.
            ApiError: it cannot be written.
        """
        precondition = {"metadata": {"uid": uid}} if uid else {}
        body = precondition | {"spec": {"paused": paused}}
        try:
            answer = await self._client.patch(podmove.path(name), body)
        except ApiError as exc:
            raise _told(exc, name) from exc
        written = decode(podmove.MoveObject, answer)
        await self._shown(written.metadata)
        return _show(written)

    async def delete(self, name: PodName, uid: str) -> None:
        """Call a move off; `uid` as `pause` has it.

        Raises:
            Refusal: there is no such move.
            ApiError: it cannot be deleted.
        """
        known = self._feed.known(name)
        options = {"preconditions": {"uid": uid}} if uid else {}
        try:
            await self._client.delete(podmove.path(name), options)
        except ApiError as exc:
            raise _told(exc, name) from exc
        gone = known.metadata.uid if known else uid
        await self._feed.until(name, lambda now: now is None or now.metadata.uid != gone)


def _documents(request: pb.CreateMovesRequest) -> list[Document]:
    """Return what a request asks for, as it is written.

    Raises:
        InvalidInput: a field is wrong.
    """
    names.check_label(request.namespace, "namespace", "a namespace's name")
    number = len(request.moves)
    if not 0 < number <= MOST_IN_GROUP:
        remedy = f"send 1 to {MOST_IN_GROUP} at once"
        raise InvalidInput("moves", f"there are {number} moves", remedy)
    group, documents = _group(request), dict[str, Document]()
    for index, entry in enumerate(request.moves):
        with under(f"moves[{index}]"):
            names.check_subdomain(entry.name, "name", "a PodMove's name")
            if entry.name in documents:
                raise InvalidInput("name", f"{entry.name} is given twice", "give each name once")
            documents[entry.name] = moveform.document(
                request.namespace, entry.name, entry.spec, group, request.request_id
            )
    return list(documents.values())


def _group(request: pb.CreateMovesRequest) -> Group:
    number, said = len(request.moves), request.group
    if not request.HasField("group"):
        if number > 1:
            remedy = "name one, so that none begins before all are written"
            raise InvalidInput("group", f"{number} moves have none", remedy)
        return ALONE
    size = said.size or number
    if not said.name:
        raise InvalidInput("group.name", "is empty", "write what its members have in common")
    if number > 1 and size < number:
        remedy = "leave it out, or count the members that other calls write as well"
        raise InvalidInput("group.size", f"{size} is less than {number} moves", remedy)
    return Group(said.name, size, said.across_namespaces)


def _may_be_written(error: BaseException) -> bool:
    return isinstance(error, NotReady) or (isinstance(error, ApiError) and not error.is_definite)


def _told(error: ApiError, name: PodName) -> Exception:
    if error.is_absent:
        return refusal.no_such_move(name)
    return refusal.changed_meanwhile(name) if error.is_conflict else error


def _show(item: podmove.MoveObject | Known) -> pb.PodMove:
    if isinstance(item, podmove.MoveObject):
        said = statusform.said(item.status)
        return moveform.show(item.metadata, bytes(item.spec), said)
    return moveform.show(item.metadata, item.spec, item.said)
