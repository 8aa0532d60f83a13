"""Reads ReservationQuotas into the ledger, admits waiting reservations, and writes their status."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import structlog

from reserver.base.pacer import Pacer
from reserver.base.quarantine import quarantined
from reserver.errors import ApiError, InvalidInput
from reserver.k8s.api_errors import advice
from reserver.k8s.client import ApiClient
from reserver.k8s.objects.objects import Metadata
from reserver.k8s.work_queue import WorkQueue
from reserver.reservations.ledger import Ledger
from reserver.reservations.quota import Quota
from reserver.stores.quota_codec import (
    QuotaObject,
    QuotaStatus,
    StatusPatch,
    patch,
    read_object,
    show,
    status_path,
)

log = structlog.get_logger(__name__)

PASS_EVERY_S = 1.0
"""Seconds in which changes of the usage are collected into one write."""

_AT_ONCE = 4
"""Most namespaces whose statuses are written concurrently."""

Name = tuple[str, str]
"""Namespace and name of a quota."""


@dataclass(slots=True)
class _Known:
    """A ReservationQuota, as last read."""

    metadata: Metadata
    spec: bytes
    quota: Quota | None
    status: QuotaStatus | None


class QuotaCache:
    """All ReservationQuotas, as shown by the watch.

    An invalid quota has no effect: other quotas of its namespace apply, or else the default.
    """

    def __init__(self, ledger: Ledger, report: Callable[[Metadata, InvalidInput], None]) -> None:
        """Keep a ledger up to date; `report` is called with each invalid quota."""
        self._ledger = ledger
        self._report = report
        self._known: dict[str, dict[str, _Known]] = {}

    def put(self, item: QuotaObject) -> None:
        """Process the present quota."""
        metadata = item.metadata
        here = self._known.setdefault(metadata.namespace, {})
        before = here.get(metadata.name)
        if before is not None and before.spec == bytes(item.spec):
            before.metadata, before.status = metadata, item.stored_status()
            return
        try:
            quota = read_object(item)
        except InvalidInput as exc:
            quota = None
            self._report(metadata, exc)
        here[metadata.name] = _Known(metadata, bytes(item.spec), quota, item.stored_status())
        self._limit(metadata.namespace)

    def drop(self, name: Name) -> None:
        """Drop a deleted quota."""
        namespace, own = name
        if self._known.get(namespace, {}).pop(own, None) is not None:
            self._limit(namespace)
            if not self._known[namespace]:
                del self._known[namespace]

    def names(self) -> tuple[Name, ...]:
        """Return namespace and name of the cached quotas."""
        return tuple((namespace, name) for namespace, here in self._known.items() for name in here)

    def due(self, namespace: str) -> Iterator[tuple[Metadata, StatusPatch]]:
        """Yield the quotas of a namespace with an outdated status, each with the new status."""
        used = self._ledger.quotas.used(namespace)
        for known in self._known.get(namespace, {}).values():
            if known.quota is not None:
                status = show(known.quota, used)
                if status != known.status:
                    yield known.metadata, patch(known.metadata, known.status, status)

    def _limit(self, namespace: str) -> None:
        here = sorted(self._known[namespace].items())
        quotas = [known.quota for _, known in here if known.quota is not None]
        self._ledger.quotas.limit(namespace, quotas)


class QuotaWriter:
    """Admits reservations that wait for their quota, and writes the usage of quotas.

    Attributes:
        unsettled: the namespaces whose quotas may admit more reservations, or fewer.
        unwritten: the namespaces whose usage may differ from the status.
        writes: the number of statuses written.
    """

    def __init__(self, client: ApiClient, clock: Callable[[], float]) -> None:
        """Write through a client; `clock` returns unix seconds."""
        self._client = client
        self._clock = clock
        self.unsettled = WorkQueue[str]("quotas")
        self.unwritten = WorkQueue[str]("quota status")
        self._fault = ""
        self.writes = 0

    def changed(self, namespace: str) -> None:
        """Queue a namespace whose quotas may admit more reservations, or fewer."""
        self.unsettled.add(namespace)
        self.unwritten.add(namespace, PASS_EVERY_S)

    async def admit(self, ledger: Ledger) -> None:
        """Admit reservations until cancelled."""
        await self.unsettled.passes(partial(self.settle, ledger))

    async def settle(self, ledger: Ledger, pacer: Pacer) -> None:
        """Admit the waiting reservations that fit into their quotas."""
        for namespace in self.unsettled.take_all():
            ledger.advance(self._clock())
            with quarantined("quota", namespace):
                await pacer.run(ledger.admit(namespace))
            await pacer.give_way()

    async def run(self, quotas: QuotaCache) -> None:
        """Write the usage of quotas until cancelled."""
        await self.unwritten.run(partial(self.write, quotas), _AT_ONCE)

    async def write(self, quotas: QuotaCache, namespaces: Iterable[str]) -> None:
        """Write the changed usage of the quotas of namespaces."""
        for namespace in namespaces:
            with quarantined("quota", namespace):
                for metadata, body in tuple(quotas.due(namespace)):
                    await self._write(namespace, metadata, body)

    async def _write(self, namespace: str, metadata: Metadata, body: StatusPatch) -> None:
        try:
            await self._client.patch(status_path(namespace, metadata.name), body)
        except ApiError as exc:
            if exc.is_conflict:  # The watch will show the other write.
                self.unwritten.add(namespace, PASS_EVERY_S)
            elif not exc.is_absent:
                self.unwritten.failed(namespace, exc)
                self._log_once(exc)
        else:
            self.writes += 1
            self.unwritten.succeeded(namespace)

    def _log_once(self, error: ApiError) -> None:
        fault = advice(error)
        if fault != self._fault:  # One line for each fault, not for each retry.
            log.warning("status of a quota cannot be written, retrying", why=fault)
            self._fault = fault
