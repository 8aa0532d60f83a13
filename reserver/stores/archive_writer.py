"""The archivist: writes the outcomes of ended reservations to ConfigMaps, and reads them back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

import structlog

from reserver.base.pacer import Pacer
from reserver.base.quarantine import quarantined
from reserver.errors import ApiError, InvalidInput
from reserver.k8s.client import ApiClient
from reserver.k8s.objects.objects import LabelledConfigMap, decode
from reserver.k8s.work_queue import WorkQueue
from reserver.reservations.enums import Outcome
from reserver.reservations.outcome import Ending
from reserver.stores.archive import LABEL, SHARDS, Archive, past

log = structlog.get_logger(__name__)

_NAME = "reserver-history"
_AFTER_S = 0.5
"""Seconds in which endings are collected into one write."""

_BYTES_A_SECOND = 128 * 1024
"""Bound on the bytes written each second: each write costs etcd the whole ConfigMap."""

_FRESH_S = 30.0
"""Seconds after which the archive is read again, as another Reserver may have written to it."""


class ArchiveWriter:
    """Keeps the archive in memory, and writes its changes to the API server.

    Attributes:
        archive: the outcomes of ended reservations.
        queue: the numbers of the shards with changes to write.
        writes: the number of writes made.
        unclaimed: the number of reservations that have expired with unclaimed slots.
    """

    def __init__(
        self,
        client: ApiClient,
        namespace: str,
        archive: Archive,
        clock: Callable[[], float],
        queue: WorkQueue[int] | None = None,
    ) -> None:
        """Write into ConfigMaps of a namespace; `clock` gives unix seconds."""
        self.archive = archive
        self.writes = 0
        self.unclaimed = 0
        self._client = client
        self._collection = f"/api/v1/namespaces/{namespace}/configmaps"
        self._clock = clock
        self.queue = queue or WorkQueue[int]("archivist")
        self._read_at = 0.0
        self._reading = asyncio.Lock()

    def ended(self, ending: Ending) -> None:
        """Add an ended reservation to the archive, and queue the write of its shard."""
        is_left = ending.claimed < ending.reservation.slots_beside(ending.claimed)
        self.unclaimed += ending.outcome is Outcome.EXPIRED and is_left
        number = self.archive.add(past(ending), self._clock())
        self.queue.add(number, _AFTER_S + self.archive.size(number) / _BYTES_A_SECOND)

    async def run(self) -> None:
        """Read the archive, and write each new ending, until cancelled."""
        await self.refresh()
        await self.queue.run(self._write, 2)

    async def refresh(self) -> None:
        """Read all shards again, unless they were read within the last `_FRESH_S`."""
        async with self._reading:
            asked_at = self._clock()
            if not 0 <= asked_at - self._read_at < _FRESH_S:
                for number in range(SHARDS):
                    await self._read(number)
                self._read_at = asked_at

    async def _read(self, number: int) -> None:
        with quarantined("history", _name(number)):
            try:
                await self._load(number, await self._client.get(self._path(number)))
            except (ApiError, InvalidInput) as exc:
                if not (isinstance(exc, ApiError) and exc.is_absent):
                    log.warning("history cannot be read", configmap=_name(number), why=str(exc))

    async def _write(self, numbers: list[int]) -> None:
        (number,) = numbers
        changes = self.archive.pending(number)
        if changes:
            try:
                answer = await self._send(number, changes)
            except ApiError as exc:
                if self.queue.failed(number, exc, "write") == 1:
                    log.warning("history cannot be written", configmap=_name(number), why=str(exc))
                return
            self.writes += 1
            self.archive.written(number, changes)
            with suppress(InvalidInput):
                await self._load(number, answer)
        self.queue.succeeded(number)

    async def _send(self, number: int, changes: dict[str, str | None]) -> bytes:
        try:
            return await self._client.patch(self._path(number), {"data": changes})
        except ApiError as exc:
            if not exc.is_absent:
                raise
        data = {key: text for key, text in changes.items() if text is not None}
        metadata = {"name": _name(number), "labels": {LABEL: "true"}}
        return await self._client.create(self._collection, {"metadata": metadata, "data": data})

    async def _load(self, number: int, answer: bytes) -> None:
        """Load the content of a ConfigMap if its keys differ from the keys in memory."""
        data = decode(LabelledConfigMap, answer).data or {}
        if data.keys() != self.archive.keys(number) - self.archive.pending(number).keys():
            await Pacer().run(self.archive.load(number, data, self._clock()))

    def _path(self, number: int) -> str:
        return f"{self._collection}/{_name(number)}"


def _name(number: int) -> str:
    return f"{_NAME}-{number}"
