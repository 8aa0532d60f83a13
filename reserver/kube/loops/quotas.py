"""ReservationQuotas: what they say into the ledger, and what is used into their status."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http import HTTPStatus

import structlog

from reserver.errors import ApiError, InvalidInput
from reserver.kube.api.client import ApiClient
from reserver.kube.stores.cache import Name
from reserver.kube.watch.reflector import advice
from reserver.pacer import Pacer
from reserver.quarantine import quarantined
from reserver.reservations.ledger import Ledger
from reserver.reservations.quota import Quota
from reserver.wire.k8s.objects import Metadata
from reserver.wire.spec.quotaform import (
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

_RETRY_S = 10.0


@dataclass(slots=True)
class _Known:
    """A ReservationQuota as it was last read."""

    metadata: Metadata
    spec: bytes
    quota: Quota | None
    said: QuotaStatus | None


class QuotaStore:
    """What all ReservationQuotas say.

    One that cannot be read limits nothing: the default does, unless there is another one.
    """

    def __init__(self, ledger: Ledger, report: Callable[[Metadata, InvalidInput], None]) -> None:
        """Keep a ledger up to date; `report` is told of each quota that cannot be read."""
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
        """Yield the quotas of a namespace whose status is out of date, with what makes it right."""
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

    async def run(self, store: QuotaStore) -> None:
        """Write what is used until cancelled."""
        while True:
            is_allowed = False
            with quarantined("pass", "quota status"):
                is_allowed = await self.write(store)
            await asyncio.sleep(PASS_EVERY_S if is_allowed else _RETRY_S)

    async def write(self, store: QuotaStore) -> bool:
        """Write what is used where that has changed; return whether the API server lets us."""
        unwritten, self._unwritten = self._unwritten, {}
        is_allowed = True
        for namespace in unwritten:
            due: tuple[tuple[Metadata, StatusPatch], ...] = ()
            with quarantined("quota", namespace):
                due = tuple(store.due(namespace))
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
