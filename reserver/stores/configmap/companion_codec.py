"""The content of a companion: NAME-status, with one key for each key of its store ConfigMap."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from reserver.k8s.objects.objects import Metadata, encode
from reserver.stores.configmap.status_codec import records_claims, without_messages

LABEL = "reserver.io/status-of"
"""The label of a companion: the name of its store; empty if it is too long for a label."""

SEEN = "reserver.io/store-version"
"""The annotation of a companion that records claims: the resourceVersion of the store for which the
claims are valid. Reserver needs it at its start to distinguish entries written before a claim from
entries written after it."""

MOST_BYTES = 1_000_000
"""Bound on keys and values of a companion, in bytes; the API server allows values of 1 MiB in all,
and etcd, which stores each key twice (with ``managedFields``), objects of 1.5 MiB."""

PATCH_BYTES = 900 * 1024
"""Bound on keys and values in the body of one write with several keys, in bytes."""

_MAX_LABEL = 63
_MAX_DIGITS = 19

Changes = Mapping[str, str | None]
"""New values by key; None removes the key. A JSON merge patch (RFC 7386) of ``data``."""


class _OwnerReference(msgspec.Struct, frozen=True):
    uid: str = ""


class _Metadata(msgspec.Struct, rename="camel", frozen=True):
    resource_version: str = ""
    owner_references: list[_OwnerReference] | None = None
    annotations: dict[str, str] | None = None


class CompanionObject(msgspec.Struct, frozen=True):
    """A companion on the wire."""

    metadata: _Metadata = _Metadata()
    data: dict[str, str] | None = None

    def is_owned_by(self, uid: str) -> bool:
        """Return whether the store with this UID owns the companion."""
        return any(owner.uid == uid for owner in self.metadata.owner_references or ())

    @property
    def seen(self) -> int:
        """The resourceVersion of the store for which the claims are valid; 0 if unknown."""
        text = (self.metadata.annotations or {}).get(SEEN, "")
        return int(text) if text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS else 0


def companion_name(store: str) -> str:
    """Return the name of a store's companion."""
    return f"{store}-status"


def new(store: Metadata, changes: Changes, seen: int) -> dict[str, Any]:
    """Return a companion to create; Kubernetes deletes the companion after its store.

    `seen` is the resourceVersion of the store to record; 0 for none.
    """
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": store.name, "uid": store.uid}
    label = store.name if len(store.name) <= _MAX_LABEL else ""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": companion_name(store.name),
            "namespace": store.namespace,
            "labels": {LABEL: label},
            "ownerReferences": [owner],
            **_annotated(seen),
        },
        "data": changes,
    }


def patch(version: str, changes: Changes, seen: int) -> dict[str, Any]:
    """Return a merge patch that the API server refuses if the companion has another version.

    `seen` is the resourceVersion of the store to record; 0 for none.
    """
    return {"metadata": {"resourceVersion": version, **_annotated(seen)}, "data": changes}


def _annotated(seen: int) -> dict[str, Any]:
    return {"annotations": {SEEN: str(seen)}} if seen else {}


class Contents:
    """The content of a companion, and its size, kept up to date change by change.

    Attributes:
        texts: the text of each key.
        recording: the keys whose text records claims.
    """

    def __init__(self, texts: dict[str, str]) -> None:
        self.texts = texts
        self.recording = {key for key, text in texts.items() if records_claims(text)}
        self._bytes = _size(texts.items())

    def changes(self, desired: Changes, limit: int) -> tuple[Changes, set[str]]:
        """Return the changes that fit, and the keys whose status does not fit.

        Without enough room, first all messages are left out, then the statuses of the last keys.
        An author then sees no acknowledgement, which is safe.

        Args:
            desired: the statuses of some keys.
            limit: bound on the companion, in bytes (`MOST_BYTES`).
        """
        changes = {key: text for key, text in desired.items() if text != self.texts.get(key)}
        if self._bytes + self._growth(changes) <= limit:
            return changes, set()
        return self._squeezed(changes, limit)

    def will_record(self, changes: Changes) -> bool:
        """Return whether the companion records claims after the given changes."""
        records = any(text and records_claims(text) for text in changes.values())
        return records or not self.recording <= changes.keys()

    def apply(self, changes: Changes) -> None:
        """Apply written changes."""
        self._bytes += self._growth(changes)
        for key, text in changes.items():
            self.recording.discard(key)
            if text is None:
                self.texts.pop(key, None)
                continue
            self.texts[key] = text
            if records_claims(text):
                self.recording.add(key)

    def _growth(self, changes: Changes) -> int:
        before = ((key, self.texts.get(key)) for key in changes)
        return _size(changes.items()) - _size(before)

    def _squeezed(self, changes: Changes, limit: int) -> tuple[Changes, set[str]]:
        texts = {
            key: without_messages(text)
            for key, text in {**self.texts, **changes}.items()
            if text is not None
        }
        excess = _size(texts.items()) - limit
        left_out = set()
        for key in reversed(tuple(texts)):  # The last keys first, so that written statuses stay.
            if excess <= 0:
                break
            excess -= _size([(key, texts.pop(key))])
            left_out.add(key)
        keys = self.texts.keys() | changes.keys()
        after = {key: texts.get(key) for key in keys if texts.get(key) != self.texts.get(key)}
        return after, left_out


def chunks(changes: Changes) -> Iterator[Changes]:
    """Yield the changes in parts of at most `PATCH_BYTES`, one for each write."""
    chunk: dict[str, str | None] = {}
    size = 0
    for key, text in changes.items():
        more = len(encode(key)) + len(encode(text)) + 2
        if chunk and size + more > PATCH_BYTES:
            yield chunk
            chunk, size = {}, 0
        chunk[key] = text
        size += more
    if chunk:
        yield chunk


def _size(texts: Iterable[tuple[str, str | None]]) -> int:
    """Return the bytes of keys and values; a key without a value counts 0."""
    return sum(
        len(key) + (len(text) if text.isascii() else len(text.encode()))
        for key, text in texts
        if text is not None
    )
