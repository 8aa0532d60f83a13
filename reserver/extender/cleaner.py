"""The cleaner: removes ended entries, which hold nothing even before that."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from itertools import accumulate, islice, takewhile
from math import inf
from typing import Protocol

import structlog

from reserver.base.pacer import Backoff, Pacer
from reserver.base.quarantine import quarantined
from reserver.errors import ApiError, Fault
from reserver.k8s.work_queue import WorkQueue
from reserver.reservations.enums import StoreKind
from reserver.reservations.listener import Listener
from reserver.reservations.reservation import Ref
from reserver.stores.edits import Edit, Tidying
from reserver.stores.writer import StoreEdits

log = structlog.get_logger(__name__)

REFUSED = Backoff(5.0, 300.0)
"""The back-off after the API server has refused an edit."""

_UNSURE_S = 5.0
"""Longest wait after any other failure, in seconds."""

_AT_ONCE = 4
"""Most ConfigMaps and Reservations that are written concurrently."""

_MOST_EDITS = 500
_MOST_CHARACTERS = 2**18
"""Most edits in one request, and most characters that they replace and write."""


class Cleaned(Protocol):
    """A store that the cleaner edits."""

    def due_edit(self, ref: Ref, now: float) -> Tidying | None:
        """Return the due edit of a ref without `item` at `now` (unix seconds), or None."""


class Cleaner(Listener):
    """Removes entries that have expired or were claimed, unless they have changed since.

    Claimed entries are removed at once: the pod with the claim may be deleted at any moment, and
    after a restart the entry would then look unclaimed.

    Attributes:
        queue: the keys that may have to be edited.
        edits: edits made so far.
        lost: edits that failed because another client changed the key first.
    """

    def __init__(
        self,
        edits: StoreEdits,
        clock: Callable[[], float],
        done: Callable[[Tidying], None] = lambda _: None,
        refused: Callable[[Ref, ApiError], None] = lambda *_: None,
        on_fault: Callable[[Ref, Fault], None] = lambda *_: None,
        queue: WorkQueue[Ref] | None = None,
    ) -> None:
        """Begin with an empty queue.

        Args:
            clock: unix seconds.
            done: called with each edit made.
            refused: called with each key whose write the API server refused, and the error.
            on_fault: called with each key whose check raised a fault.
            queue: the keys that may have to be edited.
        """
        self._on_fault = on_fault
        self._refused = refused
        self._edits = edits
        self._clock = clock
        self._done = done
        self.queue = queue or WorkQueue("cleaner", REFUSED, group=written_together)
        self.edits = 0
        self.lost = 0

    def on_reservation_changed(self, ref: Ref) -> None:
        """Queue a key of which an entry may have ended; returns at once."""
        self.queue.add(ref.whole)

    def on_backing_changed(self, ref: Ref) -> None:
        """Do nothing: a change of backing ends no reservation."""

    async def run(self, store: Cleaned, may_write: Callable[[], Awaitable[bool]]) -> None:
        """Clean until cancelled, whenever `may_write` allows writes.

        If another client changes a key first, the watch shows that, and the key is queued again.
        """
        await self.queue.run(partial(self._clean, store, may_write), _AT_ONCE)

    async def _clean(
        self, store: Cleaned, may_write: Callable[[], Awaitable[bool]], refs: list[Ref]
    ) -> None:
        """Make the due edits of one ConfigMap, or of one Reservation."""
        due = await self._due(store, refs)
        while due:
            if not await may_write():
                for edit in due:
                    self.queue.add(edit.ref, _UNSURE_S)
                return
            count = _fitting(due)
            batch, due = await self._still_due(store, due[:count]), due[count:]
            exc = await self._try(batch) if batch else None
            if exc is None:
                continue
            if exc.is_away:
                batch, due = [*batch, *due], []
            log.warning("store cannot be cleaned, retrying", key=str(batch[0].ref), why=str(exc))
            for edit in batch:
                self.queue.failed(edit.ref, exc, edit, inf if exc.is_definite else _UNSURE_S)
                if exc.is_definite:
                    self._refused(edit.ref, exc)

    async def _due(self, store: Cleaned, refs: list[Ref]) -> list[Tidying]:
        due: list[Tidying] = []
        pacer = Pacer()
        for ref in refs:
            with quarantined("cleaner", ref, partial(self._on_fault, ref)):
                edit = store.due_edit(ref, self._clock())
                if edit is None:
                    self.queue.succeeded(ref)
                elif not self.queue.rests(ref, edit):
                    due.append(edit)
            await pacer.give_way()
        return due

    async def _still_due(self, store: Cleaned, batch: list[Tidying]) -> list[Tidying]:
        """Return the edits of a batch, those that end reservations only if they are still due.

        While etcd was asked, an entry may have been removed and written again with the same text,
        which the edit's precondition cannot tell from the old one.
        """
        ending = await self._due(store, [edit.ref for edit in batch if edit.endings])
        return [*ending, *(edit for edit in batch if not edit.endings)]

    async def _try(self, batch: list[Tidying]) -> ApiError | None:
        """Make edits; return the error of a failure."""

        def on_fault(fault: Fault) -> None:
            for edit in batch:
                self._on_fault(edit.ref, fault)

        with quarantined("cleaner", batch[0].ref, on_fault):
            try:
                await self._make(batch)
            except ApiError as exc:
                return exc
        return None

    async def _make(self, batch: list[Tidying]) -> None:
        """Make edits in one request if possible, else in halves.

        Raises:
            ApiError: the API server refused, or did not answer.
        """
        if len(batch) == 1:
            self._count(batch, done=await self._edits.edit(batch[0]))
            return
        at_once = [edit for edit in batch if isinstance(edit, Edit)]
        if await self._edits.edit_all(at_once):
            self._count(batch, done=True)
            return
        half = len(batch) // 2
        await self._make(batch[:half])
        await self._make(batch[half:])

    def _count(self, batch: Iterable[Tidying], *, done: bool) -> None:
        for edit in batch:
            self.queue.succeeded(edit.ref)
            if done:
                self._done(edit)
            self.edits += done
            self.lost += not done
            # An edit that removes nothing is routine: no log line for each of thousands.
            is_routine = done and isinstance(edit, Edit) and not edit.endings
            write = log.debug if is_routine else log.info
            write("entry cleaned", key=str(edit.ref), reason=edit.reason, done=done)


def _fitting(due: list[Tidying]) -> int:
    """Return the number of edits, from the first on, for one request."""
    sizes = (len(each.seen) + len(each.value or "") for each in due if isinstance(each, Edit))
    fitting = takewhile(_MOST_CHARACTERS.__ge__, accumulate(islice(sizes, _MOST_EDITS)))
    return max(1, sum(1 for _ in fitting))


def written_together(ref: Ref) -> Ref:
    """Return the group that one request can edit: a ConfigMap, or a Reservation."""
    return ref._replace(key="") if ref.kind is StoreKind.CONFIGMAP else ref
