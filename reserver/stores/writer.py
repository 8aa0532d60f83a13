"""The writer of a store: creates and edits reservations. Both kinds of stores share it.

A reservation holds from the moment it is decided, before the API server is asked; if it is then not
written, its hold ends.
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
from reserver.stores.configmap.entries import Entries
from reserver.stores.configmap.entry_edits import Deletion, Edit
from reserver.stores.object.edits import Abandonment, Tidying


class StoreEdits:
    """Carries out edits of the stores."""

    def __init__(self, client: ApiClient) -> None:
        """Write through a client."""
        self._client = client

    async def edit(self, edit: Tidying) -> bool:
        """Change one entry of the store; return False when somebody else was faster.

        Raises:
            ApiError: the API server refused, or did not answer.
        """
        if isinstance(edit, Deletion):
            return await self._delete(edit)
        return await self.edit_at(edit) is not None

    async def edit_all(self, edits: Sequence[Edit]) -> bool:
        """Make all edits, which are of one ConfigMap, or none; return False when none was made.

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

    async def edit_at(self, edit: Edit | Abandonment) -> int | None:
        """Do as `edit` does, and return the resourceVersion that this made; None if not done.

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
"""How much goes into one object; the API server takes 1 MiB, and others may write, too."""

MOST_TRIES = 5
"""How often an edit is repeated after somebody else was faster."""

Outcome = ReserverError | None
"""Why something was not written; None once it is."""

C = TypeVar("C", bound=Cache[Any, Any])
T = TypeVar("T")


class Patience(NamedTuple):
    """The waiting times of a writer, in seconds.

    Attributes:
        first_s: before a request without an answer is sent again.
        last_s: before that, after many.
        behind_s: for a watch to show the write of somebody who was faster.
    """

    first_s: float = 0.1
    last_s: float = 5.0
    behind_s: float = 5.0

    def backoff(self) -> Backoff:
        """Return the waits before a request without an answer is sent again."""
        return Backoff(self.first_s, self.last_s)


PATIENT = Patience()


@dataclass(eq=False, repr=False)
class Writer(ABC, Generic[C]):
    """Writes reservations into one kind of store, in one namespace; changes them anywhere.

    Attributes:
        cache: what is written there, and being written.
        namespace: of what is new.
        tasks: owns the writes under way.
        patience: how long to wait.
        writes: how many requests were made.
    """

    client: ApiClient
    cache: C
    namespace: str
    tasks: asyncio.TaskGroup
    patience: Patience = PATIENT
    writes: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        """Begin with nothing under way."""
        self._edits = StoreEdits(self.client)

    @abstractmethod
    def find(self, name: str) -> Ref | None:
        """Return where the reservation of a name is written, or being written."""

    @abstractmethod
    def new_ref(self, sizes: Mapping[str, int]) -> Ref:
        """Return a ref, its key empty, with room for texts of so many bytes by name.

        Raises:
            InvalidInput: there is none for so many.
        """

    def insert(
        self,
        ref: Ref,
        texts: Mapping[str, str],
        entries: Mapping[str, Entries],
        labels: Mapping[str, Mapping[str, str]],
        owner: Mapping[str, object] | None = None,
    ) -> asyncio.Task[Outcome]:
        """Begin to write reservations, all or none; they hold from now on.

        The write goes on if nobody waits for it.

        Args:
            ref: where (`new_ref`).
            texts: what to write by name; of an object its spec as JSON, with an `origin` that no
                other object has.
            entries: what each text says.
            labels: of objects, by name.
            owner: the owner reference of objects, with which they go; None for nobody's.
        """
        specs = {ref._replace(key=key): text for key, text in texts.items()}
        set_id = f"{ref.namespace}/{uuid4().hex}" if len(specs) > 1 else ""
        for each, text in specs.items():
            expected = Expected(text, entries[each.key], labels.get(each.key, {}), set_id, owner)
            self.cache.expect(each, expected)
        return self.tasks.create_task(self._insert(specs, set_id))

    @abstractmethod
    async def _insert(self, specs: Mapping[Ref, str], set_id: str) -> Outcome:
        """Write what is expected, as a set if it is one; what fails holds no more."""

    async def edit(self, edit: Edit) -> bool:
        """Change or remove what stands at one ref and return once that is in force.

        Returns:
            False if it is not as it was seen: somebody else was faster. What they have written
            is seen by then, unless a watch is late: the cleaner removes what was claimed.

        Raises:
            InvalidInput: the API server does not take it.
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
        """Change what stands at one ref if it is as it was seen, and wait until it is shown."""

    async def _read(self, path: str, kind: type[T]) -> T | None:
        """Return an object as the API server has it now, None if there is none."""
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
