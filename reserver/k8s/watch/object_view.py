"""A view of a collection: reports each object that exists, and each that is deleted."""

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
"""Stands for the resourceVersion of an object in a view that does not keep it."""


_A_STEP = 1000

_MOST_NOTED = 100
"""Most objects in the order of their changes: the latest ones may soon be deleted."""


def _kept_by_nobody(_: Key) -> int:
    return UNKNOWN


@dataclass(eq=False, repr=False)
class ObjectView(Generic[T]):
    """Reports each object of a collection that a list or watch shows, and each that is gone.

    Attributes:
        kind: the struct of an object.
        seen: called with each object that may have changed, and with whether a list shows it, as it
            may have changed several times then; raises InvalidInput.
        gone: called with each object that no longer exists.
        known: returns the cached objects.
        has_successor: returns whether the cached object of a name has another UID than this one.
        revision_of: returns the resourceVersion of a cached object; 0 for none.
        broken: called with each object that cannot be read: its cached state is out of date from
            then on.
        began: called before each list with a resourceVersion: all changes up to it were shown.
        ended: called with the resourceVersion of each complete list.
        events: the struct of a watch event.
        unreadable: number of objects that were skipped because they could not be read.
        revision: resourceVersion of the list or event that showed the last deletion.
    """

    kind: type[T]
    seen: Callable[[T, bool], Steps | None]
    gone: Callable[[Key], Steps | None]
    known: Callable[[], Iterable[Key]]
    has_successor: Callable[[Key, str], bool] = lambda *_: False
    _: KW_ONLY
    revision_of: Callable[[Key], int] = _kept_by_nobody
    broken: Callable[[Key, T | msgspec.Raw], None] = lambda *_: None
    began: Callable[[int], None] = lambda _: None
    ended: Callable[[int], None] = lambda _: None

    def __post_init__(self) -> None:
        """Begin with an empty collection."""
        self.events: type[ReadEvent[T]] = ReadEvent[self.kind]  # type: ignore[name-defined]
        self.revision = self.unreadable = self._seen_up_to = 0
        self._unread: set[Key] = set()
        self._changed: dict[Key, None] = {}  # Existing objects, the last changed at the end.
        self._has_newest = self.keeps_revisions
        self._is_listed_anew = False
        self._unlisted: set[Key] = set()

    @property
    def keeps_revisions(self) -> bool:
        """Whether the view keeps resourceVersions, so that each object can be read by its name."""
        return self.revision_of is not _kept_by_nobody

    def noted(self) -> tuple[Key, int] | None:
        """Return the existing object that changed last in a watch, or that `newest` found."""
        for key in tuple(self._changed)[:-_MOST_NOTED]:
            del self._changed[key]
        while self._changed:
            key = next(reversed(self._changed))
            if (revision := self.revision_of(key)) > 0:
                return key, revision
            del self._changed[key]  # For example a finished pod.
        return None

    def newest(self) -> Generator[None, None, tuple[Key, int] | None]:
        """Return the cached object that changed last, and its resourceVersion.

        All objects are scanned only if `noted` has none, or once after a list.
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
        """Begin a list, which may not show objects that are cached from now on.

        Args:
            seen: all changes up to this resourceVersion were shown; 0 for none.
        """
        self._seen_up_to = seen
        self.began(seen)
        self._unlisted = set(self.known())
        self._is_listed_anew = True

    def listed(self, item: T | msgspec.Raw) -> Steps:
        """Process an object of a page of a list."""
        metadata = yield from self._take(item, listed=True)
        self._unlisted.discard(_key(metadata))

    def _require_known(self, metadata: Metadata) -> None:
        """Compare an object of a list with its cached state.

        Raises:
            WentBack: its resourceVersion was covered before, with another state of the object.
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
        """Drop the objects that no page has shown; `revision` is the list's resourceVersion."""
        self.revision = revision
        while self._unlisted:
            yield from self._drop(self._unlisted.pop())
            yield
        self.ended(revision)

    def changed(self, item: T | msgspec.Raw) -> Generator[None, None, Metadata]:
        """Process an object that was added or modified; return its metadata."""
        return self._take(item, listed=False)

    def deleted(self, item: T | msgspec.Raw) -> Generator[None, None, Metadata]:
        """Drop an object, after processing its last state: a pod may have been bound meanwhile."""
        self.revision = metadata_of(item).revision
        metadata = yield from self._take(item, listed=False)
        if not self.has_successor(_key(metadata), metadata.uid):
            yield from self._drop(_key(metadata))
        return metadata

    def _take(self, item: T | msgspec.Raw, *, listed: bool) -> Generator[None, None, Metadata]:
        """Process an object, decoded or raw; return its metadata."""
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
            if self._has_newest and not listed:  # Inline: each event of each pod comes here.
                if key in self._changed:
                    del self._changed[key]
                self._changed[key] = None
        return metadata

    def _read(self, item: T | msgspec.Raw) -> tuple[Metadata, T | None]:
        """Return an object and its metadata; None for an unreadable object."""
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
