"""Cordons nodes while rounds empty them, and opens them again or hands them over."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass, field
from typing import Any

import structlog

from reserver.cluster.pod import PodName
from reserver.errors import ApiError
from reserver.k8s.client import ApiClient
from reserver.k8s.objects.nodes import EMPTIED_ANNOTATION, EMPTYING_ANNOTATION, NodeObject
from reserver.k8s.objects.objects import decode
from reserver.k8s.objects.times import show_moment
from reserver.rebalance.capacity import Held
from reserver.rebalance.cluster_state import ClusterState
from reserver.rebalance.emptying import Settled, left_by, settled
from reserver.rebalance.plan import Plan

log = structlog.get_logger(__name__)

_TRIES = 5
"""Attempts to write a node after conflicts with other writers."""


@dataclass(eq=False, repr=False)
class NodeMarks:
    """Writes the cordons and annotations of the nodes that rounds empty.

    Cordon and annotation are one write, so neither exists without the other.

    Attributes:
        clock: unix seconds.
        hands_over: emptied nodes stay cordoned, for an autoscaler to remove.
        counted: receives ``emptied`` or ``given back`` for each node whose emptying has ended.
    """

    client: ApiClient
    clock: Callable[[], float]
    hands_over: bool = field(default=False, kw_only=True)
    counted: Callable[[str], None] = field(default=lambda _: None, kw_only=True)

    async def prepare(
        self, plan: Plan, cluster: ClusterState, held: Held, pods: Container[PodName]
    ) -> Settled:
        """Cordon the nodes that a plan empties; settle and return the nodes that are done.

        Args:
            plan: the part of the plan that is carried out now.
            cluster: the cluster now.
            held: resources that reservations hold, by node.
            pods: pods with an open PodMove.

        Raises:
            ApiError: the API server refuses, or does not answer.
        """
        sources = {move.source for move in plan.moves}
        found = settled(cluster, held, sources | left_by(cluster, pods))
        await self.settle(found)
        for node in plan.emptied:
            if node in sources and not cluster.nodes[node].is_marked:
                await self.begin(node)
        return found

    async def begin(self, node: str) -> None:
        """Cordon and mark a node, unless another client has cordoned the node meanwhile.

        Raises:
            ApiError: the API server refuses, or does not answer.
        """
        since = show_moment(self.clock())

        def change(found: NodeObject) -> dict[str, Any] | None:
            if found.spec.unschedulable:
                return None
            marks = {EMPTYING_ANNOTATION: since, EMPTIED_ANNOTATION: None}
            return {"metadata": {"annotations": marks}, "spec": {"unschedulable": True}}

        await self._write(node, change)
        log.info("node is being emptied", node=node)

    async def settle(self, settled: Settled) -> None:
        """Open nodes that are emptied or given back, or hand over the emptied ones.

        Raises:
            ApiError: the API server refuses, or does not answer.
        """
        for node in settled.emptied:
            await self._end(node, hands_over=self.hands_over)
            self.counted("emptied")
            log.info("node is emptied", node=node, handed_over=self.hands_over)
        for node in settled.given_back:
            await self._end(node, hands_over=False)
            self.counted("given back")
            log.warning("node is given back, as not all of its pods can leave", node=node)

    async def _end(self, node: str, *, hands_over: bool) -> None:
        since = show_moment(self.clock())

        def change(found: NodeObject) -> dict[str, Any] | None:
            if EMPTYING_ANNOTATION not in (found.metadata.annotations or {}):
                return None
            stays = hands_over and found.spec.unschedulable
            marks = {EMPTYING_ANNOTATION: None, **({EMPTIED_ANNOTATION: since} if stays else {})}
            spec = {} if stays else {"spec": {"unschedulable": None}}
            return {"metadata": {"annotations": marks}, **spec}

        await self._write(node, change)

    async def _write(
        self, name: str, change: Callable[[NodeObject], dict[str, Any] | None]
    ) -> None:
        """Change a node as it is now; one that is gone needs nothing."""
        path = f"/api/v1/nodes/{name}"
        for attempt in range(1, _TRIES + 1):
            try:
                found = decode(NodeObject, await self.client.get(path))
                if (body := change(found)) is None:
                    return
                body["metadata"]["resourceVersion"] = found.metadata.resource_version
                await self.client.patch(path, body)
            except ApiError as exc:
                if exc.is_absent:
                    return
                if not exc.is_conflict or attempt == _TRIES:
                    raise
            else:
                return
