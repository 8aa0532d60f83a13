"""What a rebalancing round looks at, listed anew: in pages, so that no answer is large."""

from __future__ import annotations

from reserver.errors import ApiError
from reserver.kube.api.client import ApiClient
from reserver.pacer import Pacer
from reserver.wire.k8s.objects import Metadata, WireStruct, decode
from reserver.wire.rebalance.dump import Dump, Reading

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


class _Page(WireStruct, frozen=True):
    metadata: Metadata = Metadata()


async def list_cluster(client: ApiClient) -> Dump:
    """Return what is there; an object that cannot be read costs itself and is named.

    Raises:
        ApiError: the API server refused, or did not answer.
        InvalidInput: an answer is no list.
    """
    reading = Reading()
    pacer = Pacer()
    for path in COLLECTIONS:
        for page in await _listed(client, path):
            reading.take("the dump", page)
            await pacer.give_way()
    return reading.result()


async def _listed(client: ApiClient, path: str) -> list[bytes]:
    """Return the pages of a collection, or all of it as one if it changes too fast for pages."""
    pages: list[bytes] = []
    params = {"limit": _PAGE}
    try:
        while True:
            pages.append(await client.get(path, params))
            following = decode(_Page, pages[-1]).metadata.continue_
            if not following:
                return pages
            params = {"limit": _PAGE, "continue": following}
    except ApiError as exc:
        if not exc.is_forgotten:  # The version that the first page was of is compacted by now.
            raise
        return [await client.get(path)]
