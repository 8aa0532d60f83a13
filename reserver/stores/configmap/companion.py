"""A companion ConfigMap: read, and written with a precondition.

Several reservers may write the same companion. They compute the same from the same watches, so
whichever writes last is right, or will be as soon as its watches show the latest. A write is made
only for the version that its writer has seen; so of two that see a change at once one writes it
(and reports it), and the other reads that there is nothing left to write.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from http import HTTPStatus

import structlog

from reserver.base.pacer import Backoff
from reserver.errors import ApiError, ReserverError
from reserver.k8s.api_errors import advice
from reserver.k8s.client import ApiClient
from reserver.k8s.objects.objects import Metadata, PartialObject, decode
from reserver.stores.configmap import companion_codec as form
from reserver.stores.configmap.companion_codec import Changes, CompanionObject, Contents

log = structlog.get_logger(__name__)

REREAD_EVERY_S = 60.0
"""How often a companion is read again, in seconds: somebody may have edited or deleted it."""

_TOO_LARGE_WORDS = ("request is too large", "larger than max", "Too long:")
"""How etcd and its client say that an object is too large, of which the API server makes a 500, and
how validation does (field.TooLong in apimachinery)."""

_BACKOFF_S = (1.0, 30.0)


class NotOurs(ReserverError):
    """Another ConfigMap has a companion's name."""


class Companion:
    """One companion ConfigMap.

    Attributes:
        store: namespace and name of the store that it is for.
        changed_keys: the keys of the store whose status may have changed.
        left_out: the keys for whose status there was no room.
    """

    def __init__(self, client: ApiClient, store: tuple[str, str]) -> None:
        """Read and write through a client."""
        self.store = store
        self.changed_keys: set[str] = set()
        self.left_out: set[str] = set()
        self._uid = ""
        self._client = client
        self._collection = f"/api/v1/namespaces/{store[0]}/configmaps"
        self._path = f"{self._collection}/{form.companion_name(store[1])}"
        self._contents: Contents | None = None  # Has to be read.
        self._version = ""  # Does not exist.
        self._seen = 0
        self._read_at = 0.0
        self._limit = form.MOST_BYTES
        self._retry_at = 0.0
        self._backoff = Backoff(*_BACKOFF_S)
        self._fault = ""

    @property
    def said(self) -> Mapping[str, str]:
        """What it says, as far as known."""
        return self._contents.said if self._contents else {}

    @property
    def seen(self) -> int:
        """The store version at which the recorded claims were valid."""
        return self._seen

    def is_due(self, seen: int, now: float) -> bool:
        """Whether there may be something to do.

        Args:
            seen: the known store version; 0 if claims may be of another.
            now: unix seconds.
        """
        is_behind = bool(self._contents and self._contents.recording) and self._seen < seen
        has_work = bool(self.changed_keys) or is_behind or self._has_to_be_read(now)
        return now >= self._retry_at and has_work

    def belongs_to(self, uid: str) -> None:
        """Take the UID of the store; if it has changed, read all again."""
        if uid != self._uid:
            self._uid, self._contents = uid, None

    async def read_if_due(self, now: float) -> bool:
        """Read it; return whether it may have changed.

        Raises:
            ApiError: the API server refused, or did not answer.
            NotOurs: it is not the companion of this store.
        """
        if not self._has_to_be_read(now):
            return False
        try:
            found = decode(CompanionObject, await self._client.get(self._path))
        except ApiError as exc:
            if not exc.is_absent:
                raise
            found = CompanionObject()
        version = found.metadata.resource_version
        if version and not found.is_owned_by(self._uid):
            raise NotOurs(f"{self._path} belongs to something else, and Reserver leaves it alone")
        self._read_at = now
        if self._contents is not None and version == self._version:
            return False
        self._version, self._contents = version, Contents(found.data or {})
        self._seen = found.seen
        return True

    async def write(
        self, metadata: Metadata | None, wanted: Changes, seen: int
    ) -> AsyncIterator[tuple[Changes, Changes]]:
        """Write the statuses that are wanted, as far as there is room; it has been read.

        Args:
            metadata: of the store; None when there is none any more.
            wanted: the status of keys, None where there is no such key any more.
            seen: the store version that was read before computing `wanted`; 0 if claims may be of
                what was written before.

        Yields:
            For each write that was made, what was said of its keys before, and what is now.

        Raises:
            ApiError: the API server refused, or did not answer.
        """
        contents = self._contents or Contents({})
        changes, left_out = contents.changes(wanted, self._limit)
        if left_out - self.left_out:
            log.warning(
                "no room for the status of some keys, split the store ConfigMap",
                configmap="/".join(self.store),
                keys=len(left_out),
            )
        self.left_out = left_out
        if seen <= self._seen or not contents.will_record(changes):
            seen = 0
        parts = list(form.chunks(changes)) or ([{}] if seen else [])
        for chunk in parts:
            answer = await self._send(metadata, chunk, seen if chunk is parts[-1] else 0)
            before = {key: contents.said.get(key) for key in chunk}
            contents.apply(chunk)
            self._version = decode(PartialObject, answer).metadata.resource_version
            yield before, chunk
        self._seen = max(self._seen, seen)

    def succeeded(self) -> None:
        """Note that all is written."""
        self._fault = ""
        self._backoff.succeeded()

    def failed(self, error: ReserverError, now: float) -> str:
        """Note why it could not be written; it is tried again, with a growing pause.

        Returns what is news of that, empty if nothing is.
        """
        self._contents = None  # Whatever became of the write.
        if isinstance(error, ApiError) and (error.is_conflict or error.is_absent):
            return ""  # Somebody else wrote or deleted it in between.
        is_large = any(words in str(error) for words in _TOO_LARGE_WORDS)
        status = error.status if isinstance(error, ApiError) else 0
        if is_large or status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            self._limit = self._limit * 3 // 4
        fault = advice(error) if isinstance(error, ApiError) else str(error)
        if fault != self._fault:  # One line for one fault, however often it is retried.
            name = "/".join(self.store)
            log.warning("status cannot be written, retrying", configmap=name, why=fault)
        is_news, self._fault = fault != self._fault, fault
        self._retry_at = now + self._backoff.failed()
        return fault if is_news else ""

    def _has_to_be_read(self, now: float) -> bool:
        return self._contents is None or now >= self._read_at + REREAD_EVERY_S

    async def _send(self, metadata: Metadata | None, changes: Changes, seen: int) -> bytes:
        if self._version or metadata is None:
            return await self._client.patch(self._path, form.patch(self._version, changes, seen))
        return await self._client.create(self._collection, form.new(metadata, changes, seen))
