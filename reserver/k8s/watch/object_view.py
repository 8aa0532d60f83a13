"""What a collection shows: each object that is there, and each that is gone."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Generic, TypeVar

import msgspec
import structlog

from reserver.base.pacer import Steps
from reserver.base.quarantine import quarantined
from reserver.errors import InvalidInput, WentBack
from reserver.k8s.objects.objects import Metadata, ReadEvent, Shown, decode, metadata_of

log = structlog.get_logger(__name__)

T = TypeVar("T", bound=Shown)
Key = tuple[str, str]
"""Namespace (empty for cluster-scoped objects) and name."""

UNKNOWN = -1
"""For the resourceVersion of an object of which nobody keeps it."""


_A_STEP = 1000

_MOST_NOTED = 100
"""How many objects stay noted in the order of their changes: the last ones may soon be deleted."""


def _kept_by_nobody(_: Key) -> int:
    return UNKNOWN


@dataclass(eq=False, repr=False)
class ObjectView(Generic[T]):
    """Reports each object of a collection that is seen, and each that is gone.

    Attributes:
        seen: called with each object that exists, whenever it may have changed, and whether a
            list shows it: then it may have changed more than once; raises InvalidInput.
        gone: called with each object that no longer exists.
        known: the objects that are believed to exist.
        has_successor: whether one of the same name is known, but of another UID than this.
        revision_of: the resourceVersion that an object is known at; 0 if there is none.
        broken: called with each object that cannot be read or judged: what is known of it is
            out of date from then on.
        ended: called with the resourceVersion of each list that has been taken.
        events: what a watch of them shows.
        unreadable: how many objects were skipped because they could not be read.
        revision: the resourceVersion at which what is gone was.
    """

    kind: type[T]
    seen: Callable[[T, bool], Steps | None]
    gone: Callable[[Key], Steps | None]
    known: Callable[[], Iterable[Key]]
    has_successor: Callable[[Key, str], bool] = lambda *_: False
    _: KW_ONLY
    revision_of: Callable[[Key], int] = _kept_by_nobody
    broken: Callable[[Key, T | msgspec.Raw], None] = lambda *_: None
    ended: Callable[[int], None] = lambda _: None

    def __post_init__(self) -> None:
        """Begin with nothing seen."""
        self.events: type[ReadEvent[T]] = ReadEvent[self.kind]  # type: ignore[name-defined]
        self.revision = self.unreadable = self._seen_up_to = 0
        self._unread: set[Key] = set()
        self._changed: dict[Key, None] = {}  # The last one at the end, of those that are there.
        self._has_newest = self.keeps_revisions
        self._is_listed_anew = False
        self._unlisted: set[Key] = set()

    @property
    def keeps_revisions(self) -> bool:
        """Whether it knows the resourceVersion of each object; each can be read by its name."""
        return self.revision_of is not _kept_by_nobody

    def noted(self) -> tuple[Key, int] | None:
        """Return what a watch has shown last of what is there, or `newest` has found before."""
        for key in tuple(self._changed)[:-_MOST_NOTED]:
            del self._changed[key]
        while self._changed:
            key = next(reversed(self._changed))
            if (revision := self.revision_of(key)) > 0:
                return key, revision
            del self._changed[key]  # A pod that has finished, say.
        return None

    def newest(self) -> Generator[None, None, tuple[Key, int] | None]:
        """Return the object that changed last of those that are known, and its resourceVersion.

        All are looked at only if none is noted, or once after a list.
        """
        if not self._is_listed_anew and (noted := self.noted()) is not None:
            return noted
        self._is_listed_anew = False
        newest, known = None, 0
        for number, key in enumerate(list(self.known())):
            if (revision := self.revision_of(key)) > known:
                newest, known = (key, revision), revision
            if not number % _A_STEP:
                yield
        if newest is not None:
            self._changed.pop(newest[0], None)
            self._changed[newest[0]] = None
        return newest

    def list_began(self, seen: int = 0) -> None:
        """Begin a list: it may not show what becomes known from now on.

        Args:
            seen: everything up to this resourceVersion was shown; 0 for nothing.
        """
        self._seen_up_to = seen
        self._unlisted = set(self.known())
        self._is_listed_anew = True

    def listed(self, item: T | msgspec.Raw) -> Steps:
        """Take an object that a page of a list shows."""
        metadata = yield from self._take(item, listed=True)
        self._unlisted.discard(_key(metadata))

    def _require_known(self, metadata: Metadata) -> None:
        """Compare an object of a list with what is known of it.

        Raises:
            WentBack: it has not changed since what was seen, and yet was not so, or was gone.
        """
        now, key = metadata.revision, _key(metadata)
        if not 0 < now <= self._seen_up_to or key in self._unread:
            return
        was = self.revision_of(key)
        if not was or now < was <= self._seen_up_to:
            name = "/".join(filter(None, key))
            state = f"at resourceVersion {was}" if was else "gone"
            raise WentBack(f"{name} is at resourceVersion {now} and was {state}")

    def list_ended(self, revision: int) -> Steps:
        """Drop the objects that no page has shown; the list was of this resourceVersion."""
        self.revision = revision
        while self._unlisted:
            yield from self._drop(self._unlisted.pop())
            yield
        self.ended(revision)

    def changed(self, item: T | msgspec.Raw) -> Generator[None, None, Metadata]:
        """Take an object that was added or modified; return its metadata."""
        return self._take(item, listed=False)

    def deleted(self, item: T | msgspec.Raw) -> Generator[None, None, Metadata]:
        """Drop an object, after taking its last state: a pod may have been bound in between."""
        self.revision = metadata_of(item).revision
        metadata = yield from self._take(item, listed=False)
        if not self.has_successor(_key(metadata), metadata.uid):
            yield from self._drop(_key(metadata))
        return metadata

    def _take(self, item: T | msgspec.Raw, *, listed: bool) -> Generator[None, None, Metadata]:
        """Take an object, read or not; return its metadata."""
        yield  # A megabyte takes milliseconds to decode.
        metadata, shown = self._read(item)
        if shown is not None:
            key = _key(metadata)
            if listed and self._seen_up_to:
                self._require_known(metadata)
            self._unread.discard(key)
            with quarantined("watch", "/".join(key), partial(self._failed, key, item)):
                try:
                    yield from self.seen(shown, listed) or ()
                except InvalidInput as exc:
                    self._pass_over(key, item, exc)
            if self._has_newest and not listed:  # No call: each event of each pod comes here.
                if key in self._changed:
                    del self._changed[key]
                self._changed[key] = None
        return metadata

    def _read(self, item: T | msgspec.Raw) -> tuple[Metadata, T | None]:
        """Return an object and its metadata; None for one that cannot be read."""
        if not isinstance(item, msgspec.Raw):
            return item.metadata, item
        try:
            shown = decode(self.kind, item)
        except InvalidInput as exc:
            metadata = metadata_of(item)
            self._pass_over(_key(metadata), item, exc)
            return metadata, None
        return shown.metadata, shown

    def _pass_over(self, key: Key, item: T | msgspec.Raw, exc: InvalidInput) -> None:
        log.error("object cannot be read and is passed over", name=key, why=str(exc))
        self._failed(key, item, exc)

    def _failed(self, key: Key, item: T | msgspec.Raw, _: InvalidInput) -> None:
        self.unreadable += 1
        self._unread.add(key)
        self.broken(key, item)

    def _drop(self, key: Key) -> Steps:
        self._unread.discard(key)
        if key in self._changed:
            del self._changed[key]
        with quarantined("watch", "/".join(key)):
            yield from self.gone(key) or ()


def _key(metadata: Metadata) -> Key:
    return metadata.namespace, metadata.name
