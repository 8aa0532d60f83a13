"""Assembles the gRPC services and their health."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2

from reserver.extender.handlers import Extender
from reserver.extender.metrics import Metrics
from reserver.extender.readiness import Readiness
from reserver.grpc.access import CallAccess
from reserver.grpc.capacity import CapacityServicer
from reserver.grpc.changes import Changes
from reserver.grpc.creation import Creation
from reserver.grpc.feed import ReservationFeed
from reserver.grpc.interceptor import Calls
from reserver.grpc.reservation_list import Catalogue
from reserver.grpc.reservations import Reservations
from reserver.grpc.scheduler import SchedulerServicer
from reserver.scheduling.state import State
from reserver.stores.archive_writer import ArchiveWriter
from reserver.stores.hold_accounts import AccountWriter
from reserver.stores.stores import Stores
from reserver.v1.capacity_pb2_grpc import add_CapacityServiceServicer_to_server
from reserver.v1.reservation_pb2_grpc import add_ReservationServiceServicer_to_server
from reserver.v1.scheduler_pb2_grpc import add_SchedulerServiceServicer_to_server

_LOOK_EVERY_S = 0.25
"""How often those who watch are told, in seconds."""

_STATUS = health_pb2.HealthCheckResponse


class Service:
    """The services of the contract on one state.

    Attributes:
        interceptors: what every call goes through, the outermost first.
        feed: the changes of reservations, for those who watch.
    """

    def __init__(  # noqa: PLR0913 - what there is to serve
        self,
        *,
        state: State,
        stores: Stores,
        extender: Extender,
        namespace: str,
        clock: Callable[[], float],
        access: CallAccess | None,
        readiness: Readiness,
        counted: Metrics,
        past: ArchiveWriter,
        counted_holds: AccountWriter,
        dump: Callable[[], Awaitable[bytes]],
    ) -> None:
        """Put the services together; with `access` None, anybody who reaches the port may call."""
        catalogue = Catalogue(stores, state, clock, namespace, past.archive)
        creation = Creation(state, clock, catalogue, stores, readiness)
        changes = Changes(state, clock, catalogue, stores, readiness)
        self.feed = ReservationFeed(catalogue)
        self._reservations = Reservations(
            catalogue, self.feed, creation, changes, past, clock, state.pods
        )
        self._capacity = CapacityServicer(
            state, extender, clock, stores, namespace, counted_holds, dump
        )
        self._scheduler = SchedulerServicer(extender)
        calls = Calls(access, readiness.obstacles, counted)
        self.interceptors: list[grpc.aio.ServerInterceptor] = [calls]

    def add_to(self, server: grpc.aio.Server) -> None:
        """Let a server answer calls."""
        add_ReservationServiceServicer_to_server(self._reservations, server)
        add_CapacityServiceServicer_to_server(self._capacity, server)
        add_SchedulerServiceServicer_to_server(self._scheduler, server)


class Health(health.aio.HealthServicer):  # type: ignore[misc]  # it has no types
    """The health service of gRPC: it says what `/readyz` says now, and tells watchers soon."""

    def __init__(self, services: Iterable[str], obstacles: Callable[[], tuple[str, ...]]) -> None:
        """Tell of services; `obstacles` returns what keeps calls from being answered."""
        super().__init__()
        self._names = ("", *services)
        self._obstacles = obstacles
        self._said: int | None = None
        self._looking = asyncio.Lock()

    async def Check(self, request: Any, context: Any) -> Any:  # noqa: ANN401, N802 - as gRPC has it
        """Return what readiness is."""
        await self._look()
        return await super().Check(request, context)

    async def Watch(self, request: Any, context: Any) -> None:  # noqa: ANN401, N802 - as gRPC has it
        """Tell what readiness is, and each change."""
        await self._look()
        await super().Watch(request, context)

    async def follow(self) -> None:
        """Tell those who watch of each change, until cancelled."""
        while True:
            await self._look()
            await asyncio.sleep(_LOOK_EVERY_S)

    async def _look(self) -> None:
        async with self._looking:
            now = _STATUS.NOT_SERVING if self._obstacles() else _STATUS.SERVING
            if now != self._said:
                for name in self._names:
                    await self.set(name, now)
                self._said = now
