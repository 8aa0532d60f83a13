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
from reserver.cluster.quantity import shorten
from reserver.errors import ApiError, InvalidInput
from reserver.k8s.client import ApiClient
from reserver.k8s.objects.limits import Int32
from reserver.k8s.objects.objects import WireStruct, decode

log = structlog.get_logger(__name__)

_PATHS: Mapping[str, str] = {
    "ReplicaSet": "/apis/apps/v1/namespaces/{namespace}/replicasets/{name}",
    "StatefulSet": "/apis/apps/v1/namespaces/{namespace}/statefulsets/{name}",
    "Job": "/apis/batch/v1/namespaces/{namespace}/jobs/{name}",
}
"""The paths of controllers by kind; of other kinds the scale is read."""

_BUILT_IN = frozenset({"", "apps/v1", "batch/v1"})
"""The versions of the kinds in `_PATHS`; the scale of all others is read."""

_MOST_VERSIONS = 20_000
"""Most controllers of other kinds whose versions are cached."""

_MOST_SAID = 300
"""Most characters of a failure that a message repeats."""

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


class WantedPods(NamedTuple):
    """The desired pods of a controller.

    Attributes:
        replicas: the desired replicas; None if the object has no such field.
        failure: why it could not create a pod, in the API server's words; may be empty. Only
            ReplicaSets report it.
    """

    replicas: int | None
    failure: str = ""


class _ControllerSpec(WireStruct, frozen=True):
    replicas: Int32 | None = None


class _Condition(WireStruct, frozen=True):
    type: str = ""
    status: str = ""
    message: str = ""


class _Status(WireStruct, frozen=True):
    conditions: list[_Condition] | None = None


class _Metadata(WireStruct, frozen=True):
    deletion_timestamp: str | None = None


class _Controller(WireStruct, frozen=True):
    metadata: _Metadata = _Metadata()
    spec: _ControllerSpec = _ControllerSpec()
    status: _Status = _Status()


def read_wanted(raw: bytes) -> WantedPods:
    """Return the desired pods of a controller: 0 for one that has ended, or is being deleted.

    Raises:
        InvalidInput: `raw` is malformed; the error carries the path.
    """
    found = decode(_Controller, raw)
    has_ended = any(
        each.type in {"Complete", "Failed", "SuccessCriteriaMet", "FailureTarget"}
        and each.status == "True"
        for each in found.status.conditions or ()
    )
    if has_ended or found.metadata.deletion_timestamp is not None:
        return WantedPods(0)
    failures = [
        each.message
        for each in found.status.conditions or ()
        if each.type == "ReplicaFailure" and each.status == "True"
    ]
    return WantedPods(found.spec.replicas, shorten(failures[0], _MOST_SAID) if failures else "")


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
        self._resources: TTLCache[tuple[str, str], str] = TTLCache(_REMEMBERED, _REMEMBERED_S)
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
                replicas = await self._replicas(namespace, controller, version)
                return None if replicas is None else WantedPods(replicas)
            path = _PATHS.get(controller.kind)
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

    async def _replicas(self, namespace: str, controller: Controller, version: str) -> int | None:
        """Return the desired replicas of a controller by its scale; None if its kind has none.

        Args:
            version: the ``apiVersion`` in the ownerReferences of its pods.
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
        known = self._resources.get((version, kind))
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
        self._resources[version, kind] = resource
        return resource


def workload(pod: Pod | None) -> Workload | None:
    """Return the controller of a pod; None without one."""
    if pod is None or pod.controller == NO_CONTROLLER:
        return None
    return Workload(pod.name.namespace, pod.controller)
