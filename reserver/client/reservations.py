"""The calls of ReservationService: create, read, watch, change and release reservations."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import grpc

from reserver.client import messages
from reserver.client.call_errors import CallFailed
from reserver.client.capacity import Capacity
from reserver.client.connection import Connection
from reserver.client.following import follow
from reserver.client.values import (
    EVERYTHING,
    Change,
    PastReservation,
    ReservationInfo,
    Selection,
    Spec,
)
from reserver.reservations.enums import Phase
from reserver.v1 import reservation_pb2 as pb
from reserver.v1.reservation_pb2_grpc import ReservationServiceStub


class ReservationCalls:
    """The calls about reservations, on any connection.

    Attributes:
        capacity: the calls about capacity.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._stub: Any = ReservationServiceStub(connection.channel)
        self._call = connection.call
        self.capacity = Capacity(connection)

    async def create(
        self,
        name: str,
        spec: Spec,
        *,
        request_id: str = "",
        no_wait: bool = False,
        labels: Mapping[str, str] | None = None,
        namespace: str = "",
    ) -> ReservationInfo:
        """Create a reservation and return once its hold is in force.

        Args:
            name: the name of the reservation.
            spec: the spec of the reservation.
            request_id: an id that lets a restarted program repeat the call; empty for a new one.
            no_wait: refuse the reservation if it is not backed at once.
            labels: the labels of its object; a server that writes ConfigMaps refuses labels.
            namespace: the namespace of its object; empty for Reserver's own. A server that writes
                ConfigMaps ignores it.

        Raises:
            CallFailed: the reservation was not created, or the result is unknown; repeating the
                call with the same `request_id` is safe. With `no_wait` as for `create_set`.
        """
        request = pb.CreateRequest(
            name=name,
            spec=messages.write_spec(spec),
            request_id=request_id or uuid4().hex,
            no_wait=no_wait,
            labels=labels,
            namespace=namespace,
        )
        return await self._shown(self._stub.Create, request)

    async def create_set(
        self,
        specs: Mapping[str, Spec],
        *,
        request_id: str = "",
        labels: Mapping[str, Mapping[str, str]] | None = None,
        namespace: str = "",
    ) -> tuple[ReservationInfo, ...]:
        """Create several reservations: all of them, backed, or none.

        Args:
            specs: the specs, by name of the reservation.
            request_id: as for `create`.
            labels: the labels of the objects, by name of the reservation.
            namespace: the namespace of all objects, as for `create`.

        Raises:
            CallFailed: as for `create`; ``RESOURCE_EXHAUSTED`` if the room is taken at present, or
                a quota is exceeded; ``FAILED_PRECONDITION`` if a reservation can never fit.
        """
        entries = [
            pb.CreateSetRequest.Entry(
                name=name, spec=messages.write_spec(spec), labels=(labels or {}).get(name)
            )
            for name, spec in specs.items()
        ]
        request = pb.CreateSetRequest(
            reservations=entries, request_id=request_id or uuid4().hex, namespace=namespace
        )
        answer = await self._call(self._stub.CreateSet, request)
        return tuple(map(messages.read_reservation, answer.reservations))

    async def get(self, name: str) -> ReservationInfo:
        """Return a reservation by name or id.

        Raises:
            CallFailed: ``NOT_FOUND`` if it is absent.
        """
        return await self._shown(self._stub.Get, pb.GetRequest(name=name))

    async def list(
        self, selection: Selection = EVERYTHING
    ) -> AsyncGenerator[ReservationInfo, None]:
        """Yield reservations, ordered by id.

        Raises:
            CallFailed: the call failed.
        """
        request = pb.ListRequest(filter=messages.write_selection(selection))
        async for page in self._connection.pages(self._stub.List, request):
            for each in page.reservations:
                yield messages.read_reservation(each)

    async def watch(self, selection: Selection = EVERYTHING) -> AsyncGenerator[Change, None]:
        """Yield every reservation as ADDED, and then each change, for ever.

        The watch resumes after its connection breaks. If it was broken for too long, every
        reservation is yielded again as ADDED, and those deleted meanwhile as DELETED.

        Raises:
            CallFailed: the watch was refused.
        """
        request = pb.WatchRequest(filter=messages.write_selection(selection))
        async with aclosing(follow(self._connection, self._stub.Watch, request)) as changes:
            async for change in changes:
                yield change

    async def history(
        self, name: str = "", *, owner_namespace: str = "", since: datetime | None = None
    ) -> AsyncGenerator[PastReservation, None]:
        """Yield ended reservations, oldest first.

        Args:
            name: a name or id; empty for all.
            owner_namespace: the namespace of the owners; empty for all.
            since: skips reservations that ended before this time; None for all.

        Raises:
            CallFailed: the call failed.
        """
        messages.check_zone(since, "since")
        request = pb.HistoryRequest(name=name, owner_namespace=owner_namespace, since=since)
        async for page in self._connection.pages(self._stub.History, request):
            for each in page.reservations:
                yield messages.read(each, PastReservation)

    async def update(
        self,
        name: str,
        spec: Spec,
        *,
        etag: str = "",
        labels: Mapping[str, str] | None = None,
        remove_labels: Iterable[str] = (),
    ) -> ReservationInfo:
        """Replace the spec of a reservation.

        Args:
            name: the name or id of the reservation.
            spec: the new spec.
            etag: the etag that the reservation must have; empty for any.
            labels: labels to set on its object; other labels stay.
            remove_labels: keys of labels to remove, if present.

        Raises:
            CallFailed: ``ABORTED`` if it was changed meanwhile, or has another etag;
                ``RESOURCE_EXHAUSTED`` if there is no room for more.
        """
        request = pb.UpdateRequest(
            name=name,
            spec=messages.write_spec(spec),
            etag=etag,
            labels=labels,
            remove_labels=remove_labels,
        )
        return await self._shown(self._stub.Update, request)

    async def extend(
        self, name: str, until: datetime | timedelta, *, etag: str = ""
    ) -> ReservationInfo:
        """Set the expiry of a reservation: a time, or a duration from now; zero for never.

        Raises:
            CallFailed: ``ABORTED`` if it was changed meanwhile, or has another etag.
            InvalidInput: the time has no zone.
        """
        request = messages.write_extension(name, until, etag)
        return await self._shown(self._stub.Extend, request)

    async def release(self, name: str, *, etag: str = "", missing_ok: bool = True) -> None:
        """Remove a reservation.

        Args:
            name: the name or id of the reservation.
            etag: the etag that the reservation must have; empty for any.
            missing_ok: succeed if the reservation is absent, perhaps because it was claimed.

        Raises:
            CallFailed: the reservation may still hold; ``ABORTED`` if it has another etag.
        """
        try:
            await self._call(self._stub.Release, pb.ReleaseRequest(name=name, etag=etag))
        except CallFailed as exc:
            if not missing_ok or exc.code != grpc.StatusCode.NOT_FOUND.name:
                raise

    @asynccontextmanager
    async def hold(
        self, name: str, spec: Spec, *, no_wait: bool = False
    ) -> AsyncIterator[ReservationInfo]:
        """Hold capacity while a block runs; then release the hold, unless it was claimed.

        Args:
            name: the name of the reservation.
            spec: the spec of the reservation.
            no_wait: refuse the reservation if it is not backed at once, and do not run the block.
                Otherwise the block may run before there is room (`ReservationInfo.is_backed`), but
                not with a node that does not exist.

        Raises:
            CallFailed: the reservation was not created; or not released, unless the block raises.
        """
        request_id = uuid4().hex
        try:
            reservation = await self.create(name, spec, request_id=request_id, no_wait=no_wait)
        except CallFailed as exc:
            if exc.code == grpc.StatusCode.DEADLINE_EXCEEDED.name:
                with suppress(CallFailed):  # It may have been created nevertheless.
                    await self.release(name)
            raise
        if reservation.phase is Phase.FAILED:
            await self.release(name)
            problem = f"{reservation.message.partition(';')[0]}; nothing is held"
            raise CallFailed("FAILED_PRECONDITION", problem, reservation.reason, {})
        try:
            yield reservation
        except BaseException:
            with suppress(CallFailed):
                await self._connection.shield(self.release(name))
            raise
        await self.release(name)

    async def _shown(
        self, method: Callable[..., Awaitable[Any]], request: object
    ) -> ReservationInfo:
        """Call a method whose answer is one reservation."""
        return messages.read_reservation((await self._call(method, request)).reservation)
