"""Reservations as manifests, in files and with `-o yaml` (docs/reservations.md).

Between it and the client's values stands the message of the contract, of which the JSON form is
nearly the manifest's: a field of the spec needs no line here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any

import msgspec
from google.protobuf import json_format

from reserver.cli.formatting import UNKNOWN
from reserver.client import OwnerSelector, PodOwner, ReservationInfo, Spec, messages
from reserver.errors import InvalidInput
from reserver.k8s.objects.times import parse_duration, parse_moment, show_duration
from reserver.reservations.digest import etag
from reserver.reservations.reservation import Ref
from reserver.stores.codec import owner_codec, spec_codec, spec_message
from reserver.stores.codec.owner_codec import OwnerEntry
from reserver.stores.object.codec import API_VERSION, KIND
from reserver.v1 import reservation_pb2 as pb

_NO_IDENTITY = ("description", "retain")
"""Fields that are no part of a reservation's digest."""

_NOT_SENT = {
    "request_id": ("requestId", "is not read from files", "give --request-id"),
    "origin": ("origin", "is written by Reserver only", "remove it"),
    "author": ("author", "is written by Reserver only", "remove it"),
}


def read(document: Any, name: str, namespace: str, now: float) -> Spec:  # noqa: ANN401 - YAML
    """Return the spec in a mapping, validated as the server validates it.

    Args:
        document: in the form of docs/reservations.md.
        namespace: of owners that do not say theirs.
        now: unix seconds.

    Raises:
        InvalidInput: a field is not acceptable; the error carries its path.
    """
    spec_codec.read(document, Ref.of_object(namespace, name), now)
    written = spec_codec.convert(document, spec_codec.EntrySpec)
    for attribute, refusal in _NOT_SENT.items():
        if getattr(written, attribute):
            raise InvalidInput(*refusal)
    spec = messages.read_spec(spec_message.to_message(document), namespace)
    return replace(
        spec,
        starts_at=None if written.starts_at is None else read_moment(written.starts_at),
        expires_at=None if written.expires_at is None else read_moment(written.expires_at),
        ttl=None if written.ttl is None else timedelta(seconds=parse_duration(str(written.ttl))),
    )


def show(reservation: ReservationInfo) -> dict[str, Any]:
    """Return a reservation as `-o json` and `-o yaml` print it, and `create -f` reads it."""
    claims = [{"pod": claim.pod, "uid": claim.uid} for claim in reservation.claims]
    author = {"author": reservation.author} if reservation.author else {}
    labels = {"labels": dict(sorted(reservation.labels.items()))} if reservation.labels else {}
    return {
        "name": reservation.name,
        "id": reservation.id,
        "etag": reservation.etag,
        **author,
        **labels,
        "spec": show_spec(reservation.spec),
        "status": {
            **({"assumesNamespace": True} if reservation.assumes_namespace else {}),
            **({"idleSince": show_moment(idle)} if (idle := reservation.idle_since) else {}),
            "phase": str(reservation.phase or UNKNOWN),
            "backed": reservation.is_backed,
            "reason": reservation.reason,
            "message": reservation.message,
            "placements": [part._asdict() for part in reservation.placements],
            "claims": claims,
        },
    }


def of_object(
    name: str,
    namespace: str,
    spec: Any,  # noqa: ANN401 - YAML
    labels: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Any]:
    """Return a Reservation object, as `kubectl apply` takes it."""
    metadata: dict[str, Any] = {"name": name, "namespace": namespace}
    if labels:
        metadata["labels"] = dict(labels)
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": spec}


def says_the_same(document: Any, name: str, namespace: str, old: ReservationInfo) -> bool:  # noqa: ANN401
    """Return whether a spec equals a reservation's, however it is written."""
    ref = Ref.of_object(namespace, name)
    is_same = etag(spec_codec.read(document, ref, 0.0)) == old.etag
    spec = read(document, name, namespace, 0.0)
    return is_same and all(getattr(spec, each) == getattr(old.spec, each) for each in _NO_IDENTITY)


def read_moment(text: str) -> datetime:
    """Return an RFC 3339 time; raises as `parse_moment` does."""
    return datetime.fromtimestamp(parse_moment(text), UTC)


def show_spec(spec: Spec) -> dict[str, Any]:
    """Return a spec as a manifest has it."""
    shown = spec_message.to_document(messages.write_spec(spec))
    if spec.starts_at is not None:
        shown["startsAt"] = show_moment(spec.starts_at)
    if spec.expires_at is not None:
        shown["expiresAt"] = show_moment(spec.expires_at)
    if spec.ttl is not None:
        shown["ttl"] = show_duration(spec.ttl)
    return shown


def show_moment(moment: datetime) -> str:
    """Return a moment as RFC 3339 in UTC."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def read_owner(entry: Mapping[str, Any], namespace: str) -> PodOwner | OwnerSelector:
    """Return an entry of ``owners`` that flags stand for.

    Raises:
        InvalidInput: a name in it is not acceptable; the error carries its path.
    """
    owner_codec.read([msgspec.convert(entry, OwnerEntry)], namespace)
    return messages.read_owner(json_format.ParseDict(dict(entry), pb.Owner()), namespace)


_DROPPED: Mapping[str, Sequence[str]] = {
    "node": ["placement", "nodes"],
    "nodes": ["resources", "slots", "node"],
    "resources": ["nodes"],
    "placement": ["node"],
    "ttl": ["expiresAt", "schedule"],
    "expiresAt": ["ttl", "schedule"],
    "schedule": ["ttl", "expiresAt"],
}
"""Fields that another field of a spec excludes."""


def merged(document: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a spec with changes and without the fields that they exclude; resources are merged."""
    dropped = {name for name in changes for name in _DROPPED.get(name, ())}
    new = {name: value for name, value in document.items() if name not in dropped} | dict(changes)
    for name in ("resources", "nodes", "placement", "schedule"):
        if name in changes:
            new[name] = {**(document.get(name) or {}), **changes[name]}
    return new
