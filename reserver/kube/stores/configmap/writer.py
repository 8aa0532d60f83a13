"""Writes reservations into the default store: `reservations`, `reservations-2` and so on.

What is written holds from the moment it is decided, before the API server is asked; if it turns out
not to have been written, the hold goes again.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from itertools import count

import structlog

from reserver.errors import ApiError, InvalidInput, ReserverError, Taken
from reserver.kube.api.apply import Apply
from reserver.kube.api.client import JSON_PATCH, ApiClient
from reserver.kube.stores.cache import Name
from reserver.kube.stores.configmap.cache import LABEL_KEY, LABEL_VALUE, ConfigMapCache
from reserver.reservations.reservation import Ref
from reserver.wire.k8s.objects import ConfigMapObject, LabelledConfigMap, decode
from reserver.wire.spec import edits
from reserver.wire.spec.edits import Edit
from reserver.wire.spec.entries import Entries

log = structlog.get_logger(__name__)

BASE = "reservations"
"""Name of the first ConfigMap of the default store."""

_SHARD = re.compile(rf"{BASE}(-([2-9]|[1-9][0-9]+))?")
"""Their names, as `_names` counts them; there may be gaps, where somebody has deleted one."""

MOST_BYTES = 900 * 1024
"""So much goes into one ConfigMap; the API server takes 1 MiB, and others may write, too."""

PAUSE_S = 0.1
LAST_PAUSE_S = 5.0
"""How long to wait before a request without an answer is sent again, in seconds."""

_TRIES = 5

Outcome = ReserverError | None
"""Why something was not written; None once it is."""


@dataclass(slots=True, eq=False)
class _Insertion:
    """Keys that wait to be written.

    Attributes:
        texts: value by key.
        revision: the resourceVersion that they were written at; None while they are not.
        was_tried: they are part of a request that was sent for several.
        may_be_written: there was a request for them without an answer.
    """

    texts: Mapping[str, str]
    revision: int | None = None
    was_tried: bool = False
    may_be_written: bool = False


class Booking:
    """Writes reservations into the default store of a namespace.

    Attributes:
        writes: how many requests were made.
    """

    def __init__(
        self,
        client: ApiClient,
        apply: Apply,
        store: ConfigMapCache,
        namespace: str,
        tasks: asyncio.TaskGroup,
    ) -> None:
        """Write into a namespace; `tasks` owns the writes under way."""
        self._client = client
        self._apply = apply
        self._store = store
        self._namespace = namespace
        self._tasks = tasks
        self._turns: dict[str, asyncio.Lock] = {}
        self._queued: dict[Name, list[_Insertion]] = {}
        self.writes = 0

    def find(self, name: str) -> Ref | None:
        """Return where the reservation of a name is written, or being written."""
        for configmap in self._shards():
            ref = Ref(self._namespace, configmap, name)
            if self._store.latest(ref) is not None:
                return ref
        return None

    def place(self, sizes: Mapping[str, int]) -> Ref:
        """Return a place, its key empty, with room for values of so many bytes by key.

        Raises:
            InvalidInput: no ConfigMap takes so many.
        """
        size = sum(len(key.encode()) + each for key, each in sizes.items())
        if size > MOST_BYTES:
            problem = f"{size} bytes are too many for one ConfigMap"
            raise InvalidInput("", problem, f"write {MOST_BYTES} at most together")
        for configmap in self._names():
            used = self._store.size((self._namespace, configmap))
            if not used or used + size <= MOST_BYTES:
                return Ref(self._namespace, configmap, "")
        raise AssertionError("there is no last ConfigMap")

    def insert(
        self, place: Ref, texts: Mapping[str, str], entries: Mapping[str, Entries]
    ) -> asyncio.Task[Outcome]:
        """Begin to write keys into one ConfigMap, all or none; they hold from now on.

        The write goes on if nobody waits for it.

        Args:
            place: in which ConfigMap (`place`).
            texts: value by key.
            entries: what each value says.
        """
        refs = [place._replace(key=key) for key in texts]
        self._turn(place.configmap)  # From now on what is found may be there.
        for ref in refs:
            self._store.expect(ref, texts[ref.key], entries[ref.key])
        return self._tasks.create_task(self._insert(refs, texts))

    async def edit(self, edit: Edit) -> bool:
        """Change one key and return once that is in force; False if somebody else was faster.

        Raises:
            ApiError: the API server refused, or did not answer.
        """
        async with self._turn(edit.ref.configmap):
            self.writes += 1
            revision = await self._apply.edit_at(edit)
        if revision is None:
            return False
        await self._store.shown((edit.ref.namespace, edit.ref.configmap), revision)
        return True

    def _turn(self, configmap: str) -> asyncio.Lock:
        """Return what lets one request at a time through: the others would have to start anew."""
        return self._turns.setdefault(configmap, asyncio.Lock())

    def _names(self) -> Iterator[str]:
        yield BASE
        for number in count(2):
            yield f"{BASE}-{number}"

    def _shards(self) -> list[str]:
        """Return the ConfigMaps of this store that are there or about to be, in their order."""
        known = {name for namespace, name in self._store.names() if namespace == self._namespace}
        return sorted(filter(_SHARD.fullmatch, known | self._turns.keys()), key=_number)

    async def _insert(self, refs: list[Ref], texts: Mapping[str, str]) -> Outcome:
        name = (self._namespace, refs[0].configmap)
        mine = _Insertion(texts)
        self._queued.setdefault(name, []).append(mine)
        try:
            async with self._turn(name[1]):
                if not mine.was_tried:
                    await self._write_queued(name)
                if mine.revision is None:
                    mine.revision = await self._write(name, mine)
        except ReserverError as exc:
            for ref in refs:
                self._store.withdraw(ref)
            log.warning("reservations not written", configmap=name[1], why=str(exc))
            return exc
        for ref in refs:
            self._store.written(ref, mine.revision)
        return None

    async def _write_queued(self, name: Name) -> None:
        """Write all that has queued up in one request.

        If that fails, each is written by itself when its turn comes: one bad key costs no other.
        """
        queued = self._queued.pop(name)
        for each in queued:
            each.was_tried = True
        if len(queued) == 1:
            return
        together = _Insertion({k: text for each in queued for k, text in each.texts.items()})
        with suppress(ReserverError):
            together.revision = await self._write(name, together)
        for each in queued:
            each.revision, each.may_be_written = together.revision, together.may_be_written

    async def _write(self, name: Name, wanted: _Insertion) -> int:
        """Write keys that must not be there; return the resourceVersion.

        A request without an answer is sent again: the API server carries out one of them at most.

        Raises:
            Taken: one of the keys is there.
            ApiError: the API server refused.
        """
        texts = wanted.texts
        tries, pause = 0, PAUSE_S
        current: ConfigMapObject | None = self._guess(name)
        while True:
            try:
                return await self._send(name, current, texts)
            except ApiError as exc:
                is_gone = exc.status in {HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT}
                conflict = exc.is_overtaken or is_gone
                tries += exc.is_definite
                if tries > _TRIES or (exc.is_definite and not conflict):
                    raise
                if not exc.is_definite:
                    wanted.may_be_written = True
                    log.warning("write not confirmed, asking again", why=str(exc))
                    await asyncio.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - spreads load
                    pause = min(2 * pause, LAST_PAUSE_S)
                    continue
            current = found = await self._read(name)
            if found is not None and not _is_store(found):
                problem = f"ConfigMap {'/'.join(name)} lacks the label {LABEL_KEY}: {LABEL_VALUE!r}"
                raise ApiError(HTTPStatus.CONFLICT, "NotAStore", problem)
            there = {} if current is None else current.data or {}
            if current is not None and wanted.may_be_written and texts.items() <= there.items():
                return current.metadata.revision
            if taken := texts.keys() & there.keys():
                raise Taken(f"{min(taken)} is in ConfigMap {'/'.join(name)} already")

    def _guess(self, name: Name) -> ConfigMapObject | None:
        """Return a ConfigMap as the watch last showed it, None if it has not."""
        metadata = self._store.metadata(name)
        if metadata is None:
            return None
        return ConfigMapObject(metadata, dict.fromkeys(self._store.keys(name), ""))

    async def _send(
        self, name: Name, current: ConfigMapObject | None, texts: Mapping[str, str]
    ) -> int:
        self.writes += 1
        path = f"/api/v1/namespaces/{name[0]}/configmaps"
        if current is None:
            metadata = {"name": name[1], "labels": {LABEL_KEY: LABEL_VALUE}}
            answer = await self._client.create(path, {"metadata": metadata, "data": dict(texts)})
        else:
            patch = edits.insertion(texts, into_empty=not current.data)
            answer = await self._client.patch(f"{path}/{name[1]}", patch, JSON_PATCH)
        return decode(ConfigMapObject, answer).metadata.revision

    async def _read(self, name: Name) -> LabelledConfigMap | None:
        path = f"/api/v1/namespaces/{name[0]}/configmaps/{name[1]}"
        pause = PAUSE_S
        while True:
            try:
                return decode(LabelledConfigMap, await self._client.get(path))
            except ApiError as exc:
                if exc.status == HTTPStatus.NOT_FOUND:
                    return None
                if exc.is_definite:
                    raise
            await asyncio.sleep(pause)
            pause = min(2 * pause, LAST_PAUSE_S)


def _number(shard: str) -> int:
    return int(shard.removeprefix(BASE).removeprefix("-") or 1)


def _is_store(configmap: LabelledConfigMap) -> bool:
    return (configmap.metadata.labels or {}).get(LABEL_KEY) == LABEL_VALUE
