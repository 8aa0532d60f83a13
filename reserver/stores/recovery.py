"""Recovers from watch events when entries were written and when pods were bound.

A list shows only the present: a pod that was bound and deleted while no watch ran is not in the
list. A watch from an earlier resourceVersion shows the pod, as far back as the API server keeps
events. This module does not change the ledger; `ledger.past` takes the recovered events.
"""

from __future__ import annotations

from collections.abc import Iterator
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


class StorePast:
    """The times of writes to the entries of one kind of store, from the events of a watch."""

    def __init__(self, home: str) -> None:
        """Begin without events; `home` is Reserver's own namespace."""
        self._home = home
        self._written: dict[Ref, dict[Ref, tuple[str, Written]]] = {}  # By key.
        self._texts: dict[_Names, dict[str, str]] = {}

    def take(self, event: WatchEvent) -> None:
        """Process the next event of a watch.

        Raises:
            InvalidInput: the event is malformed.
        """
        item = decode(_Stored, event.object)
        name = (item.metadata.namespace, item.metadata.name)
        texts = {"": bytes(item.spec).decode(errors="replace")} if item.spec else item.data or {}
        if event.type == "DELETED":
            texts = {}
        before = self._texts.get(name)
        revision = item.metadata.revision
        when = Written(0 if before is None else revision, revision)
        for key in {**(before or {}), **texts}:
            text = texts.get(key)
            if before is None or text != before.get(key):
                self._exchange(event, item.metadata, key, text, when)
        self._texts[name] = texts

    def entries(self) -> Iterator[tuple[Ref, str, Written]]:
        """Yield the ref, identity and time of the write of each present entry."""
        for written in self._written.values():
            for ref, (identity, when) in written.items():
                yield ref, identity, when

    def _exchange(
        self, event: WatchEvent, metadata: Metadata, key: str, text: str | None, when: Written
    ) -> None:
        """Replace the value of a key, or the spec of an object; None removes the entry."""
        ref = Ref(metadata.namespace, metadata.name, key)
        if not key:
            ref = Ref.of_object(metadata.namespace, metadata.name)
        items = self._written.pop(ref, {})
        if text is None or len(text) > _MOST_BYTES:
            return
        if key:
            entries = read_key(ref, text, 0.0)
        else:
            entries = read_object(decode(ReservationObject, event.object), 0.0, self._home)
        self._written[ref] = written = {}
        for one in entries.reservations:
            known = items.get(one.ref)
            is_same = known is not None and known[0] == one.identity
            written[one.ref] = known if known and is_same else (one.identity, when)


class PodPast:
    """The bindings of pods, from the events of a watch with the field selector `BOUND`."""

    def __init__(self) -> None:
        self._bound_at: dict[str, int] = {}
        self._bindings: list[tuple[Pod, bool]] = []

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


class _Stored(WireStruct, frozen=True):
    """A store ConfigMap, or a Reservation."""

    metadata: Metadata = Metadata()
    data: dict[str, str] | None = None
    spec: msgspec.Raw = msgspec.Raw(b"")
