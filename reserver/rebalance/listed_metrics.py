"""Asks the API server for lists of metrics: metrics.k8s.io, and Koordinator's NodeMetrics."""

from __future__ import annotations

from collections.abc import Callable

from reserver.errors import ApiError, InvalidInput, LoadUnknown
from reserver.k8s.client import ApiClient
from reserver.rebalance.metrics_api import read_usage
from reserver.rebalance.node_metric import PATH, read_node_metrics
from reserver.rebalance.readings import Readings

_GROUP = "/apis/metrics.k8s.io/v1beta1"
_MOST_BYTES = 256 * 2**20
"""Bound on one list: 150,000 pods of a few containers take a third of it."""


class MetricsApi:
    """Reads metrics.k8s.io: one list for all nodes, and one for all pods."""

    def __init__(self, client: ApiClient, clock: Callable[[], float]) -> None:
        """Read through a client; `clock` gives unix seconds."""
        self._client = client
        self._clock = clock

    async def read(self, *, with_pods: bool = True) -> Readings:
        """Return what is used now.

        Args:
            with_pods: of pods as well; their list is the long one.

        Raises:
            LoadUnknown: nobody answers for it, or not with lists of metrics.
        """
        try:
            nodes = await self._client.get_bounded(f"{_GROUP}/nodes", _MOST_BYTES)
            pods = None
            if with_pods:
                pods = await self._client.get_bounded(f"{_GROUP}/pods", _MOST_BYTES)
            return read_usage(nodes, pods, self._clock())
        except ApiError as exc:
            remedy = "; is metrics-server installed?" if exc.is_absent or exc.is_away else ""
            raise LoadUnknown(f"metrics.k8s.io cannot be read: {exc}{remedy}") from exc
        except InvalidInput as exc:
            raise LoadUnknown(f"metrics.k8s.io answers with what is no list: {exc}") from exc


async def node_metrics(client: ApiClient, now: float) -> Readings:
    """Return what Koordinator's agents said last; `now` is unix seconds.

    Raises:
        LoadUnknown: there are no NodeMetrics, or they may not be listed.
    """
    try:
        return read_node_metrics(await client.get_bounded(PATH, _MOST_BYTES), now)
    except ApiError as exc:
        remedy = "; is Koordinator installed?" if exc.is_absent else ""
        raise LoadUnknown(f"NodeMetrics cannot be read: {exc}{remedy}") from exc
    except InvalidInput as exc:
        raise LoadUnknown(f"NodeMetrics are answered with what is no list: {exc}") from exc
