"""What quotas leave to do: reservations let in, and what is used written into their status."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus

import structlog

from reserver.errors import ApiError
from reserver.kube.api.client import ApiClient
from reserver.kube.watch.quotas import QuotaCache
from reserver.kube.watch.reflector import advice
from reserver.pacer import Pacer
from reserver.quarantine import quarantined
from reserver.reservations.ledger import Ledger
from reserver.wire.k8s.objects import Metadata
from reserver.wire.spec.quotaform import (
    StatusPatch,
    status_path,
)

log = structlog.get_logger(__name__)

PASS_EVERY_S = 1.0
"""How long a change of what is used waits at most before it is written, in seconds."""

_RETRY_S = 10.0


class QuotaWriter:
    """Lets reservations in where there is more to do than at once, and says what is used.

    Attributes:
        writes: how many statuses were written.
    """

    def __init__(self, client: ApiClient, clock: Callable[[], float]) -> None:
        """Write through a client; `clock` gives unix seconds."""
        self._client = client
        self._clock = clock
        self._unsettled: dict[str, None] = {}
        self._unwritten: dict[str, None] = {}
        self._something = asyncio.Event()
        self._fault = ""
        self.writes = 0

    def changed(self, namespace: str) -> None:
        """Take note that the quotas of a namespace may let more in, or less; returns at once."""
        self._unsettled[namespace] = None
        self._unwritten[namespace] = None
        self._something.set()

    async def admit(self, ledger: Ledger) -> None:
        """Do what quotas leave to do until cancelled."""
        while True:
            await self._something.wait()
            self._something.clear()
            with quarantined("pass", "quotas"):
                await self.settle(ledger)

    async def settle(self, ledger: Ledger) -> None:
        """Do what quotas leave to do now."""
        pacer = Pacer()
        while self._unsettled:
            namespace = next(iter(self._unsettled))
            del self._unsettled[namespace]
            ledger.advance(self._clock())
            with quarantined("quota", namespace):
                await pacer.run(ledger.admit(namespace))
            await pacer.give_way()

    async def run(self, quotas: QuotaCache) -> None:
        """Write what is used until cancelled."""
        while True:
            is_allowed = False
            with quarantined("pass", "quota status"):
                is_allowed = await self.write(quotas)
            await asyncio.sleep(PASS_EVERY_S if is_allowed else _RETRY_S)

    async def write(self, quotas: QuotaCache) -> bool:
        """Write what is used where that has changed; return whether the API server lets us."""
        unwritten, self._unwritten = self._unwritten, {}
        is_allowed = True
        for namespace in unwritten:
            due: tuple[tuple[Metadata, StatusPatch], ...] = ()
            with quarantined("quota", namespace):
                due = tuple(quotas.due(namespace))
            for metadata, body in due:
                try:
                    await self._client.patch(status_path(namespace, metadata.name), body)
                    self.writes += 1
                except ApiError as exc:
                    if exc.status == HTTPStatus.NOT_FOUND:
                        continue  # It is gone, which the watch will show.
                    self._unwritten[namespace] = None
                    if exc.status != HTTPStatus.CONFLICT:  # Else the watch will show another one.
                        is_allowed = False
                        self._tell(exc)
        return is_allowed

    def _tell(self, error: ApiError) -> None:
        fault = advice(error)
        if fault != self._fault:  # One line for one fault, however often it is retried.
            log.warning("status of a quota cannot be written, retrying", why=fault)
            self._fault = fault
