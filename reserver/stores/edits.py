"""Edits of what is written in a store, each with a precondition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reserver.errors import ApiError
from reserver.k8s.client import JSON_PATCH, ApiClient
from reserver.k8s.objects.objects import decode
from reserver.k8s.objects.watch import PartialObject
from reserver.stores.configmap.entry_edits import Deletion, Edit
from reserver.stores.object.edits import Abandonment, Tidying


class StoreEdits:
    """Carries out edits of the stores."""

    def __init__(self, client: ApiClient) -> None:
        """Write through a client."""
        self._client = client

    async def edit(self, edit: Tidying) -> bool:
        """Change one entry of the store; return False when somebody else was faster.

        Raises:
            ApiError: the API server refused, or did not answer.
        """
        if isinstance(edit, Deletion):
            return await self._delete(edit)
        return await self.edit_at(edit) is not None

    async def edit_all(self, edits: Sequence[Edit]) -> bool:
        """Make all edits, which are of one ConfigMap, or none; return False when none was made.

        Raises:
            ApiError: the API server refused, or did not answer.
        """
        patch = [operation for edit in edits for operation in edit.patch()]
        return await self._patch_at(edits[0].path, patch) is not None

    async def _delete(self, deletion: Deletion) -> bool:
        try:
            await self._client.delete(deletion.path, deletion.options())
        except ApiError as exc:
            if exc.is_conflict or exc.is_absent:
                return False
            raise
        return True

    async def edit_at(self, edit: Edit | Abandonment) -> int | None:
        """Do as `edit` does, and return the resourceVersion that this made; None if not done.

        Raises:
            ApiError: the API server refused, or did not answer.
        """
        return await self._patch_at(edit.path, edit.patch())

    async def _patch_at(self, path: str, patch: Sequence[Mapping[str, object]]) -> int | None:
        try:
            answer = await self._client.patch(path, patch, JSON_PATCH)
        except ApiError as exc:
            if exc.is_overtaken or exc.is_absent:
                return None
            raise
        return decode(PartialObject, answer).metadata.revision
