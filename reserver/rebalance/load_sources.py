"""Reads the load metrics that the strategies of a policy need, for each round and in between."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

import msgspec
import structlog

from reserver.cluster.pod import PodName
from reserver.errors import ApiError, InvalidInput, LoadUnknown
from reserver.k8s.client import ApiClient
from reserver.k8s.objects.objects import WireStruct, decode
from reserver.rebalance.arguments.utilization import UsageSource
from reserver.rebalance.cluster_state import ClusterState, ListedPod
from reserver.rebalance.load import (
    NOTHING_SEEN,
    Departure,
    Memory,
    SmoothedLoad,
    Standing,
    departed,
    load_of,
    seen,
    settled,
)
from reserver.rebalance.measured_load import METRICS_API, Source, sources
from reserver.rebalance.metrics_api import NODE_METRICS, read_node_metrics, read_usage
from reserver.rebalance.plan import PlannedMove
from reserver.rebalance.policy import DeschedulerPolicy, PrometheusDocument, SecretReference
from reserver.rebalance.prometheus import Prometheus, queries_for
from reserver.rebalance.readings import Readings

log = structlog.get_logger(__name__)

_GROUP = "/apis/metrics.k8s.io/v1beta1"
_MOST_BYTES = 256 * 2**20
"""Bound on one list: 150,000 pods of a few containers take a third of it."""

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Folder of the token and the CAs of a pod's service account."""

_GRACE_S = 30.0
"""Default termination grace period of pods, in seconds."""

_TOKEN_KEY = "prometheusAuthToken"  # noqa: S105 - upstream's name of the key, not a token


class _Secret(WireStruct, frozen=True):
    data: dict[str, str] = msgspec.field(default_factory=dict)


class Loads:
    """The load that is known, by source."""

    def __init__(self, client: ApiClient, clock: Callable[[], float]) -> None:
        """Read through a client; `clock` gives unix seconds."""
        self._client = client
        self._clock = clock
        self._memories: dict[Source, Memory] = {}

    async def read(
        self, policy: DeschedulerPolicy, inventory: ClusterState
    ) -> Mapping[Source, SmoothedLoad]:
        """Return the load that the strategies of a policy read, by source.

        Raises:
            LoadUnknown: a source does not answer; a round with a missing source does nothing.
        """
        wanted = tuple(sources(policy))
        uids = {pod.name: pod.pod.uid for pod in inventory.pods}
        standing = [_standing(pod) for pod in inventory.pods]
        memories = {}
        for source in wanted:
            readings = await self._read(source, policy, frozenset(inventory.nodes))
            memory = self._memories.get(source, NOTHING_SEEN)
            memory = settled(memory, standing, self._clock())
            memories[source] = seen(memory, readings, uids)
            for problem in readings.problems:
                log.warning("load skipped", source=source.kind.value, why=problem)
        self._memories = memories
        return {source: load_of(memory) for source, memory in memories.items()}

    async def sample(self) -> None:
        """Read what nodes use between two rounds, where the last one asked metrics.k8s.io."""
        memory = self._memories.get(METRICS_API)
        if memory is None:
            return
        try:
            readings = await metrics_api(self._client, self._clock, with_pods=False)
        except LoadUnknown as exc:
            log.warning("load not sampled", why=str(exc))
        else:
            self._memories[METRICS_API] = seen(memory, readings, {})

    def left(
        self, moves: Iterable[PlannedMove], inventory: ClusterState, grace_s: float | None
    ) -> None:
        """Count that pods were evicted just now."""
        pods = {pod.name: pod for pod in inventory.pods}
        gone = [pods[move.pod] for move in moves if move.pod in pods]
        now = self._clock()
        for source, memory in self._memories.items():
            known = load_of(memory).pods
            departures = (_departure(pod, known, now, grace_s) for pod in gone)
            self._memories[source] = departed(memory, departures)

    async def _read(
        self, source: Source, policy: DeschedulerPolicy, nodes: frozenset[str]
    ) -> Readings:
        if source.kind is UsageSource.KUBERNETES:
            return await metrics_api(self._client, self._clock)
        if source.kind is UsageSource.NODE_METRIC:
            return await node_metrics(self._client, self._clock())
        prometheus, ca_file = policy.prometheus, ACCOUNT / "ca.crt"
        if prometheus is None:
            problem = "the policy has no metricsProviders of source Prometheus"
            raise LoadUnknown(f"{problem}; write its URL there")
        token, ca = partial(self._token, prometheus), ca_file if ca_file.is_file() else None
        async with Prometheus(prometheus.url, token, ca) as asked:
            if source.share:
                return await asked.shares(nodes, source.share)
            return await asked.read(nodes, queries_for(source.resources, dict(source.queries)))

    async def _token(self, prometheus: PrometheusDocument) -> str:
        """Return the token of the policy's Secret; else Reserver's own, and only over TLS."""
        if prometheus.secret is not None:
            return await self._secret(prometheus.secret)
        own = ACCOUNT / "token"
        if not prometheus.url.startswith("https:") or not own.is_file():
            return ""
        return own.read_text().strip()

    async def _secret(self, ref: SecretReference) -> str:
        name = f"Secret {ref.namespace}/{ref.name}"
        path = f"/api/v1/namespaces/{ref.namespace}/secrets/{ref.name}"
        try:
            data = decode(_Secret, await self._client.get(path)).data
            return b64decode(data[_TOKEN_KEY], validate=True).decode().strip()
        except KeyError as exc:
            raise LoadUnknown(f"{name} has no key {_TOKEN_KEY}") from exc
        except (ApiError, InvalidInput) as exc:
            raise LoadUnknown(f"{name} cannot be read: {exc}") from exc
        except (NotBase64, UnicodeDecodeError) as exc:
            raise LoadUnknown(f"{name}: {_TOKEN_KEY} is not text") from exc


def _owner(pod: ListedPod) -> str:
    return next((owner.uid for owner in pod.owners if owner.is_controller), "")


def _standing(pod: ListedPod) -> Standing:
    started = pod.started if pod.started is not None else float("inf")
    return Standing(pod.pod.uid, _owner(pod), pod.node, pod.created, started)


def _departure(
    pod: ListedPod, known: Mapping[PodName, Mapping[str, float]], now: float, grace_s: float | None
) -> Departure:
    grace = _GRACE_S if grace_s is None else grace_s
    return Departure(pod.pod.uid, _owner(pod), pod.node, known.get(pod.name, {}), now, grace)


async def metrics_api(
    client: ApiClient, clock: Callable[[], float], *, with_pods: bool = True
) -> Readings:
    """Return what metrics.k8s.io says is used: one list of all nodes, and one of all pods.

    Args:
        client: the lists are read through it.
        clock: unix seconds.
        with_pods: of pods as well; their list is the long one.

    Raises:
        LoadUnknown: nobody answers for it, or not with lists of metrics.
    """
    try:
        nodes = await client.get_bounded(f"{_GROUP}/nodes", _MOST_BYTES)
        pods = await client.get_bounded(f"{_GROUP}/pods", _MOST_BYTES) if with_pods else None
        return read_usage(nodes, pods, clock())
    except ApiError as exc:
        remedy = "; is metrics-server installed?" if exc.is_absent or exc.is_away else ""
        raise LoadUnknown(f"metrics.k8s.io cannot be read: {exc}{remedy}") from exc
    except InvalidInput as exc:
        raise LoadUnknown(
            f"metrics.k8s.io answers with something other than a list: {exc}"
        ) from exc


async def node_metrics(client: ApiClient, now: float) -> Readings:
    """Return what Koordinator's agents said last; `now` is unix seconds.

    Raises:
        LoadUnknown: there are no NodeMetrics, or they may not be listed.
    """
    try:
        return read_node_metrics(await client.get_bounded(NODE_METRICS, _MOST_BYTES), now)
    except ApiError as exc:
        remedy = "; is Koordinator installed?" if exc.is_absent else ""
        raise LoadUnknown(f"NodeMetrics cannot be read: {exc}{remedy}") from exc
    except InvalidInput as exc:
        raise LoadUnknown(
            f"NodeMetrics are answered with something other than a list: {exc}"
        ) from exc
