"""The cleaner: tidies the store. Nothing is enforced by it: what is over holds nothing before."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import structlog

from reserver.errors import ApiError, Fault
from reserver.kube.api.apply import Apply
from reserver.pacer import Pacer
from reserver.quarantine import quarantined
from reserver.reservations.reservation import Ref
from reserver.wire.spec.edits import Deletion, Edit, together

log = structlog.get_logger(__name__)

_RETRY_S = 5.0
_AT_ONCE = 50

_FIRST_REST_S = 5.0
_LAST_REST_S = 300.0
"""How long an edit rests that the API server has refused, in seconds: doubled each time."""


@dataclass(slots=True, eq=False)
class _Refusal:
    """An edit that the API server has refused, and that rests."""

    edit: Edit | Deletion
    rest_s: float
    is_resting: bool = True


class Tidied(Protocol):
    """What the cleaner tidies."""

    def due_edit(self, ref: Ref, now: float) -> Edit | Deletion | None:
        """Return the edit that tidies a place, `item` empty, at `now` (unix seconds)."""


class Cleaner:
    """Removes entries that have expired or were claimed, each only as it was seen.

    What was claimed goes at once: the pod that says so may be deleted any moment, and whoever
    starts after that would take the entry for one that nobody has claimed.

    Attributes:
        edits: how many edits were made.
        lost: how many were not, because somebody else wrote the key in between.
    """

    def __init__(
        self,
        apply: Apply,
        clock: Callable[[], float],
        done: Callable[[Edit | Deletion], None] = lambda _: None,
        refused: Callable[[Ref, ApiError], None] = lambda *_: None,
        spoiled: Callable[[Ref, Fault], None] = lambda *_: None,
    ) -> None:
        """Edit what is due.

        Args:
            apply: to edit through.
            clock: unix seconds.
            done: is told of each edit made.
            refused: is told of each key that the API server did not let us write, and why.
            spoiled: is told of each key that could not be judged.
        """
        self._spoiled = spoiled
        self._refused = refused
        self._apply = apply
        self._clock = clock
        self._done = done
        self._touched: dict[Ref, None] = {}
        self._refusals: dict[Ref, _Refusal] = {}
        self._something_touched = asyncio.Event()
        self.edits = 0
        self.lost = 0

    def touched(self, ref: Ref) -> None:
        """Take note that a key or one of its items may be over now; returns at once."""
        self._touched[ref._replace(item="")] = None
        self._something_touched.set()

    async def run(self, store: Tidied) -> None:
        """Tidy until cancelled."""
        while True:
            await self._something_touched.wait()
            self._something_touched.clear()
            is_done = False
            with quarantined("pass", "cleaner"):
                is_done = await self.tidy(store)
            if not is_done:
                await asyncio.sleep(_RETRY_S)
                self._something_touched.set()

    async def tidy(self, store: Tidied) -> bool:
        """Make every edit that is due now; return whether no more is left to do.

        A key that somebody else has written in between is left to the watch, which will touch it.
        """
        failed: dict[Ref, None] = {}
        pacer = Pacer()
        while self._touched:
            batches = together(await self._take_due(store, pacer))
            while batches:
                batch = batches.pop(0)
                exc = await self._try(batch)
                if exc is not None:
                    where = str(batch[0].ref)
                    log.warning("store cannot be tidied, retrying", key=where, why=str(exc))
                    if exc.is_definite:  # Other places may be allowed.
                        for edit in batch:
                            self._let_rest(edit)
                            self._refused(edit.ref, exc)
                    else:
                        failed |= dict.fromkeys(edit.ref for edit in batch)
                        left = (edit.ref for later in batches for edit in later)
                        self._touched |= failed | dict.fromkeys(left)
                        return False
        self._touched |= failed
        return not failed

    async def _take_due(self, store: Tidied, pacer: Pacer) -> list[Edit | Deletion]:
        """Return some of the edits that are due; what is touched meanwhile is looked at again."""
        due: list[Edit | Deletion] = []
        while self._touched and len(due) < _AT_ONCE:
            ref = next(iter(self._touched))
            del self._touched[ref]
            with quarantined("cleaner", ref, partial(self._spoiled, ref)):
                edit = store.due_edit(ref, self._clock())
                if edit is None:
                    self._refusals.pop(ref, None)
                elif not self._is_resting(edit):
                    due.append(edit)
            await pacer.give_way()
        return due

    async def _try(self, batch: list[Edit | Deletion]) -> ApiError | None:
        """Make edits; return why they could not be made."""

        def spoil(fault: Fault) -> None:
            for edit in batch:
                self._spoiled(edit.ref, fault)

        with quarantined("cleaner", batch[0].ref, spoil):
            try:
                await self._make(batch)
            except ApiError as exc:
                return exc
        return None

    def _is_resting(self, edit: Edit | Deletion) -> bool:
        refusal = self._refusals.get(edit.ref)
        return refusal is not None and refusal.is_resting and refusal.edit == edit

    def _let_rest(self, edit: Edit | Deletion) -> None:
        """Do not make an edit again at once, unless it becomes another one."""
        before = self._refusals.get(edit.ref)
        is_again = before is not None and before.edit == edit
        rest_s = min(2 * before.rest_s, _LAST_REST_S) if before and is_again else _FIRST_REST_S
        refusal = self._refusals[edit.ref] = _Refusal(edit, rest_s)
        asyncio.get_running_loop().call_later(rest_s, self._wake, refusal)

    def _wake(self, refusal: _Refusal) -> None:
        refusal.is_resting = False
        if self._refusals.get(refusal.edit.ref) is refusal:
            self.touched(refusal.edit.ref)

    async def _make(self, batch: list[Edit | Deletion]) -> None:
        """Make edits in one request where that can be, and otherwise each by itself.

        Raises:
            ApiError: the API server refused, or did not answer.
        """
        at_once = [edit for edit in batch if isinstance(edit, Edit)]
        if len(at_once) > 1 and await self._apply.edit_all(at_once):
            self._count(batch, done=True)
            return
        for edit in batch:
            self._count((edit,), done=await self._apply.edit(edit))

    def _count(self, batch: Iterable[Edit | Deletion], *, done: bool) -> None:
        for edit in batch:
            self._refusals.pop(edit.ref, None)
            if done:
                self._done(edit)
            self.edits += done
            self.lost += not done
            log.info("store tidied", key=str(edit.ref), reason=edit.reason, done=done)
