"""The requests of the calls about reservations, which both clients send."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from uuid import uuid4

from reserver.client import messages
from reserver.client.values import Selection, Spec
from reserver.v1 import reservation_pb2 as pb

Labels = Mapping[str, str]


def create(
    name: str,
    spec: Spec,
    *,
    request_id: str,
    no_wait: bool = False,
    labels: Labels | None = None,
    namespace: str = "",
) -> pb.CreateRequest:
    """Return the request to create a reservation; without a `request_id` with a new one."""
    return pb.CreateRequest(
        name=name,
        spec=messages.write_spec(spec),
        request_id=request_id or uuid4().hex,
        no_wait=no_wait,
        labels=labels,
        namespace=namespace,
    )


def create_set(
    specs: Mapping[str, Spec],
    *,
    request_id: str,
    labels: Mapping[str, Labels] | None,
    namespace: str,
) -> pb.CreateSetRequest:
    """Return the request to create several reservations, all or none."""
    entries = [
        pb.CreateSetRequest.Entry(
            name=name, spec=messages.write_spec(spec), labels=(labels or {}).get(name)
        )
        for name, spec in specs.items()
    ]
    return pb.CreateSetRequest(
        reservations=entries, request_id=request_id or uuid4().hex, namespace=namespace
    )


def list_(selection: Selection) -> pb.ListRequest:
    """Return the request to list reservations."""
    return pb.ListRequest(filter=messages.write_selection(selection))


def watch(selection: Selection) -> pb.WatchRequest:
    """Return the request to watch reservations."""
    return pb.WatchRequest(filter=messages.write_selection(selection))


def history(name: str, owner_namespace: str, since: datetime | None) -> pb.HistoryRequest:
    """Return the request for what became of reservations.

    Raises:
        InvalidInput: the time has no zone.
    """
    messages.check_zone(since, "since")
    return pb.HistoryRequest(name=name, owner_namespace=owner_namespace, since=since)


def update(
    name: str, spec: Spec, *, etag: str, labels: Labels | None, remove_labels: Iterable[str]
) -> pb.UpdateRequest:
    """Return the request to replace the spec of a reservation."""
    return pb.UpdateRequest(
        name=name,
        spec=messages.write_spec(spec),
        etag=etag,
        labels=labels,
        remove_labels=remove_labels,
    )
