"""The health service of gRPC: at each moment it says what `/readyz` says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from grpc_health.v1 import health, health_pb2

_LOOK_EVERY_S = 0.25
"""How often those who watch are told, in seconds."""

_STATUS = health_pb2.HealthCheckResponse


class Health(health.aio.HealthServicer):  # type: ignore[misc]  # it has no types
    """Answers `Check` with what readiness is at that moment, and tells watchers soon after."""

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
