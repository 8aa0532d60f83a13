"""Reads a companion ConfigMap, and writes it with a precondition.

Several Reservers may write the same companion. They compute the same status from the same watches,
so the last writer is right, or will be as soon as its watches have caught up. Each write carries
the resourceVersion that its writer has read: when two Reservers see a change at once, one writes
and reports the status, and the other finds nothing left to write.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from http import HTTPStatus

import structlog

from reserver.base.clock import is_ahead
from reserver.base.pacer import Backoff
from reserver.errors import ApiError, ReserverError
from reserver.k8s.api_errors import advice
from reserver.k8s.client import ApiClient
from reserver.k8s.objects.objects import Metadata, PartialObject, decode
from reserver.stores.configmap import companion_codec as form
from reserver.stores.configmap.companion_codec import Changes, CompanionObject, Contents

log = structlog.get_logger(__name__)

REREAD_EVERY_S = 60.0
"""Seconds after which a companion is read again, in case it was edited or deleted."""

_TOO_LARGE_WORDS = ("request is too large", "larger than max", "Too long:")
"""Parts of error messages for an object that is too large: from etcd and its client, which the API
server returns as 500, and from validation (field.TooLong in apimachinery)."""

_BACKOFF_S = (1.0, 30.0)


class NotOurs(ReserverError):
    """A ConfigMap that is no companion has the name of a companion."""


class Companion:
    """One companion ConfigMap.

    Attributes:
        store: namespace and name of its store.
        changed_keys: the keys of the store whose status may have changed.
        left_out: the keys whose status did not fit.
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
        self._contents: Contents | None = None  # Not read yet.
        self._version = ""  # Does not exist.
        self._seen = 0
        self._read_at = 0.0
        self._limit = form.MOST_BYTES
        self._retry_at = 0.0
        self._backoff = Backoff(*_BACKOFF_S)
        self._fault = ""

    @property
    def texts(self) -> Mapping[str, str]:
        """The text of each key, as last read or written."""
        return self._contents.texts if self._contents else {}

    @property
    def seen(self) -> int:
        """The store version at which the recorded claims were valid."""
        return self._seen

    def is_due(self, seen: int, now: float) -> bool:
        """Return whether the companion may have to be read or written.

        Args:
            seen: the cached store version; 0 if the claims may be of another version.
            now: unix seconds.
        """
        is_behind = bool(self._contents and self._contents.recording) and self._seen < seen
        has_work = bool(self.changed_keys) or is_behind or self._has_to_be_read(now)
        return has_work and not is_ahead(self._retry_at, now, longest_s=_BACKOFF_S[1])

    def belongs_to(self, uid: str) -> None:
        """Set the UID of the store; a new UID causes the companion to be read again."""
        if uid != self._uid:
            self._uid, self._contents = uid, None

    async def read_if_due(self, now: float) -> bool:
        """Read the companion if it is due; return whether it may have changed.

        Raises:
            ApiError: the API server refused, or did not answer.
            NotOurs: the ConfigMap is not the companion of this store.
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
        self, metadata: Metadata | None, desired: Changes, seen: int
    ) -> AsyncIterator[tuple[Changes, Changes]]:
        """Write the desired statuses that fit; the companion must have been read.

        Args:
            metadata: the metadata of the store; None if it was deleted.
            desired: the status of keys; None for a removed key.
            seen: the store version read before `desired` was computed; 0 if its claims may be of
                an earlier version.

        Yields:
            For each write, the former and the new statuses of its keys.

        Raises:
            ApiError: the API server refused, or did not answer.
        """
        contents = self._contents or Contents({})
        changes, left_out = contents.changes(desired, self._limit)
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
            before = {key: contents.texts.get(key) for key in chunk}
            contents.apply(chunk)
            self._version = decode(PartialObject, answer).metadata.resource_version
            yield before, chunk
        self._seen = max(self._seen, seen)

    def succeeded(self) -> None:
        """Record that all changes were written, which resets the back-off."""
        self._fault = ""
        self._backoff.succeeded()

    def failed(self, error: ReserverError, now: float) -> str:
        """Record a failed read or write, which is retried with a growing pause.

        Return the fault if it is new; else an empty text.
        """
        self._contents = None  # The result of the write is unknown.
        if isinstance(error, ApiError) and (error.is_conflict or error.is_absent):
            return ""  # Another client has written or deleted it in between.
        is_large = any(words in str(error) for words in _TOO_LARGE_WORDS)
        status = error.status if isinstance(error, ApiError) else 0
        if is_large or status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            self._limit = self._limit * 3 // 4
        fault = advice(error) if isinstance(error, ApiError) else str(error)
        if fault != self._fault:  # One line for each fault, not for each retry.
            name = "/".join(self.store)
            log.warning("status cannot be written, retrying", configmap=name, why=fault)
        is_news, self._fault = fault != self._fault, fault
        self._retry_at = now + self._backoff.failed()
        return fault if is_news else ""

    def _has_to_be_read(self, now: float) -> bool:
        return self._contents is None or abs(now - self._read_at) >= REREAD_EVERY_S

    async def _send(self, metadata: Metadata | None, changes: Changes, seen: int) -> bytes:
        if self._version or metadata is None:
            return await self._client.patch(self._path, form.patch(self._version, changes, seen))
        return await self._client.create(self._collection, form.new(metadata, changes, seen))
