"""Recovers from watch events when entries were written and when pods were bound.

A list shows only the present: a pod that was bound and deleted while no watch ran is not in the
list. A watch from an earlier resourceVersion shows the pod, as far back as the API server keeps
events. This module does not change the ledger; `ledger.past` takes the recovered events.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import msgspec

from reserver.cluster.pod import Pod
from reserver.k8s.objects.objects import Metadata, WatchEvent, WireStruct, decode
from reserver.k8s.objects.pods import PodObject
from reserver.reservations.reservation import Ref, Written
from reserver.stores.configmap.entries import read_key
from reserver.stores.object.codec import ReservationObject
from reserver.stores.object.entries import read_object

_MOST_BYTES = 65_536
"""Larger values are skipped: reading each of their versions would take too long."""

BOUND = "spec.nodeName!="
"""A field selector of bound pods: a watch with it shows the binding of a pod as ADDED."""

_Names = tuple[str, str]


class _Stored(WireStruct, frozen=True):
    """A store ConfigMap, or a Reservation."""

    metadata: Metadata = Metadata()
    data: dict[str, str] | None = None
    spec: msgspec.Raw = msgspec.Raw(b"")

    @property
    def name(self) -> _Names:
        """Namespace and name."""
        return (self.metadata.namespace, self.metadata.name)

    @property
    def texts(self) -> Mapping[str, str]:
        """The values by key; the spec of a Reservation at an empty key."""
        return {"": bytes(self.spec).decode(errors="replace")} if self.spec else self.data or {}

    def ref(self, key: str) -> Ref:
        """Return the ref of a key; an empty key is that of a Reservation."""
        return Ref(*self.name, key) if key else Ref.of_object(*self.name)


class StorePast:
    """The times of writes to the entries of one kind of store, from the events of a watch."""

    def __init__(self, home: str) -> None:
        """Begin without events; `home` is Reserver's own namespace."""
        self._home = home
        self.begin_again()

    def begin_again(self) -> None:
        """Drop all events: after a gap, an unchanged text may have been written anew."""
        self._written: dict[Ref, dict[Ref, tuple[str, Written]]] = {}  # By key.
        self._texts: dict[_Names, Mapping[str, str]] = {}

    def take(self, event: WatchEvent) -> None:
        """Process the next event of a watch.

        Raises:
            InvalidInput: the event is malformed.
        """
        item = decode(_Stored, event.object)
        texts = {} if event.type == "DELETED" else item.texts
        before = self._texts.get(item.name)
        revision = item.metadata.revision
        when = Written(0 if before is None else revision, revision)
        for key in {**(before or {}), **texts}:
            text = texts.get(key, "")
            if before is None or text != before.get(key, ""):
                known = self._written.pop(item.ref(key), {})
                found = self._identities(event.object, item, key, text)
                self._written[item.ref(key)] = {
                    ref: known[ref]
                    if ref in known and known[ref][0] == identity
                    else (identity, when)
                    for ref, identity in found.items()
                }
        self._texts[item.name] = texts

    def take_earlier(self, listed: msgspec.Raw) -> None:
        """Process an object as it was when the watch began.

        Raises:
            InvalidInput: the object is malformed.
        """
        item = decode(_Stored, listed)
        if item.name not in self._texts:
            self.take(WatchEvent("ADDED", listed))
            return
        for key in self._texts[item.name]:
            before = self._identities(listed, item, key, item.texts.get(key, ""))
            written = self._written.get(item.ref(key), {})
            for ref, (identity, when) in written.items():
                if not when.first:  # The first event shows the entry, or the entry's write.
                    is_older = before.get(ref) == identity
                    first, last = (0, item.metadata.revision) if is_older else (when.last,) * 2
                    written[ref] = (identity, Written(first, last))

    def entries(self) -> Iterator[tuple[Ref, str, Written]]:
        """Yield the ref, identity and time of the write of each present entry."""
        for written in self._written.values():
            for ref, (identity, when) in written.items():
                yield ref, identity, when

    def _identities(self, raw: msgspec.Raw, item: _Stored, key: str, text: str) -> dict[Ref, str]:
        """Return the identities of the entries of a key, or of an object's spec, by ref."""
        if not text or len(text) > _MOST_BYTES:
            return {}
        if key:
            entries = read_key(item.ref(key), text, 0.0)
        else:
            entries = read_object(decode(ReservationObject, raw), 0.0, self._home)
        return {each.ref: each.identity for each in entries.reservations}


class PodPast:
    """The bindings of pods, from the events of a watch with the field selector `BOUND`."""

    def __init__(self) -> None:
        self._bound_at: dict[str, int] = {}
        self._bindings: list[tuple[Pod, bool]] = []

    def begin_again(self) -> None:
        """Keep all bindings: a gap in the events does not change them."""

    def take(self, event: WatchEvent) -> None:
        """Process the next event of a watch.

        Raises:
            InvalidInput: the event is malformed.
        """
        if event.type == "MODIFIED":
            return  # The pod was bound earlier, and still exists.
        pod = decode(PodObject, event.object).value()
        if event.type == "ADDED":
            self._bound_at[pod.uid] = pod.revision
        at = self._bound_at.get(pod.uid)
        self._bindings.append((replace(pod, revision=at or pod.revision), at is not None))

    def bindings(self) -> Iterator[tuple[Pod, bool]]:
        """Yield bound pods, oldest first.

        Each pod has the resourceVersion of its binding (True) or, if the binding was not seen, of
        its deletion (False).
        """
        yield from self._bindings
