"""The synchronous client: the calls of `Client`, blocking."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import Any, Self
from uuid import uuid4

import grpc

from reserver.client import messages, requests
from reserver.client.call_errors import CallFailed
from reserver.client.connection import DEADLINE_S, ConnectionTerms, Retrying, SyncConnection
from reserver.client.following import follow_synchronously
from reserver.client.sync_capacity import SyncCapacity
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


class SyncClient:
    """A client of the gRPC API that blocks, as a context manager; threads may share it.

    Arguments, results and errors are those of `Client`.

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
        self._connection = SyncConnection(terms)
        self._stub: Any = ReservationServiceStub(self._connection.channel)
        self._call = self._connection.call
        self.capacity = SyncCapacity(self._connection)

    def __enter__(self) -> Self:
        """Return the client; it connects with its first call."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection."""
        self._connection.channel.close()

    def create(
        self,
        name: str,
        spec: Spec,
        *,
        request_id: str = "",
        no_wait: bool = False,
        labels: Mapping[str, str] | None = None,
        namespace: str = "",
    ) -> ReservationInfo:
        """Create a reservation and return once its hold is in force; as `Client.create`.

        Raises:
            CallFailed: it was not created, or that is unknown.
        """
        request = requests.create(
            name, spec, request_id=request_id, no_wait=no_wait, labels=labels, namespace=namespace
        )
        return self._shown(self._stub.Create, request)

    def create_set(
        self,
        specs: Mapping[str, Spec],
        *,
        request_id: str = "",
        labels: Mapping[str, Mapping[str, str]] | None = None,
        namespace: str = "",
    ) -> tuple[ReservationInfo, ...]:
        """Create several reservations, by name: all of them, backed, or none.

        Raises:
            CallFailed: as `Client.create_set`.
        """
        request = requests.create_set(
            specs, request_id=request_id, labels=labels, namespace=namespace
        )
        answer = self._call(self._stub.CreateSet, request)
        return tuple(map(messages.read_reservation, answer.reservations))

    def get(self, name: str) -> ReservationInfo:
        """Return a reservation by name or id.

        Raises:
            CallFailed: ``NOT_FOUND`` if there is none.
        """
        return self._shown(self._stub.Get, pb.GetRequest(name=name))

    def list(self, selection: Selection = EVERYTHING) -> Iterator[ReservationInfo]:
        """Yield reservations, ordered by id.

        Raises:
            CallFailed: they cannot be read.
        """
        for page in self._connection.pages(self._stub.List, requests.list_(selection)):
            yield from map(messages.read_reservation, page.reservations)

    def watch(self, selection: Selection = EVERYTHING) -> Iterator[Change]:
        """Yield every reservation as ADDED, and then each change, for ever.

        It blocks until something changes; `close()` of the iterator ends it.

        Raises:
            CallFailed: it may not be watched.
        """
        request = requests.watch(selection)
        return follow_synchronously(self._connection, self._stub.Watch, request)

    def history(
        self, name: str = "", *, owner_namespace: str = "", since: datetime | None = None
    ) -> Iterator[PastReservation]:
        """Yield what became of reservations that are over, the oldest first; as `Client.history`.

        Raises:
            CallFailed: it cannot be read.
        """
        request = requests.history(name, owner_namespace, since)
        for page in self._connection.pages(self._stub.History, request):
            for each in page.reservations:
                yield messages.read(each, PastReservation)

    def update(
        self,
        name: str,
        spec: Spec,
        *,
        etag: str = "",
        labels: Mapping[str, str] | None = None,
        remove_labels: Iterable[str] = (),
    ) -> ReservationInfo:
        """Replace the spec of a reservation; as `Client.update`.

        Raises:
            CallFailed: ``ABORTED`` if it was changed meanwhile; ``RESOURCE_EXHAUSTED`` if there is
                no room for more.
        """
        request = requests.update(name, spec, etag=etag, labels=labels, remove_labels=remove_labels)
        return self._shown(self._stub.Update, request)

    def extend(self, name: str, until: datetime | timedelta, *, etag: str = "") -> ReservationInfo:
        """Set when a reservation expires: a time, or a duration from now; zero for never.

        Raises:
            CallFailed: ``ABORTED`` if it was changed meanwhile, or `etag` is not its etag.
            InvalidInput: the time has no zone.
        """
        return self._shown(self._stub.Extend, messages.write_extension(name, until, etag))

    def release(self, name: str, *, etag: str = "", missing_ok: bool = True) -> None:
        """Remove a reservation; as `Client.release`.

        Raises:
            CallFailed: it may still hold.
        """
        try:
            self._call(self._stub.Release, pb.ReleaseRequest(name=name, etag=etag))
        except CallFailed as exc:
            if not missing_ok or exc.code != grpc.StatusCode.NOT_FOUND.name:
                raise

    @contextmanager
    def hold(self, name: str, spec: Spec, *, no_wait: bool = False) -> Iterator[ReservationInfo]:
        """Hold capacity while a block runs; then release it, unless it was claimed.

        Raises:
            CallFailed: as `Client.hold`.
        """
        try:
            reservation = self.create(name, spec, request_id=uuid4().hex, no_wait=no_wait)
        except CallFailed as exc:
            if exc.code == grpc.StatusCode.DEADLINE_EXCEEDED.name:
                with suppress(CallFailed):  # It may have been created after all.
                    self.release(name)
            raise
        if reservation.phase is Phase.FAILED:
            self.release(name)
            problem = f"{reservation.message.partition(';')[0]}; nothing is held"
            raise CallFailed("FAILED_PRECONDITION", problem, reservation.reason, {})
        try:
            yield reservation
        except BaseException:
            with suppress(CallFailed):
                self.release(name)
            raise
        self.release(name)

    def _shown(self, method: Callable[..., Any], request: object) -> ReservationInfo:
        """Call a method that answers with one reservation."""
        return messages.read_reservation(self._call(method, request).reservation)
