"""ReservationQuotas: read into the ledger, which admits by them, and their status written."""

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
from reserver.stores.codec.quota_codec import (
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
"""How long a change of what is used waits at most before it is written, in seconds."""

_AT_ONCE = 4
"""How many namespaces' statuses are written at once."""

Name = tuple[str, str]
"""Namespace and name of a quota."""


@dataclass(slots=True)
class _Known:
    """A ReservationQuota as it was last read."""

    metadata: Metadata
    spec: bytes
    quota: Quota | None
    said: QuotaStatus | None


class QuotaCache:
    """All ReservationQuotas as the watch has shown them.

    One that cannot be read has no effect: the default applies, unless there is another one.
    """

    def __init__(self, ledger: Ledger, report: Callable[[Metadata, InvalidInput], None]) -> None:
        """Keep a ledger up to date; `report` is called with each quota that cannot be read."""
        self._ledger = ledger
        self._report = report
        self._known: dict[str, dict[str, _Known]] = {}

    def put(self, item: QuotaObject) -> None:
        """Take a quota as it is now."""
        metadata = item.metadata
        here = self._known.setdefault(metadata.namespace, {})
        before = here.get(metadata.name)
        if before is not None and before.spec == bytes(item.spec):
            before.metadata, before.said = metadata, item.said()
            return
        try:
            quota = read_object(item)
        except InvalidInput as exc:
            quota = None
            self._report(metadata, exc)
        here[metadata.name] = _Known(metadata, bytes(item.spec), quota, item.said())
        self._limit(metadata.namespace)

    def drop(self, name: Name) -> None:
        """Forget a quota that is gone."""
        namespace, own = name
        if self._known.get(namespace, {}).pop(own, None) is not None:
            self._limit(namespace)
            if not self._known[namespace]:
                del self._known[namespace]

    def names(self) -> tuple[Name, ...]:
        """Return namespace and name of the quotas that are known."""
        return tuple((namespace, name) for namespace, here in self._known.items() for name in here)

    def due(self, namespace: str) -> Iterator[tuple[Metadata, StatusPatch]]:
        """Yield the quotas of a namespace with an outdated status, each with the new status."""
        used = self._ledger.quotas.used(namespace)
        for known in self._known.get(namespace, {}).values():
            if known.quota is not None:
                status = show(known.quota, used)
                if status != known.said:
                    yield known.metadata, patch(known.metadata, known.said, status)

    def _limit(self, namespace: str) -> None:
        here = sorted(self._known[namespace].items())
        quotas = [known.quota for _, known in here if known.quota is not None]
        self._ledger.quotas.limit(namespace, quotas)


class QuotaWriter:
    """Admits reservations that the ledger left for later, and writes what is used.

    Attributes:
        unsettled: the namespaces whose quotas may let more in, or less.
        unwritten: the namespaces in which something else may be used than was said.
        writes: how many statuses were written.
    """

    def __init__(self, client: ApiClient, clock: Callable[[], float]) -> None:
        """Write through a client; `clock` gives unix seconds."""
        self._client = client
        self._clock = clock
        self.unsettled = WorkQueue[str]("quotas")
        self.unwritten = WorkQueue[str]("quota status")
        self._fault = ""
        self.writes = 0

    def changed(self, namespace: str) -> None:
        """Note that the quotas of a namespace may let more in, or less; returns at once."""
        self.unsettled.add(namespace)
        self.unwritten.add(namespace, PASS_EVERY_S)

    async def admit(self, ledger: Ledger) -> None:
        """Admit reservations until cancelled."""
        await self.unsettled.passes(partial(self.settle, ledger))

    async def settle(self, ledger: Ledger, pacer: Pacer) -> None:
        """Admit the reservations that quotas have room for now."""
        for namespace in self.unsettled.take_all():
            ledger.advance(self._clock())
            with quarantined("quota", namespace):
                await pacer.run(ledger.admit(namespace))
            await pacer.give_way()

    async def run(self, quotas: QuotaCache) -> None:
        """Write what is used until cancelled."""
        await self.unwritten.run(partial(self.write, quotas), _AT_ONCE)

    async def write(self, quotas: QuotaCache, namespaces: Iterable[str]) -> None:
        """Write what is used in namespaces, if it has changed."""
        for namespace in namespaces:
            with quarantined("quota", namespace):
                for metadata, body in tuple(quotas.due(namespace)):
                    await self._write(namespace, metadata, body)

    async def _write(self, namespace: str, metadata: Metadata, body: StatusPatch) -> None:
        try:
            await self._client.patch(status_path(namespace, metadata.name), body)
        except ApiError as exc:
            if exc.is_conflict:  # The watch will show another one.
                self.unwritten.add(namespace, PASS_EVERY_S)
            elif not exc.is_absent:
                self.unwritten.failed(namespace, exc)
                self._tell(exc)
        else:
            self.writes += 1
            self.unwritten.succeeded(namespace)

    def _tell(self, error: ApiError) -> None:
        fault = advice(error)
        if fault != self._fault:  # One line for one fault, however often it is retried.
            log.warning("status of a quota cannot be written, retrying", why=fault)
            self._fault = fault
