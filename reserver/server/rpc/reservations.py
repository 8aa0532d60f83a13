"""ReservationService: creates, shows, follows, changes and ends reservations."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import grpc
from cachetools import TTLCache

from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput, ReserverError, Taken
from reserver.reservations.reservation import Ref, Reservation
from reserver.scheduling.admit import Lack, judge_set
from reserver.scheduling.state import State
from reserver.server.rpc import refusal
from reserver.server.rpc.caller import caller
from reserver.server.rpc.catalogue import Catalogue
from reserver.server.rpc.feed import Change, Feed
from reserver.server.rpc.paging import Pages
from reserver.server.rpc.refusal import Refusal
from reserver.server.rpc.selection import Selection
from reserver.v1 import reservation_pb2 as pb
from reserver.v1.reservation_pb2_grpc import ReservationServiceServicer
from reserver.wire import edits, grpcform, names, specform
from reserver.wire.edits import Edit
from reserver.wire.store import Entries

MOST_IN_SET = 500
MOST_REQUEST_ID = 64

_REMEMBERED = 50_000
"""So many reservations that were created with a request id are remembered."""

_REMEMBERED_S = 600.0
"""How long a request id is known after what it created has gone, in seconds."""

_TRIES = 3

Aio = grpc.aio.ServicerContext[Any, Any]


class Booking(Protocol):
    """What writes reservations (`kube.booking.Booking`)."""

    def find(self, name: str) -> Ref | None:
        """Return where the reservation of a name is written, or being written."""

    def place(self, size: int) -> Ref:
        """Return a place, its key empty, with room for so many bytes of keys and values."""

    def insert(
        self, place: Ref, texts: Mapping[str, str], entries: Mapping[str, Entries]
    ) -> asyncio.Task[ReserverError | None]:
        """Begin to write keys, all or none; they hold from now on."""

    async def edit(self, edit: Edit) -> bool:
        """Change one key and return once that is in force; False if somebody was faster."""


@dataclass(frozen=True, slots=True)
class _Begun:
    """A request to create that is under way, or done.

    Attributes:
        request: digest of what was asked for, to tell it from another one of the same id.
        refs: where it is written.
        shown: how it was in the beginning.
        task: ends when it is known whether it was written.
    """

    request: bytes
    refs: tuple[Ref, ...]
    shown: tuple[pb.Reservation, ...]
    task: asyncio.Task[ReserverError | None]


class Reservations(ReservationServiceServicer):
    """ReservationService on a catalogue, a feed and a booking."""

    def __init__(
        self,
        state: State,
        clock: Callable[[], float],
        catalogue: Catalogue,
        feed: Feed,
        booking: Booking,
    ) -> None:
        """Serve what a state decides; `clock` gives unix seconds."""
        self._state = state
        self._clock = clock
        self._catalogue = catalogue
        self._feed = feed
        self._booking = booking
        self._begun: TTLCache[tuple[str, str], _Begun] = TTLCache(
            _REMEMBERED, _REMEMBERED_S, clock, lambda begun: len(begun.refs)
        )

    async def Create(self, request: pb.CreateRequest, context: Aio) -> pb.CreateResponse:  # noqa: ARG002, N802
        """Write a reservation; its hold is in force when this returns."""
        begun = self._once(request, request.request_id)
        if begun is None:
            begun = self._begin(request, [(request.name, request.spec)], "", strict=False)
        (reservation,) = await self._finish(begun, request.request_id)
        return pb.CreateResponse(reservation=reservation)

    async def CreateSet(self, request: pb.CreateSetRequest, context: Aio) -> pb.CreateSetResponse:  # noqa: ARG002, N802
        """Write several reservations that are all backed at this instant, or none."""
        begun = self._once(request, request.request_id)
        if begun is None:
            wanted = [(entry.name, entry.spec) for entry in request.reservations]
            if not 0 < len(wanted) <= MOST_IN_SET:
                problem = f"{len(wanted)} reservations"
                raise InvalidInput("reservations", problem, f"send 1 to {MOST_IN_SET}")
            begun = self._begin(request, wanted, "reservations", strict=True)
        return pb.CreateSetResponse(reservations=await self._finish(begun, request.request_id))

    async def Get(self, request: pb.GetRequest, context: Aio) -> pb.GetResponse:  # noqa: ARG002, N802
        """Return one reservation."""
        return pb.GetResponse(reservation=self._show(self._find(request.name)))

    async def List(self, request: pb.ListRequest, context: Aio) -> pb.ListResponse:  # noqa: ARG002, N802
        """Return reservations, ordered by id, page by page."""
        selection = Selection.of(request.filter)
        pages = Pages.of(request)
        await self._feed.catch_up()
        found = [each for each in self._feed.all() if selection.covers(each)]
        page, token = pages.cut(found, lambda each: each.id)
        return pb.ListResponse(reservations=page, next_page_token=token)

    async def Watch(  # noqa: N802
        self,
        request: pb.WatchRequest,
        context: Aio,  # noqa: ARG002
    ) -> AsyncIterator[pb.WatchResponse]:
        """Follow changes."""
        selection = Selection.of(request.filter)
        await self._feed.catch_up()
        with self._feed.watching() as watcher:
            if request.resume_token:
                for change in self._feed.since(request.resume_token):
                    if message := self._message(change, selection):
                        yield message
            else:
                there, token = self._feed.all(), self._feed.token
                for each in there:
                    if selection.covers(each):
                        added = pb.WatchResponse.KIND_ADDED
                        yield pb.WatchResponse(kind=added, reservation=each)
                yield pb.WatchResponse(kind=pb.WatchResponse.KIND_BOOKMARK, resume_token=token)
            while True:
                change = await watcher.next()
                if message := self._message(change, selection):
                    yield message

    async def Update(self, request: pb.UpdateRequest, context: Aio) -> pb.UpdateResponse:  # noqa: ARG002, N802
        """Replace a spec; more is held only if it fits."""
        ref = self._find(request.name)
        now = self._clock()

        def change(text: str, old: Reservation) -> str:
            written = grpcform.write(request.spec, now, grpcform.request_id_of(text))
            if not (request.spec.HasField("expires_at") or request.spec.HasField("ttl")):
                written |= grpcform.expiry(old)
            new = self._read(ref, written, now, "spec")
            self._require_future(new, "spec.expiresAt", now)
            if not new.holds_no_more_than(old):
                self._require_room([new], [request.name], "spec", instead=old)
            return grpcform.encode_document(written)

        return pb.UpdateResponse(reservation=await self._edit(ref, request.etag, change))

    async def Extend(self, request: pb.ExtendRequest, context: Aio) -> pb.ExtendResponse:  # noqa: ARG002, N802
        """Let a reservation expire at another moment."""
        ref = self._find(request.name)
        now = self._clock()
        until = request.WhichOneof("until")
        if until is None:
            raise InvalidInput("until", "is missing", "say expiresAt or ttl")
        if until == "ttl":
            lifetime = grpcform.lifetime(request.ttl.seconds, now)
        else:
            lifetime = {"expiresAt": grpcform.moment(request.expires_at, "expiresAt")}

        def change(text: str, old: Reservation) -> str:
            if claims := self._state.ledger.claims(ref):
                problem = f"{len(claims)} of {old.slots} slots are claimed; create another one"
                raise Refusal(grpc.StatusCode.FAILED_PRECONDITION, "PARTLY_CLAIMED", problem)
            written = grpcform.with_lifetime(text, lifetime)
            self._require_future(self._read(ref, written, now, ""), until, now)
            return grpcform.encode_document(written)

        return pb.ExtendResponse(reservation=await self._edit(ref, request.etag, change))

    async def Release(self, request: pb.ReleaseRequest, context: Aio) -> pb.ReleaseResponse:  # noqa: ARG002, N802
        """Remove a reservation; it holds nothing when this returns."""
        ref = self._find(request.name)
        for _ in range(_TRIES):
            old, text = self._current(ref, request.etag)
            key = ref._replace(item="")
            if ref.item:
                edit = edits.remove(key, text, lambda r: r.ref == ref)
                done = edit is None or await self._booking.edit(edit)
            else:
                done = await self._booking.edit(Edit(key, text, None, "released"))
            if done:
                return pb.ReleaseResponse()
            if self._catalogue.reservation(ref) == old:
                break  # The same still: our view is behind, so let the client come back.
        raise _aborted(ref)

    # Creating

    def _once(self, request: pb.CreateRequest | pb.CreateSetRequest, name: str) -> _Begun | None:
        """Return what the request has begun before, None if it is new."""
        if len(name) > MOST_REQUEST_ID:
            problem = f"{len(name)} characters are too many"
            raise InvalidInput("requestId", problem, f"send {MOST_REQUEST_ID} at most")
        begun = self._begun.get((caller.get(), name)) if name else None
        if begun is not None and begun.request != _digest(request):
            problem = "was another request's"
            raise InvalidInput("requestId", problem, "choose one for each request")
        return begun

    def _begin(
        self,
        request: pb.CreateRequest | pb.CreateSetRequest,
        wanted: Sequence[tuple[str, pb.ReservationSpec]],
        path: str,
        *,
        strict: bool,
    ) -> _Begun:
        """Decide, let it hold, and begin to write it: nothing comes in between."""
        now = self._clock()
        paths = [f"{path}[{index}]." if path else "" for index in range(len(wanted))]
        written = []
        for at, (_, spec) in zip(paths, wanted, strict=True):
            with _under(f"{at}spec"):
                written.append(grpcform.write(spec, now, request.request_id))
        texts = {}
        for at, (name, _), each in zip(paths, wanted, written, strict=True):
            names.check_subdomain(name, f"{at}name", "a reservation's name")
            if name in texts:
                raise InvalidInput(f"{at}name", f"{name} stands before", "name each one once")
            texts[name] = grpcform.encode_document(each)
        existing = self._existing(list(texts), request.request_id, paths)
        if existing is not None:
            return self._remember(request, existing, _done())
        place = self._booking.place(sum(len(k) + len(t.encode()) for k, t in texts.items()))
        new = [
            self._read(place._replace(key=name), each, now, f"{at}spec")
            for at, name, each in zip(paths, texts, written, strict=True)
        ]
        for at, one in zip(paths, new, strict=True):
            self._require_future(one, f"{at}spec.expiresAt", now)
        if strict:
            self._require_start(new, now)
            self._require_room(new, list(texts), path)
        entries = {each.ref.key: Entries((each,)) for each in new}
        task = self._booking.insert(place, texts, entries)
        return self._remember(request, tuple(each.ref for each in new), task)

    def _remember(
        self,
        request: pb.CreateRequest | pb.CreateSetRequest,
        refs: tuple[Ref, ...],
        task: asyncio.Task[ReserverError | None],
    ) -> _Begun:
        begun = _Begun(_digest(request), refs, tuple(self._show(ref) for ref in refs), task)
        if request.request_id:
            self._begun[caller.get(), request.request_id] = begun
        return begun

    async def _finish(self, begun: _Begun, request_id: str) -> list[pb.Reservation]:
        """Wait until all is written, and return it as it is then."""
        error = await asyncio.shield(begun.task)
        if error is not None:
            if self._begun.get((caller.get(), request_id)) is begun:
                del self._begun[caller.get(), request_id]  # It may be tried again.
            if isinstance(error, Taken):
                raise _exists(str(error))
            raise error
        shown = (self._catalogue.show(ref) for ref in begun.refs)
        return [next(iter(now), then) for now, then in zip(shown, begun.shown, strict=True)]

    def _existing(
        self, wanted: list[str], request_id: str, paths: Sequence[str]
    ) -> tuple[Ref, ...] | None:
        """Return where the same request has written before, None if nothing of it is there."""
        refs = [self._booking.find(name) for name in wanted]
        there = [ref for ref in refs if ref is not None]
        if not there:
            return None
        ours = request_id and all(
            grpcform.request_id_of(self._catalogue.text(ref)) == request_id for ref in there
        )
        if ours and len(there) == len(refs):
            return tuple(there)
        taken = [(at, name) for at, name, ref in zip(paths, wanted, refs, strict=True) if ref]
        message = f"{', '.join(name for _, name in taken[:5])}: there is one of that name"
        raise _exists(message, [(f"{at}name", "is taken") for at, _ in taken])

    @staticmethod
    def _require_future(new: Reservation, path: str, now: float) -> None:
        if new.expires_at is not None and new.expires_at <= now:
            raise InvalidInput(path, "lies in the past", "let it expire in the future")

    @staticmethod
    def _require_start(new: Sequence[Reservation], now: float) -> None:
        for index, each in enumerate(new):
            if each.starts_at is not None and each.starts_at > now:
                field = f"reservations[{index}].spec.startsAt"
                raise InvalidInput(field, "lies in the future", "a set holds from now on")

    def _require_room(
        self,
        new: Sequence[Reservation],
        wanted: Sequence[str],
        path: str,
        instead: Reservation | None = None,
    ) -> None:
        lacks = judge_set(new, self._state, self._clock(), instead)
        if lacks:
            raise _no_room(lacks, wanted, path)

    @staticmethod
    def _read(ref: Ref, written: dict[str, object], now: float, path: str) -> Reservation:
        with _under(path):
            return specform.read(written, ref, now)

    # Finding and changing

    def _find(self, name: str) -> Ref:
        if not name:
            raise InvalidInput("name", "is empty", "say which reservation")
        ref = grpcform.parse_id(name) or self._booking.find(name)
        if ref is None or self._catalogue.reservation(ref) is None:
            raise _missing(name)
        return ref

    def _show(self, ref: Ref) -> pb.Reservation:
        shown = self._catalogue.show(ref)
        if not shown:
            raise _missing(str(ref))
        return shown[0]

    def _current(self, ref: Ref, etag: str) -> tuple[Reservation, str]:
        old = self._catalogue.reservation(ref)
        if old is None:
            raise _missing(str(ref))
        if etag and etag != old.digest:
            raise _aborted(ref)
        return old, self._catalogue.text(ref)

    async def _edit(
        self, ref: Ref, etag: str, change: Callable[[str, Reservation], str]
    ) -> pb.Reservation:
        """Change a key; if somebody else was faster, on what they have written."""
        if ref.item:
            problem = "is an item of a list, which only its manager changes"
            raise InvalidInput("name", problem, "name a reservation with a key of its own")
        for _ in range(_TRIES):
            old, text = self._current(ref, etag)
            new = change(text, old)
            if new == text or await self._booking.edit(Edit(ref, text, new, "changed")):
                return self._show(ref)
            if self._catalogue.text(ref) == text:
                break  # The same still: our view is behind, so let the client come back.
        raise _aborted(ref)

    def _message(self, change: Change, selection: Selection) -> pb.WatchResponse | None:
        """Return what a change is for somebody who follows some reservations."""
        was = change.before is not None and selection.covers(change.before)
        is_now = change.after is not None and selection.covers(change.after)
        kinds = pb.WatchResponse
        if is_now:
            kind = kinds.KIND_MODIFIED if was else kinds.KIND_ADDED
        elif was:
            kind = kinds.KIND_DELETED
        else:
            return None
        token = self._feed.token_of(change.number)
        shown = change.after if is_now else change.before
        return pb.WatchResponse(kind=kind, reservation=shown, resume_token=token)


@contextmanager
def _under(path: str) -> Iterator[None]:
    """Tell what is wrong with a spec as seen from the request."""
    try:
        yield
    except InvalidInput as exc:
        raise (exc.under(path) if path else exc) from exc


def _digest(request: pb.CreateRequest | pb.CreateSetRequest) -> bytes:
    return hashlib.sha256(request.SerializeToString(deterministic=True)).digest()


def _done() -> asyncio.Task[ReserverError | None]:
    async def nothing() -> None:
        return None

    return asyncio.create_task(nothing())


def _missing(name: str) -> Refusal:
    message = f"there is no reservation {shorten(name)!r}"
    return Refusal(grpc.StatusCode.NOT_FOUND, "NO_SUCH_RESERVATION", message)


def _exists(message: str, fields: Sequence[refusal.Field] = ()) -> Refusal:
    return Refusal(grpc.StatusCode.ALREADY_EXISTS, "NAME_TAKEN", message, fields)


def _aborted(ref: Ref) -> Refusal:
    message = f"{ref} was changed meanwhile; read it and try again"
    return Refusal(grpc.StatusCode.ABORTED, "CHANGED_MEANWHILE", message)


def _no_room(lacks: Sequence[Lack], wanted: Sequence[str], path: str) -> Refusal:
    never = any(lack.never for lack in lacks)
    code = grpc.StatusCode.FAILED_PRECONDITION if never else grpc.StatusCode.RESOURCE_EXHAUSTED
    reason = "CAN_NEVER_FIT" if never else "NO_ROOM"
    first = f"{wanted[lacks[0].at]}: {lacks[0].message}"
    more = f", and {len(lacks) - 1} more" if len(lacks) > 1 else ""
    fields = [(f"{path}[{lack.at}]" if path != "spec" else path, lack.message) for lack in lacks]
    return Refusal(code, reason, first + more, fields)
