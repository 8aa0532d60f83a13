"""Asks controllers of any kind for their desired replicas, by the subresource ``scale``."""

from __future__ import annotations

import re
from urllib.parse import quote

import msgspec
from cachetools import TTLCache

from reserver.cluster.pod import Controller
from reserver.errors import ApiError, InvalidInput
from reserver.k8s.client import ApiClient
from reserver.k8s.objects.limits import Int32
from reserver.k8s.objects.objects import WireStruct, decode

_VERSION = re.compile(r"(?P<group>[a-z0-9.-]{1,253})/v[a-z0-9]{1,62}")
"""An ``apiVersion`` with a group; who writes a pod also writes this."""

_MOST_BYTES = 4 * 2**20
_REMEMBERED, _REMEMBERED_S = 1_000, 600.0
"""How many kinds are remembered, and for how many seconds: CRDs come and go."""


class _Resource(WireStruct, frozen=True):
    name: str
    kind: str = ""


class _Resources(WireStruct, frozen=True):
    resources: list[_Resource] = msgspec.field(default_factory=list)


class _Spec(WireStruct, frozen=True):
    replicas: Int32 = 0


class _Scale(WireStruct, frozen=True):
    kind: str
    spec: _Spec = _Spec()


class Scales:
    """Reads the subresource ``scale``, where a kind has one."""

    def __init__(self, client: ApiClient) -> None:
        """Read through a client."""
        self._client = client
        self._known: TTLCache[tuple[str, str], str] = TTLCache(_REMEMBERED, _REMEMBERED_S)

    async def replicas(self, namespace: str, controller: Controller, version: str) -> int | None:
        """Return how many pods a controller wants; None if its kind cannot tell.

        Args:
            namespace: of the controller.
            controller: kind and name, as its pods have them.
            version: its ``apiVersion``, likewise.

        Raises:
            ApiError: the API server does not answer, or does not allow it; `is_absent` if there is
                no such controller.
            InvalidInput: what it answers is malformed.
        """
        if not _VERSION.fullmatch(version):
            return None
        resource = await self._resource(version, controller.kind)
        if not resource:
            return None
        name = quote(controller.name, safe="")
        path = f"/apis/{version}/namespaces/{namespace}/{quote(resource, safe='')}/{name}/scale"
        found = decode(_Scale, await self._client.get(path))
        if found.kind != "Scale":
            raise InvalidInput("kind", f"{found.kind[:40]!r} is not Scale", "see to the controller")
        return found.spec.replicas

    async def _resource(self, version: str, kind: str) -> str:
        """Return the name of a kind's resource; empty if it cannot be scaled, or is not known."""
        known = self._known.get((version, kind))
        if known is not None:
            return known
        try:
            raw = await self._client.get_bounded(f"/apis/{version}", _MOST_BYTES)
        except ApiError as exc:
            if not exc.is_absent:
                raise
            raw = b"{}"
        listed = decode(_Resources, raw).resources
        scaled = {each.name for each in listed}
        found = (each.name for each in listed if each.kind == kind and "/" not in each.name)
        resource = next((name for name in found if f"{name}/scale" in scaled), "")
        self._known[version, kind] = resource
        return resource
