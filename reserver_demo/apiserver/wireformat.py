"""Objects, lists and watch events as JSON, assembled from encoded objects."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from reserver_demo.apiserver.listing import Page
from reserver_demo.apiserver.resource import Resource
from reserver_demo.apiserver.status import Json
from reserver_demo.apiserver.store import Stored

encode = msgspec.json.encode


def object_bytes(resource: Resource, stored: Stored) -> bytes:
    """Return an object with its kind and apiVersion."""
    head = encode({"kind": resource.kind, "apiVersion": resource.api_version})
    return head[:-1] + b"," + stored.encoded[1:]


def list_bytes(resource: Resource, page: Page) -> bytes:
    """Return a list; its items have no kind and no apiVersion, as in the real server."""
    head = encode(
        {
            "kind": f"{resource.kind}List",
            "apiVersion": resource.api_version,
            "metadata": list_metadata(page),
        }
    )
    return head[:-1] + b',"items":[' + b",".join(s.encoded for s in page.items) + b"]}"


def list_metadata(page: Page) -> Json:
    """Return the metadata of a list."""
    metadata: Json = {"resourceVersion": str(page.revision)}
    if page.continuation:
        metadata["continue"] = page.continuation
    if page.remaining is not None:
        metadata["remainingItemCount"] = page.remaining
    return metadata


def event_lines(events: Iterable[tuple[str, bytes]]) -> bytes:
    """Return watch events, one per line."""
    return b"".join(b'{"type":"%s","object":%s}\n' % (kind.encode(), body) for kind, body in events)
