"""Creates reservations: holds at once after the decision, and writes once per request id."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias
from uuid import uuid4

from cachetools import TTLCache

from reserver.base.pacer import Pacer
from reserver.errors import InvalidInput, NotReady, ReserverError, under
from reserver.grpc import documents, status_errors
from reserver.grpc.catalogue import Catalogue
from reserver.grpc.concurrency import LOCAL, FairLock, caller
from reserver.grpc.documents import Draft
from reserver.k8s.objects import names
from reserver.reservations.reservation import Ref, Reservation
from reserver.scheduling.dry_run import judge_set, place_now
from reserver.scheduling.state import Readiness, State, require_ready, up_to_date
from reserver.stores.codec import spec_codec
from reserver.stores.entries import Entries
from reserver.stores.stores import Stores
from reserver.v1 import reservation_pb2 as pb

_TAKEN = "is taken; choose another one, or change that reservation (`reserver update`)"

MOST_REQUEST_ID = 64

_REMEMBERED_S = 600.0
"""Seconds for which a request id is kept, as its reservation may have ended and gone by then."""

_REMEMBERED_BYTES = 64 * 2**20
"""Bound on the kept results of requests, in bytes."""

_LEAST_BYTES = 1024
"""Estimate of the memory of a reservation in addition to its message, in bytes."""

Request: TypeAlias = pb.CreateRequest | pb.CreateSetRequest
Outcome: TypeAlias = "asyncio.Task[ReserverError | None]"


@dataclass(frozen=True, slots=True)
class CreationCall:
    """A Create request in flight or done.

    Attributes:
        digest: the digest of the request, to detect another request with the same id.
        refs: the refs of its reservations.
        task: the task of the write; None if an earlier request has written the reservations.
        shown: their first messages, serialized to a tenth of the memory; empty at first.
    """

    digest: bytes
    refs: tuple[Ref, ...]
    task: Outcome | None
    shown: dict[Ref, bytes] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """An upper bound of its memory, in bytes."""
        return sum(_LEAST_BYTES + len(self.shown.get(ref, b"")) for ref in self.refs)


class IdempotentRequests:
    """The requests with an id, by caller and id."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._begun: TTLCache[tuple[str, str], CreationCall] = TTLCache(
            _REMEMBERED_BYTES, _REMEMBERED_S, clock, lambda begun: begun.size
        )

    def before(self, request: Request) -> CreationCall | None:
        """Return the call of an earlier request with this id; None if the id is new.

        Raises:
            InvalidInput: the id is too long, or belongs to another request.
        """
        key = _key(request)
        begun = self._begun.get(key) if key else None
        if begun is not None and begun.digest != digest_of(request):
            problem = "belongs to another request"
            raise InvalidInput("requestId", problem, "choose one for each request")
        return begun

    def remember(self, request: Request, begun: CreationCall) -> None:
        """Keep the call of a request, if the request has an id."""
        if key := _key(request):
            self._begun[key] = begun

    def forget(self, request: Request, begun: CreationCall) -> None:
        """Drop a failed call, so that the request may be repeated."""
        key = _key(request)
        if key and self._begun.get(key) is begun:
            del self._begun[key]


@dataclass(eq=False, repr=False)
class Creation:
    """Creates reservations, with or without the condition that there is room."""

    state: State
    clock: Callable[[], float]
    catalogue: Catalogue
    stores: Stores
    readiness: Readiness

    def __post_init__(self) -> None:
        """Begin without requests."""
        self._requests = IdempotentRequests(self.clock)
        self._deciding = FairLock()

    async def one(self, request: pb.CreateRequest) -> pb.Reservation:
        """Create a reservation; with `no_wait` of the request only if there is room.

        Raises:
            InvalidInput: a field is invalid.
            CallError: the name is taken, or with `no_wait` there is no room.
            ApiError: the write failed.
        """
        begun = self._requests.before(request)
        if begun is None:
            drafts = await self._drafts(request, [request], [""])
            begun = await self._begin(request, drafts, "spec" if request.no_wait else "")
        (reservation,) = await self._finish(request, begun)
        return reservation

    async def all(self, request: pb.CreateSetRequest) -> list[pb.Reservation]:
        """Create all reservations of a set, all of them backed, or none.

        Raises:
            InvalidInput: a field is invalid.
            CallError: there is no room, or a name is taken.
            NotReady: the caches are not up to date.
            ApiError: the write failed.
        """
        begun = self._requests.before(request)
        if begun is None:
            entries = request.reservations
            documents.check_set([each.spec for each in entries])
            paths = [f"reservations[{index}]." for index in range(len(entries))]
            drafts = await self._drafts(request, entries, paths)
            begun = await self._begin(request, drafts, "reservations")
        return await self._finish(request, begun)

    async def _drafts(
        self,
        request: Request,
        entries: Iterable[pb.CreateRequest | pb.CreateSetRequest.Entry],
        paths: Iterable[str],
    ) -> list[Draft]:
        documents.check_namespace(request.namespace)
        user = caller.get()
        author = "" if user == LOCAL else user
        drafts, pacer = dict[str, Draft](), Pacer()
        for path, each in zip(paths, entries, strict=True):
            name = each.name
            with under(f"{path}spec"):
                document = documents.write(each.spec, self.clock(), request.request_id, author)
            names.check_subdomain(name, f"{path}name", "a reservation's name")
            if name in drafts:
                raise InvalidInput(f"{path}name", f"{name} is given twice", "give each name once")
            drafts[name] = Draft(name, path, document, dict(each.labels))
            await pacer.give_way()
        return list(drafts.values())

    async def _begin(self, request: Request, drafts: Sequence[Draft], path: str) -> CreationCall:
        """Decide, hold and start to write; one request at a time, of each consumer in turn.

        There is no `await` after the last check of the room. `path` is the path of the drafts in
        the request; empty if the reservation may wait for room.
        """
        if path:  # As in Bind: a broken watch may not have shown yet that the room is taken.
            await up_to_date(self.readiness, self.state.ledger, self.clock)
        async with self._deciding.held():
            return self._requests.before(request) or await self._decide(request, drafts, path)

    async def _decide(self, request: Request, drafts: Sequence[Draft], path: str) -> CreationCall:
        existing = self._existing(drafts, request)
        if existing is not None:
            return self._remember(request, existing, None)
        sizes = {each.name: each.size for each in drafts}
        ref = self.stores.new_ref(sizes, request.namespace)
        for draft in drafts:
            status_errors.require_labels(draft.labels, f"{draft.path}labels", ref)
        drafts = [draft.at(ref, uuid4().hex) for draft in drafts]
        new = await self._read(drafts, ref)
        obstacles: dict[Ref, str] = {}
        if path:
            new = await self._require_backing(new, drafts, path)
        else:
            for index, one in enumerate(new):
                if not self.state.ledger.quotas.trial([one], self.clock()):
                    placing = place_now(one, self.state, self.clock)
                    new[index], obstacles[one.ref] = await Pacer().run(placing)
        entries = {each.ref.key: Entries((each,)) for each in new}
        texts = {
            draft.name: draft.text(one.placed, ref) for draft, one in zip(drafts, new, strict=True)
        }
        labels = {draft.name: draft.labels for draft in drafts}
        task = self.stores.insert(ref, texts, entries, labels)
        for ref, why in obstacles.items():
            if why:
                self.state.ledger.cannot_place(ref, why)
        return self._remember(request, tuple(each.ref for each in new), task)

    async def _read(self, drafts: Iterable[Draft], ref: Ref) -> list[Reservation]:
        pacer, new = Pacer(), list[Reservation]()
        for draft in drafts:
            with under(f"{draft.path}spec"):
                one = self.catalogue.read(draft.document, ref._replace(key=draft.name))
                status_errors.require_future(one, "expiresAt", self.clock())
            new.append(one)
            await pacer.give_way()
        return new

    async def _require_backing(
        self, new: Sequence[Reservation], drafts: Sequence[Draft], path: str
    ) -> list[Reservation]:
        spec_codec.check_set(new)
        now = self.clock()
        for each, draft in zip(new, drafts, strict=True):
            if each.starts_at is not None and each.starts_at > now:
                field = f"{draft.path}spec.{'schedule' if each.recurrence else 'startsAt'}"
                remedy = "leave it out: a call that does not wait holds at once"
                raise InvalidInput(field, "lies in the future", remedy)
        self._require_quota(new, path)
        verdict = await Pacer().run(judge_set(new, self.state, self.clock))
        if verdict.lacks:
            raise status_errors.no_room(verdict.lacks, [draft.name for draft in drafts], path)
        self._require_quota(new, path)
        require_ready(self.readiness)  # This process may have been stopped meanwhile.
        return list(verdict.reservations)

    def _require_quota(self, new: Sequence[Reservation], path: str) -> None:
        if why := self.state.ledger.quotas.trial(new, self.clock()):
            raise status_errors.quota_exceeded(why, path)

    def _existing(self, drafts: Sequence[Draft], request: Request) -> tuple[Ref, ...] | None:
        """Return the refs that the same request has written before; None if the names are free."""
        refs = {draft.name: self.stores.find(draft.name, request.namespace) for draft in drafts}
        there = [ref for ref in refs.values() if ref is not None]
        if not there:
            return None
        if any(map(self.stores.is_unfinished, there)):
            raise NotReady("a set of these names is not finished, or is being removed")
        ours = request.request_id and all(
            documents.request_id_of(self.catalogue.text(ref)) == request.request_id for ref in there
        )
        if ours and len(there) == len(drafts):
            return tuple(there)
        taken = [draft for draft in drafts if refs[draft.name]]
        message = f"{', '.join(draft.name for draft in taken[:5])}: the name is taken"
        raise status_errors.taken(message, [(f"{draft.path}name", _TAKEN) for draft in taken])

    def _remember(
        self, request: Request, refs: tuple[Ref, ...], task: Outcome | None
    ) -> CreationCall:
        begun = CreationCall(digest_of(request), refs, task)
        self._requests.remember(request, begun)
        return begun

    async def _finish(self, request: Request, begun: CreationCall) -> list[pb.Reservation]:
        """Wait until all reservations are written, and return their present messages."""
        pacer = Pacer()
        if not begun.shown:
            for ref in begun.refs:
                for each in self.catalogue.show(ref)[:1]:
                    begun.shown[ref] = each.SerializeToString()
                await pacer.give_way()
            if self._requests.before(request) is begun:
                self._requests.remember(request, begun)  # It has grown.
        error = await pacer.awaited(asyncio.shield(begun.task)) if begun.task else None
        if error is not None:
            self._requests.forget(request, begun)
            raise status_errors.not_written(error, request.namespace)
        found = []
        for ref in begun.refs:
            then = begun.shown.get(ref)  # It may have ended since.
            now = self.catalogue.show(ref) if then else [self.catalogue.show_one(ref)]
            found.append(now[0] if now else pb.Reservation.FromString(then or b""))
            await pacer.give_way()
        return found


def digest_of(request: Request) -> bytes:
    """Return the digest of a request, to detect another request with the same id."""
    return hashlib.sha256(request.SerializeToString(deterministic=True)).digest()


def _key(request: Request) -> tuple[str, str] | None:
    name = request.request_id
    if len(name) > MOST_REQUEST_ID:
        problem = f"{len(name)} characters are too many"
        raise InvalidInput("requestId", problem, f"send {MOST_REQUEST_ID} at most")
    return (caller.get(), name) if name else None
