"""Feeds ReservationQuotas into the ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from reserver.errors import InvalidInput
from reserver.k8s.objects.objects import Metadata
from reserver.reservations.ledger import Ledger
from reserver.reservations.quota import Quota
from reserver.stores.codec.quota_codec import (
    QuotaObject,
    QuotaStatus,
    StatusPatch,
    patch,
    read_object,
    show,
)

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
