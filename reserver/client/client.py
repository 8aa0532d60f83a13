"""The client: calls about reservations."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from typing import Any, Self
from uuid import uuid4

import grpc

from reserver.client import messages, requests
from reserver.client.call_errors import CallFailed
from reserver.client.capacity import Capacity
from reserver.client.connection import DEADLINE_S, Connection, ConnectionTerms, Retrying
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


class Client:
    """A client of the gRPC API, as an asynchronous context manager.

    Attributes:
        capacity: the calls about capacity.
    """

    def __init__(  # noqa: PLR0913 - what a connection needs
        self,
        address: str,
        *,
        token: str | Callable[[], str] = "",
        root_certificates: bytes | None = None,
        client_certificate: tuple[bytes, bytes] | None = None,
        server_name: str = "",
        deadline_s: float = DEADLINE_S,
        connect_s: float = DEADLINE_S,
        retrying: Retrying | None = None,
    ) -> None:
        """Prepare to connect.

        Args:
            address: ``ADDRESS:PORT``, or any name that gRPC resolves.
            token: of a user that the API server knows, or a function that returns the current one;
                empty if none is required. Except on loopback it needs TLS.
            root_certificates: PEM of the CAs to trust: turns TLS on.
            client_certificate: PEM of key and certificate, for mutual TLS.
            server_name: to expect in the server's certificate; that of the address if empty.
            deadline_s: how long a call may take, including repetitions, in seconds.
            connect_s: how long of that nobody need be there, in seconds.
            retrying: called before a call is repeated, and before a watch is resumed.

        Raises:
            ValueError: without TLS, anybody could read the token.
        """
        terms = ConnectionTerms(
            address=address,
            token=token,
            root_certificates=root_certificates,
            client_certificate=client_certificate,
            server_name=server_name,
            deadline_s=deadline_s,
            connect_s=connect_s,
            retrying=retrying,
        )
        self._connection = Connection(terms)
        self._stub: Any = ReservationServiceStub(self._connection.channel)
        self._call = self._connection.call
        self.capacity = Capacity(self._connection)

    async def __aenter__(self) -> Self:
        """Return the client; it connects with its first call."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connection."""
        await self._connection.close()

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
            name: of the reservation.
            spec: what it asks for.
            request_id: give one to be able to repeat the call after a restart of this process.
            no_wait: refuse it if it is not backed at once.
            labels: of its object; a server that writes ConfigMaps refuses them.
            namespace: of its object; empty for Reserver's own. Without objects it is ignored.

        Raises:
            CallFailed: it was not created, or that is unknown; it is safe to call again with the
                same `request_id`. With `no_wait` as `create_set`.
        """
        request = requests.create(
            name, spec, request_id=request_id, no_wait=no_wait, labels=labels, namespace=namespace
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
        """Create several reservations, by name: all of them, backed, or none.

        Args:
            specs: what they ask for.
            request_id: as of `create`.
            labels: of those that have some, by name.
            namespace: of all of them.

        Raises:
            CallFailed: as `create`; ``RESOURCE_EXHAUSTED`` if the room is taken at the moment, or
                a quota does not allow it; ``FAILED_PRECONDITION`` if one can never fit.
        """
        request = requests.create_set(
            specs, request_id=request_id, labels=labels, namespace=namespace
        )
        answer = await self._call(self._stub.CreateSet, request)
        return tuple(map(messages.read_reservation, answer.reservations))

    async def get(self, name: str) -> ReservationInfo:
        """Return a reservation by name or id.

        Raises:
            CallFailed: ``NOT_FOUND`` if there is none.
        """
        return await self._shown(self._stub.Get, pb.GetRequest(name=name))

    async def list(self, selection: Selection = EVERYTHING) -> AsyncIterator[ReservationInfo]:
        """Yield reservations, ordered by id.

        Raises:
            CallFailed: they cannot be read.
        """
        async for page in self._connection.pages(self._stub.List, requests.list_(selection)):
            for each in page.reservations:
                yield messages.read_reservation(each)

    async def watch(self, selection: Selection = EVERYTHING) -> AsyncIterator[Change]:
        """Yield every reservation as ADDED, and then each change, for ever.

        A broken connection is resumed. If it was broken for too long, every reservation is yielded
        again as ADDED, and those that are gone meanwhile as DELETED.

        Raises:
            CallFailed: it may not be watched.
        """
        request = requests.watch(selection)
        async for change in follow(self._connection, self._stub.Watch, request):
            yield change

    async def history(
        self, name: str = "", *, owner_namespace: str = "", since: datetime | None = None
    ) -> AsyncIterator[PastReservation]:
        """Yield what became of reservations that are over, the oldest first.

        Args:
            name: of those of this name or id; empty for any.
            owner_namespace: of those for pods of a namespace; empty for any.
            since: of those that ended since then; None for all that are kept.

        Raises:
            CallFailed: it cannot be read.
        """
        request = requests.history(name, owner_namespace, since)
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
            name: its name, or its id.
            spec: the new one.
            etag: only if this is its etag, if it is not empty.
            labels: to set on its object; all others stay.
            remove_labels: keys of labels to take away, if it has them.

        Raises:
            CallFailed: ``ABORTED`` if it was changed meanwhile, or `etag` is not its etag;
                ``RESOURCE_EXHAUSTED`` if there is no room for more.
        """
        request = requests.update(name, spec, etag=etag, labels=labels, remove_labels=remove_labels)
        return await self._shown(self._stub.Update, request)

    async def extend(
        self, name: str, until: datetime | timedelta, *, etag: str = ""
    ) -> ReservationInfo:
        """Set when a reservation expires: a time, or a duration from now; zero for never.

        Raises:
            CallFailed: ``ABORTED`` if it was changed meanwhile, or `etag` is not its etag.
            InvalidInput: the time has no zone.
        """
        request = messages.write_extension(name, until, etag)
        return await self._shown(self._stub.Extend, request)

    async def release(self, name: str, *, etag: str = "", missing_ok: bool = True) -> None:
        """Remove a reservation.

        Args:
            name: its name, or its id.
            etag: only if this is its etag, if it is not empty.
            missing_ok: ignore it if it is gone, perhaps because it was claimed.

        Raises:
            CallFailed: it may still hold; ``ABORTED`` if `etag` is not its etag.
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
        """Hold capacity while a block runs; then release it, unless it was claimed.

        Args:
            name: of the reservation.
            spec: what it asks for.
            no_wait: refuse it if it is not backed at once, and do not run the block. Else it may
                begin before there is room (`Reservation.is_backed`), but not on a node that does
                not exist.

        Raises:
            CallFailed: it cannot be held; or not released, if the block itself raises nothing.
        """
        request_id = uuid4().hex
        try:
            reservation = await self.create(name, spec, request_id=request_id, no_wait=no_wait)
        except CallFailed as exc:
            if exc.code == grpc.StatusCode.DEADLINE_EXCEEDED.name:
                with suppress(CallFailed):  # It may have been created after all.
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
                await asyncio.shield(self.release(name))
            raise
        await self.release(name)

    async def _shown(
        self, method: Callable[..., Awaitable[Any]], request: object
    ) -> ReservationInfo:
        """Call a method that answers with one reservation."""
        return messages.read_reservation((await self._call(method, request)).reservation)
