"""Caches the pods of each controller, and reads its desired replicas."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple
from urllib.parse import quote

import structlog
from cachetools import LRUCache

from reserver.cluster.pod import NO_CONTROLLER, Controller, Pod, PodName
from reserver.errors import ApiError, InvalidInput
from reserver.k8s.client import ApiClient
from reserver.moves.scale import Scales
from reserver.moves.workload_object import PATHS, WantedPods, read_wanted

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
