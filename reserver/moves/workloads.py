"""Caches the pods of each controller, and reads its desired replicas, by ``scale`` if needed."""

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
"""An ``apiVersion`` with a group; checked, as any author of a pod can write it."""

_MOST_BYTES = 4 * 2**20
_REMEMBERED, _REMEMBERED_S = 1_000, 600.0
"""Most kinds that are cached, and the seconds for which they are: CRDs come and go."""


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
    """Reads the subresource ``scale`` of kinds that have one."""

    def __init__(self, client: ApiClient) -> None:
        """Read through a client."""
        self._client = client
        self._known: TTLCache[tuple[str, str], str] = TTLCache(_REMEMBERED, _REMEMBERED_S)

    async def replicas(self, namespace: str, controller: Controller, version: str) -> int | None:
        """Return the desired replicas of a controller; None if its kind has no scale.

        Args:
            namespace: the controller's namespace.
            controller: its kind and name, from its pods' ownerReferences.
            version: its ``apiVersion``, from there too.

        Raises:
            ApiError: the API server does not answer, or refuses; `is_absent` if there is no such
                controller.
            InvalidInput: the answer is malformed.
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
        """Return the resource name of a kind; empty if it has no scale, or is unknown."""
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
"""The versions of the kinds in `PATHS`; the scale of all others is read."""

_MOST_VERSIONS = 20_000
"""Most controllers of other kinds whose versions are cached."""

log = structlog.get_logger(__name__)


class Workload(NamedTuple):
    """A controller of pods, and its namespace."""

    namespace: str
    controller: Controller


class Workloads:
    """The pods of each controller."""

    def __init__(self, client: ApiClient, pods: Mapping[PodName, Pod]) -> None:
        """Begin with an empty index; `pods` are the watched pods, `client` reads controllers."""
        self._client = client
        self._pods = pods
        self._names: defaultdict[Workload, set[PodName]] = defaultdict(set)
        self._scales = Scales(client)
        self._versions: LRUCache[Workload, str] = LRUCache(_MOST_VERSIONS)

    def changed(self, before: Pod | None, after: Pod | None) -> None:
        """Update the index for a changed pod."""
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
        """Yield the unfinished pods of a controller."""
        for name in self._names.get(workload, ()):
            pod = self._pods.get(name)
            if pod is not None and not pod.finished:
                yield pod

    def count(self, workload: Workload) -> int:
        """Return the number of a controller's pods, finished ones included."""
        return len(self._names.get(workload, ()))

    async def wants(self, workload: Workload) -> WantedPods | None:
        """Return the desired pods of a controller; None if unknown.

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
    """Return the controller of a pod; None without one."""
    if pod is None or pod.controller == NO_CONTROLLER:
        return None
    return Workload(pod.name.namespace, pod.controller)
