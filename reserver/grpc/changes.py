"""Update, Extend and Release: each fails if the reservation was changed meanwhile."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType

from reserver.base.pacer import Pacer
from reserver.errors import InvalidInput, under
from reserver.grpc import documents, status_errors
from reserver.grpc.catalogue import Catalogue
from reserver.reservations.digest import etag
from reserver.reservations.placement import clipped
from reserver.reservations.reservation import Ref, Reservation
from reserver.scheduling.dry_run import judge_set
from reserver.scheduling.state import Readiness, State, require_ready, up_to_date
from reserver.scheduling.suitability import suits
from reserver.scheduling.what_if import promised
from reserver.stores.configmap import entry_edits
from reserver.stores.edits import Edit
from reserver.stores.stores import Stores
from reserver.v1 import reservation_pb2 as pb

_TRIES = 3

_Changed = tuple[str, Reservation | None]
"""The new text, and its reservation if that needs new room, which was found."""


def _stays(new: Reservation, old: Reservation) -> bool:
    """Return whether a changed reservation needs no more room, so that its placement stays."""
    if new.node or old.node:
        return new.node == old.node and all(
            amount * new.slots <= old.resources.get(name, 0) * old.slots
            for name, amount in new.resources.items()
        )
    slot_is_less = all(
        amount <= old.resources.get(name, 0) for name, amount in new.resources.items()
    )
    return new.placement == old.placement and new.slots <= old.slots and slot_is_less


def _only_labels_differ(new: Reservation, old: Reservation) -> bool:
    """Return whether the spec is unchanged, so that claims stay and no room is needed."""
    is_same = (new.description, new.is_retained) == (old.description, old.is_retained)
    return is_same and etag(new) == etag(old)


@dataclass(eq=False, repr=False)
class Changes:
    """Changes and releases reservations."""

    state: State
    clock: Callable[[], float]
    catalogue: Catalogue
    stores: Stores
    readiness: Readiness

    async def update(self, request: pb.UpdateRequest) -> pb.Reservation:
        """Replace a spec, and set or remove labels; a larger hold must fit.

        Raises:
            InvalidInput: a field is invalid.
            CallError: the reservation is absent, lacks room or was changed meanwhile.
            ApiError: the write failed.
        """
        ref, asked_at = self.catalogue.find(request.name), self.clock()
        status_errors.require_change_of_labels(request, ref)
        labels = {**request.labels, **dict.fromkeys(request.remove_labels)}

        async def change(text: str, old: Reservation) -> _Changed:
            grown = None
            with under("spec"):
                written = documents.write(request.spec, asked_at) | documents.unshown(text)
                if not any(map(request.spec.HasField, ("expires_at", "ttl", "schedule"))):
                    written |= documents.expiry(old)
                new = self.catalogue.read(written, ref)
                if not new.node:
                    placed = clipped(self.state.ledger.placed(old), new.most_slots)
                    new = replace(new, placed=placed)
                status_errors.require_future(new, "expiresAt", self.clock())
            if labels and _only_labels_differ(new, old):
                return text, None
            self._require_quota(new, old, "spec")
            # Another reservation inherits no claims, so it holds more than the unclaimed slots.
            ends = new.edition != old.edition and self.state.ledger.claims_lost_by_extension(ref)
            is_same = new.identity == old.identity and not ends
            is_left = not old.is_whole and self.state.ledger.claimed(ref)
            if not is_same and (is_left or not _stays(new, old)):
                grown = new = await self._require_room(new, old, request.name)
                self._require_quota(new, old, "spec")
                require_ready(self.readiness)  # This process may have been stopped meanwhile.
            written = documents.newer(text) | written
            whole = documents.with_placements(written, new.placed, ref)
            return documents.encode(whole), grown

        return await self._edit(ref, request.etag, change, labels)

    async def extend(self, request: pb.ExtendRequest) -> pb.Reservation:
        """Change the expiry of a reservation.

        Raises:
            InvalidInput: a field is invalid.
            CallError: the reservation is absent, would lose claims or was changed meanwhile.
            ApiError: the write failed.
        """
        ref = self.catalogue.find(request.name)
        asked_at = self.clock()
        until = request.WhichOneof("until")
        if until is None:
            raise InvalidInput("until", "is missing", "give expiresAt or ttl")
        if until == "ttl":
            lifetime = documents.lifetime(documents.seconds_of(request.ttl), asked_at)
        else:
            lifetime = {"expiresAt": documents.moment(request.expires_at, "expiresAt")}

        async def change(text: str, old: Reservation) -> _Changed:
            if old.recurrence is not None:
                remedy = "change schedule.until or schedule.duration: reserver edit"
                raise InvalidInput("name", "belongs to a recurring reservation", remedy)
            if claims := self.state.ledger.claims_lost_by_extension(ref):
                raise status_errors.partly_claimed(old, claims)
            written = documents.with_lifetime(text, lifetime, ref)
            new = self.catalogue.read(written, ref, is_stored=True)
            status_errors.require_future(new, until, self.clock())
            self._require_quota(new, old, until)
            return documents.encode(written), None

        return await self._edit(ref, request.etag, change)

    async def release(self, request: pb.ReleaseRequest) -> None:
        """Remove a reservation, whose hold has ended when this returns.

        Raises:
            InvalidInput: the name is invalid.
            CallError: the reservation is absent, or was changed meanwhile.
            ApiError: the removal failed.
        """
        ref = self.catalogue.find(request.name)
        for _ in range(_TRIES):
            if not ref.item and self.catalogue.problem(ref) is not None:
                old, text = None, self.catalogue.text(ref)
            else:
                old, text = self._current(ref, request.etag)
            key = ref._replace(item="")
            if ref.item:
                edit = entry_edits.remove(key, text, (old,) if old else ())
                done = edit is None or await self.stores.edit(edit)
            else:
                done = await self.stores.edit(Edit(key, text, None, "released"))
            if done:
                return
            if self.catalogue.reservation(ref) == old:
                break  # Unchanged: the cache lags behind, so the client has to retry later.
        raise status_errors.changed_meanwhile(ref)

    def _require_quota(self, new: Reservation, old: Reservation, path: str) -> None:
        new = replace(new, created_at=old.created_at)
        if why := self.state.ledger.quotas.trial([new], self.clock(), old):
            raise status_errors.quota_exceeded(why, path)

    async def _require_room(self, new: Reservation, old: Reservation, name: str) -> Reservation:
        # As in Bind: a broken watch may not have shown yet that the room is taken.
        await up_to_date(self.readiness, self.state.ledger, self.clock)
        pacer = Pacer()
        judging = partial(judge_set, state=self.state, clock=self.clock, instead=old)
        if new.placed and sum(part.slots for part in new.placed) == new.slots:
            here = [new.on(part) for part in new.placed]
            is_allowed = suits(new, self.state).is_allowed
            if is_allowed and not (await pacer.run(judging(here))).lacks:
                return new
        verdict = await pacer.run(judging([new]))
        if verdict.lacks:
            raise status_errors.no_room(verdict.lacks, [name], "spec")
        return verdict.reservations[0]

    def _settle(self, ref: Ref) -> None:
        """Keep a changed reservation on its nodes, if they still suit it."""
        ledger = self.state.ledger
        ledger.advance(self.clock())
        reservation = ledger.get(ref)
        if (
            reservation is not None
            and ledger.is_edited(ref)
            and all(suits(reservation, self.state))
        ):
            ledger.keep(ref)

    def _current(self, ref: Ref, tag: str) -> tuple[Reservation, str]:
        old = self.catalogue.reservation(ref)
        if old is None:
            if (broken := self.catalogue.problem(ref)) is not None:
                raise status_errors.unreadable(str(ref), broken.status.message)
            raise status_errors.missing(str(ref))
        if tag and tag != etag(old):
            raise status_errors.changed_meanwhile(ref)
        return old, self.catalogue.text(ref)

    async def _edit(
        self,
        ref: Ref,
        tag: str,
        change: Callable[[str, Reservation], Awaitable[_Changed]],
        labels: Mapping[str, str | None] = MappingProxyType({}),
    ) -> pb.Reservation:
        """Change an entry and its labels (`Edit.labels`), repeated after conflicting writes."""
        if ref.item:
            problem = "is an item of a list, which only its manager changes"
            raise InvalidInput("name", problem, "name a reservation with a key of its own")
        for _ in range(_TRIES):
            old, text = self._current(ref, tag)
            new, grown = await change(text, old)  # No `await` after its last check of the room.
            there = self.stores.labels(ref)
            changed = {key: each for key, each in labels.items() if there.get(key) != each}
            edit = Edit(ref, text, new, "changed", labels=changed)
            with (
                promised(grown, self.state) if grown else nullcontext(),
                self.state.changing(old.identity) if new != text else nullcontext(),
            ):
                is_done = (new == text and not changed) or await self.stores.edit(edit)
            if is_done:
                self._settle(ref)
                return self.catalogue.show_one(ref)
            if self.catalogue.text(ref) == text:
                break  # Unchanged: the cache lags behind, so the client has to retry later.
        raise status_errors.changed_meanwhile(ref)
