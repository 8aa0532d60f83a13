"""Writes reservations into ConfigMaps named `reservations`, `reservations-2` and so on."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import count

import structlog

from reserver.errors import ApiError, InvalidInput, ReserverError, Taken
from reserver.k8s.client import JSON_PATCH
from reserver.k8s.objects.objects import ConfigMapObject, LabelledConfigMap, Metadata, decode
from reserver.reservations.reservation import Ref
from reserver.stores.cache import Name
from reserver.stores.configmap import entry_edits
from reserver.stores.configmap.cache import LABEL_KEY, LABEL_VALUE, ConfigMapCache
from reserver.stores.edits import Edit
from reserver.stores.writer import MOST_BYTES, MOST_TRIES, Outcome, Writer

log = structlog.get_logger(__name__)

BASE = "reservations"
"""The name of the first ConfigMap."""

_SHARD = re.compile(rf"{BASE}(-([2-9]|[1-9][0-9]+))?")
"""The names of the ConfigMaps; numbers may be missing, as a ConfigMap may have been deleted."""


@dataclass(slots=True, eq=False)
class _Insertion:
    """Keys to write.

    Attributes:
        texts: the values by key.
        made: the metadata of the ConfigMap after the write; None before.
        was_tried: whether they were part of a common request.
        may_be_written: whether a request for them got no answer.
    """

    texts: Mapping[str, str]
    made: Metadata | None = None
    was_tried: bool = False
    may_be_written: bool = False


@dataclass(eq=False, repr=False)
class ConfigMapWriter(Writer[ConfigMapCache]):
    """Writes reservations into ConfigMaps; the members of a set in one request."""

    _turns: dict[str, asyncio.Lock] = field(default_factory=dict, init=False)
    _queued: dict[Name, list[_Insertion]] = field(default_factory=dict, init=False)

    def find(self, name: str) -> Ref | None:
        """Return the ref of the reservation with a name, stored or pending; None if absent."""
        for configmap in self._shards():
            ref = Ref(self.namespace, configmap, name)
            if self.cache.latest(ref) is not None:
                return ref
        return None

    def new_ref(self, sizes: Mapping[str, int]) -> Ref:
        """Return the ref, without a key, of a ConfigMap with room; `sizes` are bytes by name."""
        size = sum(len(key.encode()) + each for key, each in sizes.items())
        if size > MOST_BYTES:
            problem = f"{size} bytes are too many for one ConfigMap"
            raise InvalidInput("", problem, f"write {MOST_BYTES} at most together")
        for configmap in self._names():
            used = self.cache.size((self.namespace, configmap))
            if not used or used + size <= MOST_BYTES:
                self._turn(configmap)  # From now on `find` searches this ConfigMap.
                return Ref(self.namespace, configmap, "")
        raise AssertionError("there is no last ConfigMap")

    async def _edit(self, edit: Edit) -> bool:
        async with self._turn(edit.ref.configmap):
            self.writes += 1
            revision = await self._edits.edit_at(edit)
        if revision is None:
            return False
        await self.cache.shown((edit.ref.namespace, edit.ref.configmap), revision)
        return True

    def _turn(self, configmap: str) -> asyncio.Lock:
        """Return the lock of a ConfigMap: concurrent requests would fail and start again."""
        return self._turns.setdefault(configmap, asyncio.Lock())

    def _names(self) -> Iterator[str]:
        yield BASE
        for number in count(2):
            yield f"{BASE}-{number}"

    def _shards(self) -> list[str]:
        """Return the ConfigMaps of this store that exist or are being created, by number."""
        known = {name for namespace, name in self.cache.names() if namespace == self.namespace}
        return sorted(filter(_SHARD.fullmatch, known | self._turns.keys()), key=_number)

    async def _insert(self, specs: Mapping[Ref, str], _: str) -> Outcome:
        name = (self.namespace, next(iter(specs)).configmap)
        mine = _Insertion({ref.key: text for ref, text in specs.items()})
        self._queued.setdefault(name, []).append(mine)
        try:
            async with self._turn(name[1]):
                if not mine.was_tried:
                    await self._write_queued(name)
                if mine.made is None:
                    mine.made = await self._write(name, mine)
        except ReserverError as exc:
            for ref in specs:
                self.cache.withdraw(ref)
            log.warning("reservations not written", configmap=name[1], why=str(exc))
            return exc
        for ref in specs:
            self.cache.written(ref, mine.made)
        return None

    async def _write_queued(self, name: Name) -> None:
        """Write all queued insertions in one request.

        If the request fails, each insertion is sent alone, so that failures stay independent.
        """
        queued = self._queued.pop(name)
        for each in queued:
            each.was_tried = True
        if len(queued) == 1:
            return
        together = _Insertion({k: text for each in queued for k, text in each.texts.items()})
        with suppress(ReserverError):
            together.made = await self._write(name, together)
        for each in queued:
            each.made, each.may_be_written = together.made, together.may_be_written

    async def _write(self, name: Name, insertion: _Insertion) -> Metadata:
        """Write new keys; return the metadata of the written ConfigMap.

        A request without an answer is sent again: the API server accepts only one of them.

        Raises:
            Taken: one of the keys exists.
            ApiError: the API server refused.
        """
        texts = insertion.texts
        tries, backoff = 0, self.patience.backoff()
        current: ConfigMapObject | None = self._guess(name)
        while True:
            try:
                return await self._send(name, current, texts)
            except ApiError as exc:
                tries += exc.is_definite
                if tries > MOST_TRIES or (exc.is_definite and not exc.is_late):
                    raise
                if not exc.is_definite:
                    insertion.may_be_written = True
                    log.warning("write not confirmed, asking again", why=str(exc))
                    await backoff.sleep()
                    continue
            current = found = await self._read(_path(name), LabelledConfigMap)
            if found is not None and not _is_store(found):
                problem = f"ConfigMap {'/'.join(name)} lacks the label {LABEL_KEY}: {LABEL_VALUE!r}"
                raise ApiError(HTTPStatus.CONFLICT, "NotAStore", problem)
            there = {} if current is None else current.data or {}
            if current is not None and insertion.may_be_written and texts.items() <= there.items():
                return current.metadata
            if taken := texts.keys() & there.keys():
                raise Taken(f"{min(taken)} is in ConfigMap {'/'.join(name)} already")

    def _guess(self, name: Name) -> ConfigMapObject | None:
        """Return a ConfigMap from the cache, with empty values; None if it is not cached."""
        metadata = self.cache.metadata(name)
        if metadata is None:
            return None
        return ConfigMapObject(metadata, dict.fromkeys(self.cache.keys(name), ""))

    async def _send(
        self, name: Name, current: ConfigMapObject | None, texts: Mapping[str, str]
    ) -> Metadata:
        self.writes += 1
        if current is None:
            metadata = {"name": name[1], "labels": {LABEL_KEY: LABEL_VALUE}}
            body = {"metadata": metadata, "data": dict(texts)}
            answer = await self.client.create(_path((name[0], "")), body)
        else:
            patch = entry_edits.insertion(texts, into_empty=not current.data)
            answer = await self.client.patch(_path(name), patch, JSON_PATCH)
        return decode(ConfigMapObject, answer).metadata


def _path(name: Name) -> str:
    return f"/api/v1/namespaces/{name[0]}/configmaps/{name[1]}".rstrip("/")


def _number(shard: str) -> int:
    return int(shard.removeprefix(BASE).removeprefix("-") or 1)


def _is_store(configmap: LabelledConfigMap) -> bool:
    return (configmap.metadata.labels or {}).get(LABEL_KEY) == LABEL_VALUE
