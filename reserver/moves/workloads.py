"""Caches the pods of each controller, and reads its desired replicas, of any kind by ``scale``."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple
from urllib.parse import quote

import msgspec
import structlog
from cachetools import LRUCache, TTLCache

from reserver.cluster.pod import NO_CONTROLLER, Controller, Pod, PodName
from reserver.errors import ApiError, InvalidInput
from reserver.k8s.client import ApiClient
from reserver.k8s.objects.limits import Int32
from reserver.k8s.objects.objects import WireStruct, decode
from reserver.moves.workload_object import PATHS, WantedPods, read_wanted

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
            raise InvalidInput("kind", f"{found.kind[:40]!r} is not Scale", "check the controller")
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


_BUILT_IN = frozenset({"", "apps/v1", "batch/v1"})
"""The versions of those that `PATHS` has; the others are asked by their scale."""

_MOST_VERSIONS = 20_000
"""So many controllers of other kinds are remembered, the latest."""

log = structlog.get_logger(__name__)


class Workload(NamedTuple):
    """A controller of pods, and the namespace that it is in."""

    namespace: str
    controller: Controller


class Workloads:
    """The pods of each controller, as the watch shows them."""

    def __init__(self, client: ApiClient, pods: Mapping[PodName, Pod]) -> None:
        """Put the pods in order that a watch keeps up to date; `client` asks of controllers."""
        self._client = client
        self._pods = pods
        self._names: defaultdict[Workload, set[PodName]] = defaultdict(set)
        self._scales = Scales(client)
        self._versions: LRUCache[Workload, str] = LRUCache(_MOST_VERSIONS)

    def changed(self, before: Pod | None, after: Pod | None) -> None:
        """Take a pod that has changed."""
        old, new = workload(before), workload(after)
        if before is not None and old is not None and old != new:
            self._names[old].discard(before.name)
            if not self._names[old]:
                del self._names[old]
        if after is not None and new is not None:
            self._names[new].add(after.name)
            if after.controller_version not in _BUILT_IN:
                self._versions[new] = after.controller_version

    def pods(self, workload: Workload) -> Iterator[Pod]:
        """Yield the pods of a controller that have not finished."""
        for name in self._names.get(workload, ()):
            pod = self._pods.get(name)
            if pod is not None and not pod.finished:
                yield pod

    def count(self, workload: Workload) -> int:
        """Return how many pods a controller has, finished ones included."""
        return len(self._names.get(workload, ()))

    async def wants(self, workload: Workload) -> WantedPods | None:
        """Return how many pods a controller wants; None where nobody can tell.

        Raises:
            ApiError: the API server does not answer.
        """
        namespace, controller = workload
        where = f"{controller.kind} {namespace}/{controller.name}"
        try:
            if version := self._versions.get(workload):
                replicas = await self._scales.replicas(namespace, controller, version)
                return None if replicas is None else WantedPods(replicas)
            path = PATHS.get(controller.kind)
            if path is None:
                return None
            name = quote(controller.name, safe="")
            return read_wanted(await self._client.get(path.format(namespace=namespace, name=name)))
        except ApiError as exc:
            if exc.is_absent:
                return WantedPods(0)
            if not exc.is_definite:
                raise
            log.warning("cannot tell how many pods are wanted", controller=where, why=str(exc))
        except InvalidInput as exc:
            log.warning("cannot tell how many pods are wanted", controller=where, why=str(exc))
        return None


def workload(pod: Pod | None) -> Workload | None:
    """Return what makes a pod again; None if nothing does."""
    if pod is None or pod.controller == NO_CONTROLLER:
        return None
    return Workload(pod.name.namespace, pod.controller)
