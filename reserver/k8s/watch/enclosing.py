"""What encloses a collection: to delete a CRD or a namespace deletes each object in it."""

from __future__ import annotations

from http import HTTPStatus

import msgspec

from reserver.errors import ApiError
from reserver.k8s.client import ApiClient
from reserver.k8s.objects.objects import Metadata, decode

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NAMESPACES = "/api/v1/namespaces"


class _Deleted(Metadata, frozen=True):
    deletion_timestamp: str | None = None


class _Item(msgspec.Struct, frozen=True):
    metadata: _Deleted = _Deleted()


class _List(msgspec.Struct, frozen=True):
    metadata: Metadata = Metadata()
    items: list[_Item] = []


class Enclosing:
    """A CRD or a namespace.

    Its objects are deleted with it, one by one, and nobody has released them: such a deletion
    counts only once the CRD or namespace exists again without them (docs/adr/0071).
    """

    def __init__(
        self, client: ApiClient, path: str, name: str, *, may_be_missing: bool = False
    ) -> None:
        """Name it; one that may be missing counts once it has been seen."""
        self._may_be_missing = may_be_missing
        self._client = client
        self._path = path
        self._name = name
        self._kept_up_to = 0

    async def require_kept(self, revision: int) -> None:
        """Return if it was not being deleted at a resourceVersion: others had deleted its objects.

        Raises:
            ApiError: it is being deleted, or is gone; or the API server did not answer.
        """
        if revision <= self._kept_up_to:
            return  # One answer for each burst of deletions.
        params = {"fieldSelector": f"metadata.name={self._name}"}
        try:
            found = decode(_List, await self._client.get(self._path, params))
        except ApiError as exc:
            if not exc.is_absent:
                raise
            return  # An API server without CRDs, as the demo's: nobody deletes any.
        if not found.items and self._may_be_missing and not self._kept_up_to:
            return
        if not found.items or found.items[0].metadata.deletion_timestamp:
            state = "is being deleted" if found.items else "does not exist"
            problem = f"{self._name} {state}; make it again: docs/backup-and-restore.md"
            raise ApiError(HTTPStatus.CONFLICT, "Terminating", problem)
        self._kept_up_to = found.metadata.revision
