"""The writer of a store, which creates and edits reservations: the base of both kinds.

A reservation holds from the decision on, before the request to the API server; if the request
fails, the hold ends.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar
from uuid import uuid4

import structlog

from reserver.base.pacer import Backoff
from reserver.errors import ApiError, ReserverError
from reserver.k8s.client import JSON_PATCH, ApiClient
from reserver.k8s.objects.objects import PartialObject, decode
from reserver.reservations.reservation import Ref
from reserver.stores.cache import Cache, Expected
from reserver.stores.edits import Deletion, Edit, Patch, Tidying
from reserver.stores.entries import Entries


class StoreEdits:
    """Sends edits of the stores to the API server."""

    def __init__(self, client: ApiClient) -> None:
        """Write through a client."""
        self._client = client

    async def edit(self, edit: Tidying) -> bool:
        """Change one entry of the store; return False if another client has changed it.

        Raises:
            ApiError: the API server refused, or did not answer.
        """
        if isinstance(edit, Deletion):
            return await self._delete(edit)
        return await self.edit_at(edit) is not None

    async def edit_all(self, edits: Sequence[Edit]) -> bool:
        """Make all edits of one ConfigMap, or none; return False if none was made.

        Raises:
            ApiError: the API server refused, or did not answer.
        """
        patch = [operation for edit in edits for operation in edit.patch()]
        return await self._patch_at(edits[0].path, patch) is not None

    async def _delete(self, deletion: Deletion) -> bool:
        try:
            await self._client.delete(deletion.path, deletion.options())
        except ApiError as exc:
            if exc.is_conflict or exc.is_absent:
                return False
            raise
        return True

    async def edit_at(self, edit: Patch) -> int | None:
        """Change one entry; return the new resourceVersion, or None if it was changed meanwhile.

        Raises:
            ApiError: the API server refused, or did not answer.
        """
        return await self._patch_at(edit.path, edit.patch())

    async def _patch_at(self, path: str, patch: Sequence[Mapping[str, object]]) -> int | None:
        try:
            answer = await self._client.patch(path, patch, JSON_PATCH)
        except ApiError as exc:
            if exc.is_overtaken or exc.is_absent:
                return None
            raise
        return decode(PartialObject, answer).metadata.revision


log = structlog.get_logger(__name__)

MOST_BYTES = 900 * 1024
"""Bound on one object, in bytes; the API server allows 1 MiB, and other clients may write, too."""

MOST_TRIES = 5
"""Most attempts at an edit that conflicts with other writes."""

Outcome = ReserverError | None
"""The error of a write; None on success."""

C = TypeVar("C", bound=Cache[Any, Any])
T = TypeVar("T")


class Patience(NamedTuple):
    """The waiting times of a writer, in seconds.

    Attributes:
        first_s: before the first repetition of a request without an answer.
        last_s: before later repetitions, at most.
        behind_s: for a watch to show a conflicting write of another client.
    """

    first_s: float = 0.1
    last_s: float = 5.0
    behind_s: float = 5.0

    def backoff(self) -> Backoff:
        """Return the back-off for requests without an answer."""
        return Backoff(self.first_s, self.last_s)


PATIENT = Patience()


@dataclass(eq=False, repr=False)
class Writer(ABC, Generic[C]):
    """Creates reservations in one kind of store, and edits them in any namespace.

    Attributes:
        cache: the cache of the store.
        namespace: Reserver's own namespace, for new reservations.
        tasks: the task group of the writes in flight.
        patience: the waiting times.
        writes: the number of requests made.
    """

    client: ApiClient
    cache: C
    namespace: str
    tasks: asyncio.TaskGroup
    patience: Patience = PATIENT
    writes: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        """Begin without writes in flight."""
        self._edits = StoreEdits(self.client)

    @abstractmethod
    def find(self, name: str) -> Ref | None:
        """Return the ref of the reservation with a name, stored or pending; None if absent."""

    @abstractmethod
    def new_ref(self, sizes: Mapping[str, int]) -> Ref:
        """Return a ref, with an empty key, where texts fit; `sizes` are their bytes by name.

        Raises:
            InvalidInput: the texts are too large for one object.
        """

    def insert(
        self,
        ref: Ref,
        texts: Mapping[str, str],
        entries: Mapping[str, Entries],
        labels: Mapping[str, Mapping[str, str]],
        owner: Mapping[str, object] | None = None,
    ) -> asyncio.Task[Outcome]:
        """Start to write reservations, all or none, which hold from now on.

        The write continues even if no caller awaits the task.

        Args:
            ref: the ref from `new_ref`.
            texts: the specs as JSON by name; the `origin` in the spec of an object is unique.
            entries: the entries of each text, by name.
            labels: the labels of objects, by name.
            owner: the owner reference of objects, for garbage collection; None without an owner.
        """
        specs = {ref._replace(key=key): text for key, text in texts.items()}
        set_id = f"{ref.namespace}/{uuid4().hex}" if len(specs) > 1 else ""
        for each, text in specs.items():
            expected = Expected(text, entries[each.key], labels.get(each.key, {}), set_id, owner)
            self.cache.expect(each, expected)
        return self.tasks.create_task(self._insert(specs, set_id))

    @abstractmethod
    async def _insert(self, specs: Mapping[Ref, str], set_id: str) -> Outcome:
        """Write pending reservations, as a set if `set_id` is not empty; a failure ends holds."""

    async def edit(self, edit: Edit) -> bool:
        """Change or remove the entry at one ref, and return once the change is in force.

        Returns:
            False if another client, or the cleaner, has changed the entry. The cache has that
            change by then, unless the watch is late.

        Raises:
            InvalidInput: the CRD's schema refuses the spec.
            ApiError: the API server refused, or did not answer.
        """
        if await self._edit(edit):
            return True
        with suppress(TimeoutError):
            async with asyncio.timeout(self.patience.behind_s):
                await self.cache.superseded(edit.ref, edit.seen)
        return False

    @abstractmethod
    async def _edit(self, edit: Edit) -> bool:
        """Change the entry at one ref if it is unchanged, and wait until the watch shows it."""

    async def _read(self, path: str, kind: type[T]) -> T | None:
        """Return an object from the API server; None if it is absent."""
        backoff = self.patience.backoff()
        while True:
            try:
                return decode(kind, await self.client.get(path))
            except ApiError as exc:
                if exc.is_absent:
                    return None
                if exc.is_definite:
                    raise
            await backoff.sleep()
