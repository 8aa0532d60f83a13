"""The placer: chooses nodes for reservations that name none, and new ones if these are gone.

A decision holds at once. The cleaner writes the place into the entry, or the status writer into the
Reservation, unless they have changed since; until then a former place is held too, and if the API
server refuses the write, the hold ends. A waiting reservation is tried again when a node has
changed, unless that cannot help.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from itertools import product

import structlog

from reserver.base.pacer import Backoff, Pacer
from reserver.base.quarantine import quarantined
from reserver.errors import ApiError, Fault
from reserver.extender.placing_pass import Notice, PlacingPass, Unplaced, shape_of
from reserver.k8s.work_queue import WorkQueue
from reserver.reservations.ledger import Ledger
from reserver.reservations.listener import Listener
from reserver.reservations.placement import Parts, joined, nodes_of
from reserver.reservations.reservation import Ref, Reservation
from reserver.scheduling.placement import Placed, slot_pod
from reserver.scheduling.state import State
from reserver.scheduling.suitability import suits

log = structlog.get_logger(__name__)

_PAUSE_S = 0.1
"""Seconds between passes: changes come in bursts."""

UNWRITTEN = Backoff(5.0, 300.0)
"""The back-off of a reservation whose place could not be written, in seconds."""

_SAY_AGAIN_S = 10.0
"""Least seconds between reports of a reservation's obstacle."""


class Placer(Listener):
    """Places reservations that name no node.

    Attributes:
        queue: reservations to look at, and nodes with possible room.
        placed: placements so far, repeated ones included.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        seated: Callable[[str], None] = lambda _: None,
        report: Callable[[Notice], None] = lambda _: None,
        on_fault: Callable[[Ref, Fault], None] = lambda *_: None,
        queue: WorkQueue[Ref | str] | None = None,
    ) -> None:
        """Begin without reservations.

        Args:
            clock: unix seconds.
            seated: called with each node on which a reservation is placed.
            report: called with each Event on a reservation.
            on_fault: called with each reservation that raised a fault.
            queue: reservations to look at, and nodes with possible room.
        """
        self._clock = clock
        self._seated = seated
        self._report = report
        self._on_fault = on_fault
        self.queue = queue or WorkQueue("placer", UNWRITTEN)
        self._wishes: dict[Ref, Unplaced] = {}
        self._unwritten: dict[Ref, ApiError] = {}
        self._unsuited: set[Ref] = set()
        self._anywhere: set[Ref] = set()
        self._is_deciding = False
        self.placed = 0

    def on_reservation_changed(self, ref: Ref) -> None:
        """Queue a reservation that may need a place, or no longer; returns at once."""
        if not self._is_deciding:
            self.queue.add(ref)

    def on_backing_changed(self, ref: Ref) -> None:
        """Do nothing: a placed reservation keeps its place, backed or not."""

    def on_node_changed(self, node: str) -> None:
        """Queue a node that may have room, if any reservation waits; returns at once."""
        if self._wishes or self._unsuited:
            self.queue.add(node)

    def unsuited(self, ref: Ref, anywhere: bool) -> None:  # noqa: FBT001 - as `Features` has it
        """Queue a reservation that should leave its place; returns at once.

        It keeps its place until there is another one, by its placement or, with `anywhere`, from
        now on by its pod's own constraints.
        """
        self._unsuited.add(ref)
        if anywhere:
            self._anywhere.add(ref)
        self.queue.add(ref)

    def refused(self, ref: Ref, error: ApiError) -> None:
        """Queue a reservation whose place cannot be written; returns at once."""
        self._unwritten[ref] = error
        self.queue.add(ref)

    async def run(self, state: State) -> None:
        """Place until cancelled."""
        await self.queue.passes(partial(self.look, state), _PAUSE_S)

    async def look(self, state: State, pacer: Pacer) -> None:
        """Make one pass: place the reservations that fit now, oldest first."""
        await pacer.run(state.ledger.advancing(self._clock()))
        keys = self.queue.take_all()
        current = PlacingPass([key for key in keys if isinstance(key, str)], pacer)
        for ref in dict.fromkeys((*keys, *(self._unsuited if current.changed else ()))):
            if isinstance(ref, str):
                continue
            with self._deciding(ref):
                if error := self._unwritten.pop(ref, None):
                    self._take_back(ref, error, state)
                self._consider(ref, state)
            with self._judging(ref):
                await self._settle_placed(ref, state, current)
            await self._give_way(current, state)
        for ref, wish in sorted(self._wishes.items(), key=lambda each: -each[1].put_off):
            with self._judging(ref):
                rests = self.queue.rests(ref, wish.digest)
                if wish.is_new or (not rests and current.may_help(wish, state)):
                    await self._try(ref, wish, state, current)
            await self._give_way(current, state)

    async def _give_way(self, current: PlacingPass, state: State) -> None:
        """Let other work run if the pass takes long."""
        if await current.pacer.give_way():
            await current.pacer.run(state.ledger.advancing(self._clock()))
            current.allowed_nodes.clear()

    def _consider(self, ref: Ref, state: State) -> None:
        """Update whether a reservation needs a place."""
        if (parts := state.ledger.compact(ref, state.has_shown_pods)) is not None:
            state.ledger.place(ref, parts)
        reservation = state.ledger.get(ref)
        if reservation is None or not state.ledger.wants_place(ref)[1]:
            self._wishes.pop(ref, None)
            if reservation is None:
                self.queue.succeeded(ref)
                self._anywhere.discard(ref)
            return
        pod = slot_pod(reservation.anywhere if ref in self._anywhere else reservation)
        is_anywhere = ref in self._anywhere and reservation.fallback is not None
        shape = shape_of(reservation, pod, state, is_anywhere=is_anywhere)
        rules, digest = reservation.rules, reservation.digest
        wish = self._wishes.setdefault(ref, Unplaced(pod, rules, shape, digest))
        wish.pod, wish.rules, wish.shape, wish.digest = pod, rules, shape, digest
        wish.is_new = not self.queue.rests(ref, digest)

    async def _try(self, ref: Ref, wish: Unplaced, state: State, current: PlacingPass) -> None:
        """Place a reservation, or report why it has no place."""
        wish.is_new = False
        reservation = state.ledger.get(ref)
        kept, slots = state.ledger.wants_place(ref)
        if reservation is None or not slots:
            self._wishes.pop(ref, None)
            return
        key = (wish.shape, slots, *state.closures.tiers(reservation))
        found = current.hopeless.get(key)
        if found is None and current.is_used_up_for(ref):
            wish.put_off += 1
            self.queue.add(ref)
            return
        wish.put_off = 0
        if found is None:
            found = await self._find(reservation, slots, state, current)
            is_same = state.ledger.get(ref) is reservation
            if not is_same or state.ledger.wants_place(ref) != (kept, slots):
                self.queue.add(ref)  # It changed while other work ran.
                return
        with self._deciding(ref):
            if found.parts:
                del self._wishes[ref]
                self._put(reservation, joined(kept, found.parts), state)
                if state.ledger.wants_place(ref)[1]:
                    self.queue.add(ref)
                return
            current.failed(ref.namespace, key, found)
            if not state.ledger.obstacle(ref):
                self._report(Notice(ref, "NotPlaced", found.why, is_warning=True))
            elif abs(self._clock() - wish.said_at) < _SAY_AGAIN_S:
                return
            wish.said_at = self._clock()
            state.ledger.cannot_place(ref, found.why)

    async def _find(
        self, reservation: Reservation, slots: int, state: State, current: PlacingPass
    ) -> Placed:
        """Find nodes for all slots or, with refill, at least for one."""
        found, numbers = Placed(), (slots, 1) if reservation.refill_up_to else (slots,)
        for meant, number in product(self._meanings(reservation), numbers):
            found = await current.find(meant, number, state)
            if found.parts:
                break
        return found

    def _put(self, reservation: Reservation, parts: Parts, state: State) -> None:
        ref = reservation.ref
        state.ledger.place(ref, parts)
        self.placed += 1
        log.info("placed", reservation=str(ref), nodes=nodes_of(parts))
        self._report(Notice(ref, "Placed", f"placed on {nodes_of(parts)}", is_warning=False))
        for part in parts:
            self._seated(part.node)

    async def _settle_placed(self, ref: Ref, state: State, current: PlacingPass) -> None:
        """Keep the place of an edited or unsuited reservation, or place it again.

        If its place is allowed but full, and no other has room, it stays. A reservation that has to
        leave its node also stays until there is another place, and so does a seat in any case: an
        evicted pod has no other.
        """
        reservation, ledger = state.ledger.get(ref), state.ledger
        if reservation is None or ledger.wants_place(ref)[1] or not self._is_open(ref, ledger):
            self._unsuited.discard(ref)
            return
        meanings = self._meanings(reservation)
        leaving = state.closures.leaving(reservation)
        suited = suits(meanings[-1], state)
        if suited.is_allowed and suited.has_room and not leaving:
            self._unsuited.discard(ref)
            with self._deciding(ref):
                ledger.keep(ref)
            return
        if current.is_used_up_for(ref):
            self.queue.add(ref)
            return
        found = await current.elsewhere(meanings, leaving, state)
        if ledger.get(ref) is not reservation or not self._is_open(ref, ledger):
            self.queue.add(ref)  # It changed while other work ran.
            return
        with self._deciding(ref):
            if found.parts:
                self._unsuited.discard(ref)
                self._put(reservation, found.parts, state)
            elif suited.is_allowed and not leaving:
                self._unsuited.discard(ref)
                ledger.keep(ref)
            elif leaving or reservation.is_seat:
                self._unsuited.add(ref)
                ledger.keep(ref)
                if not leaving:
                    ledger.cannot_place(ref, found.why)
            else:
                ledger.place(ref, ())
                self.queue.add(ref)

    def _meanings(self, reservation: Reservation) -> tuple[Reservation, ...]:
        """Return the versions of a reservation to place, in order of preference.

        For a seat that may be anywhere, the first is its own placement, if there is room now.
        """
        if reservation.ref not in self._anywhere:
            return (reservation,)
        return replace(reservation, is_seat=False), reservation.anywhere

    def _is_open(self, ref: Ref, ledger: Ledger) -> bool:
        """Return whether the place of a placed reservation is to be decided again."""
        return ledger.is_edited(ref) or ref in self._unsuited

    def _take_back(self, ref: Ref, error: ApiError, state: State) -> None:
        """Restore the place in a reservation's entry."""
        reservation = state.ledger.get(ref)
        recorded = state.ledger.recorded_place(ref)
        if reservation is None or reservation.placed == recorded:
            return
        state.ledger.place(ref, recorded)
        state.ledger.cannot_place(ref, f"its place cannot be written down: {error}")
        self.queue.failed(ref, what=reservation.digest)

    @contextmanager
    def _deciding(self, ref: Ref) -> Iterator[None]:
        """Ignore notifications of the placer's own changes within the block."""
        self._is_deciding = True
        try:
            with self._judging(ref):
                yield
        finally:
            self._is_deciding = False

    def _judging(self, ref: Ref) -> AbstractContextManager[object]:
        return quarantined("placer", ref, partial(self._on_fault, ref))
