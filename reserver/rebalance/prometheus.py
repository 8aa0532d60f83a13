"""Reads the usage of nodes and pods from Prometheus by instant queries, in full or not at all."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Self, TypeVar

import aiohttp

from reserver.cluster.pod import PodName
from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput, LoadUnknown
from reserver.k8s.client import bounded
from reserver.rebalance import prometheus_samples as wire
from reserver.rebalance.arguments.utilization import METRIC
from reserver.rebalance.readings import Reading, Readings

_TIMEOUT = aiohttp.ClientTimeout(total=30, sock_connect=5)
_MOST_BYTES = 64 * 2**20
"""Bound on one answer: 150,000 pods take half of it."""

_WINDOW_S = 300.0
"""Window of the default queries, in seconds; as long as Prometheus' lookback."""

_UNITS = {"cpu": 1000.0, METRIC: 100.0}
"""Reserver counts millicores and percents; Prometheus has cores, shares, and base units else."""

_CADVISOR_NODE = (
    'label_replace(label_replace({}, "nodename", "$1", "instance", "([^:]+)(:[0-9]+)?"), '
    '"nodename", "$1", "node", "(.+)")'
)
"""cAdvisor's series name the node in the label node, or else in instance."""

_ON_MACHINE = "* on (instance, job) group_left (nodename) node_uname_info"

NODE_QUERIES: Mapping[str, str] = {
    "cpu": (
        'sum by (nodename) (rate(node_cpu_seconds_total{mode!~"idle|iowait|steal"}[5m]) '
        f"{_ON_MACHINE}) or sum by (nodename) ("
        + _CADVISOR_NODE.format('rate(container_cpu_usage_seconds_total{id="/"}[5m])')
        + ")"
    ),
    "memory": (
        "sum by (nodename) ((node_memory_MemTotal_bytes - node_memory_MemAvailable_bytes) "
        f"{_ON_MACHINE}) or sum by (nodename) ("
        + _CADVISOR_NODE.format('container_memory_working_set_bytes{id="/"}')
        + ")"
    ),
}
"""Queries for the usage of nodes: node-exporter, else cAdvisor."""

POD_QUERIES: Mapping[str, str] = {
    "cpu": (
        "sum by (namespace, pod) "
        '(rate(container_cpu_usage_seconds_total{container!="",pod!=""}[5m]))'
    ),
    "memory": (
        'sum by (namespace, pod) (container_memory_working_set_bytes{container!="",pod!=""})'
    ),
}
"""Queries for the usage of pods: cAdvisor."""

Key = TypeVar("Key")
Read = TypeVar("Read")

Token = Callable[[], Awaitable[str]]
"""Returns a token to send, or an empty text."""


class Prometheus:
    """Asks one Prometheus."""

    def __init__(self, url: str, token: Token, ca_file: Path | None = None) -> None:
        """Ask at a base URL, such as ``http://prometheus.monitoring:9090``.

        Args:
            url: without ``/api/v1``.
            token: returns the bearer token.
            ca_file: PEM file of trusted CAs, in addition to the system's.
        """
        self._url = url.rstrip("/")
        self._token = token
        self._tls = ssl.create_default_context()
        if ca_file is not None:
            self._tls.load_verify_locations(ca_file)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        """Open the connection pool."""
        connector = aiohttp.TCPConnector(ssl=self._tls, limit=4)
        self._session = aiohttp.ClientSession(
            connector=connector, timeout=_TIMEOUT, headers={"Accept-Encoding": "identity"}
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()

    async def read(
        self, nodes: frozenset[str], queries: Mapping[str, str], *, with_pods: bool = True
    ) -> Readings:
        """Return the current usage.

        Args:
            nodes: names of all nodes.
            queries: queries for the usage of nodes, by resource.
            with_pods: reads the usage of pods as well, as far as cAdvisor has samples.

        Raises:
            LoadUnknown: Prometheus does not answer, or answers with something else.
        """
        by_node: dict[str, Reading] = {}
        by_pod: dict[PodName, Reading] = {}
        problems: list[str] = []
        for resource, query in queries.items():
            samples = await self._asked(query, lambda raw: wire.read_nodes(raw, nodes))
            problems += samples.problems
            _add(by_node, resource, samples.nodes)
            if with_pods and resource in POD_QUERIES:
                measured = await self._asked(POD_QUERIES[resource], wire.read_pods)
                problems += measured.problems
                _add(by_pod, resource, measured.pods)
        return Readings(nodes=by_node, pods=by_pod, problems=tuple(problems))

    async def shares(self, nodes: frozenset[str], query: str) -> Readings:
        """Return what shares of nodes a query says are used, as percents of `METRIC`.

        LowNodeUtilization asks for them.

        Raises:
            LoadUnknown: Prometheus does not answer, or not with shares.
        """
        samples = await self._asked(query, lambda raw: wire.read_nodes(raw, nodes))
        for name, sample in samples.nodes.items():
            if sample.value > 1:
                problem = f"node {name} has {sample.value}, which is not a share from 0 to 1"
                raise self._unknown(query, problem)
        by_node: dict[str, Reading] = {}
        _add(by_node, METRIC, samples.nodes)
        return Readings(nodes=by_node, problems=samples.problems)

    async def _asked(self, query: str, read: Callable[[bytes], Read]) -> Read:
        if self._session is None:
            raise RuntimeError("the client is used outside its `async with`")
        token = await self._token()
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        with self._failing(query):
            async with self._session.post(
                f"{self._url}/api/v1/query",
                data={"query": query},
                headers=headers,
                allow_redirects=False,  # Whoever answers elsewhere is not to have the token.
            ) as response:
                raw = await bounded(response, _MOST_BYTES)
            if raw is None:
                raise self._unknown(query, f"the answer exceeds {_MOST_BYTES >> 20} MiB")
            if response.status != HTTPStatus.OK:
                said = wire.failure(raw) or response.reason or "it gives no reason"
                raise self._unknown(query, f"status {response.status}: {said}")
            return read(raw)

    @contextlib.contextmanager
    def _failing(self, query: str) -> Iterator[None]:
        """Say what went wrong in words that name Prometheus and the query."""
        try:
            yield
        except TimeoutError as exc:
            raise self._unknown(query, "it did not answer in time") from exc
        except (aiohttp.ClientError, OSError) as exc:
            raise self._unknown(query, f"it cannot be reached: {exc}") from exc
        except InvalidInput as exc:
            raise self._unknown(query, str(exc)) from exc

    def _unknown(self, query: str, problem: str) -> LoadUnknown:
        return LoadUnknown(f"Prometheus at {self._url}: {problem} (query: {shorten(query, 300)})")


def queries_for(resources: Iterable[str], written: Mapping[str, str]) -> dict[str, str]:
    """Return a query for each resource: the one that the policy has, or ours.

    Raises:
        LoadUnknown: there is neither.
    """
    queries = {}
    for resource in resources:
        query = written.get(resource) or NODE_QUERIES.get(resource)
        if not query:
            problem = f"there is no query for what nodes use of {resource}"
            raise LoadUnknown(f"{problem}; write one under query, or have no threshold for it")
        queries[resource] = query
    return queries


def _add(found: dict[Key, Reading], resource: str, samples: Mapping[Key, wire.Sample]) -> None:
    for key, sample in samples.items():
        known = found.get(key, Reading({}, sample.at, _WINDOW_S))
        usage = {**known.usage, resource: sample.value * _UNITS.get(resource, 1.0)}
        found[key] = Reading(usage, min(known.at, sample.at), _WINDOW_S)
