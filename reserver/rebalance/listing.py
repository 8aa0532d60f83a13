"""What a rebalancing round looks at, listed anew: in pages, so that no answer is large."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Protocol

from reserver.base.pacer import Pacer
from reserver.errors import ApiError
from reserver.k8s.objects.objects import Metadata, WireStruct, decode
from reserver.rebalance.dump_reader import Dump, DumpReading

COLLECTIONS = (
    "/api/v1/nodes",
    "/api/v1/pods",
    "/api/v1/namespaces",
    "/api/v1/persistentvolumeclaims",
    "/api/v1/persistentvolumes",
    "/apis/policy/v1/poddisruptionbudgets",
    "/apis/scheduling.k8s.io/v1/priorityclasses",
    "/apis/storage.k8s.io/v1/storageclasses",
)
_PAGE = "500"
"""Objects of one answer: as many as kubectl asks for."""


class Lister(Protocol):
    """What reads collections of the API server."""

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> bytes:
        """Return a page."""


class _Page(WireStruct, frozen=True):
    metadata: Metadata = Metadata()


async def list_cluster(client: Lister) -> Dump:
    """Return what is there; an object that cannot be read costs itself and is named.

    Raises:
        ApiError: the API server refused, or did not answer.
        InvalidInput: an answer is no list.
    """
    try:
        return await _listed(client, {"limit": _PAGE})
    except ApiError as exc:
        if not exc.is_forgotten:  # The version that a first page was of is compacted by now.
            raise
    return await _listed(client, {})


async def _listed(client: Lister, first: Mapping[str, str]) -> Dump:
    """Read collections, a page after the other; memory holds one of them.

    Args:
        first: asks for the first page.
    """
    reading, pacer = DumpReading(), Pacer()
    for path in COLLECTIONS:
        following = ""
        while True:
            params = {**first, "continue": following} if following else dict(first)
            try:
                page = await client.get(path, params or None)
            except ApiError as exc:
                if exc.status != HTTPStatus.NOT_FOUND:  # Any other says what it is about.
                    raise
                raise ApiError(exc.status, exc.reason, f"the API server has no {path}") from exc
            reading.take("the dump", page)
            await pacer.give_way()
            following = decode(_Page, page).metadata.continue_
            if not following:
                break
    return reading.result()
