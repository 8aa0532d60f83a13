"""Pages of lists: of many objects, or of few where these are large."""

from __future__ import annotations

from collections.abc import Mapping

from reserver.errors import ApiError
from reserver.k8s.client import ApiClient
from reserver.k8s.objects.objects import decode
from reserver.k8s.objects.watch import ObjectList

PAGE = 250
"""Objects per page of a list at most: bounds how long calls wait for decoding."""

PAGE_BYTES = 32 * 2**20
"""So long is a page at most, in bytes. One object has three megabytes at most, but who may write
pods can write many such; two pages are in memory at one time."""

_LESS = 8
"""A page that is too long is asked for again with so many times fewer objects."""


class Pages:
    """The pages of one collection."""

    def __init__(self, client: ApiClient, path: str) -> None:
        """Begin with pages of many objects; no object is known to be large."""
        self._client = client
        self._path = path
        self._limit = PAGE

    async def page(self, params: Mapping[str, str]) -> ObjectList:
        """Return a page of a list, with as many objects as may be expected to be short enough.

        Raises:
            ApiError: the API server refused, or did not answer.
            InvalidInput: it answered with something else.
        """
        while True:
            asked = {**params, "limit": str(self._limit)}
            try:
                raw = await self._client.get_bounded(self._path, PAGE_BYTES, asked)
            except ApiError as exc:
                if exc.reason != "TooLarge" or self._limit == 1:
                    raise
                self._limit = max(1, self._limit // _LESS)
                continue
            if len(raw) < PAGE_BYTES // 2:
                self._limit = min(PAGE, 2 * self._limit)
            return decode(ObjectList, raw)
