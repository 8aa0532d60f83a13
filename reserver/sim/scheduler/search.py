"""Finding a node for a pod: kube-scheduler's filters on a sample, the extender, the best of it."""

from __future__ import annotations

from collections.abc import Iterable

from reserver.sim.scheduler.extender import Extender
from reserver.sim.scheduler.filters import score, why_not
from reserver.sim.scheduler.objects import NodeView, PodView
from reserver.sim.scheduler.verdict import AttemptFailedError, NotSchedulableError
from reserver.sim.scheduler.view import ClusterView, rotated

Reasons = dict[str, tuple[str, ...]]


class NodeSearch:
    """One attempt after the other; each goes on where the last one stopped looking.

    Args:
        cluster: what there is.
        extender: is asked about what passes the filters; None for nobody.
        sample: feasible nodes to look for at most.
    """

    def __init__(self, cluster: ClusterView, extender: Extender | None, sample: int) -> None:
        self._cluster = cluster
        self._extender = extender
        self._sample = sample
        self._start = 0

    async def pick(self, view: PodView, nominated: Iterable[PodView]) -> str:
        """Return the best node for a pod.

        Args:
            view: the pod.
            nominated: other pods that wait for a node of their own; it is kept free for those of
                the same or a higher priority.

        Raises:
            NotSchedulableError: no node can take it.
            AttemptFailedError: nobody knows.
        """
        nodes = self._cluster.nodes
        if not nodes:
            raise AttemptFailedError("no nodes available to schedule pods", "Unschedulable")
        expected = _expected(view, nominated)
        reasons: Reasons = {}
        feasible = await self._nominated_node(view, expected, reasons)
        taken_away = False
        if not feasible:
            passed = self._pass_filters(view, nodes, expected, reasons)
            feasible = await self._pass_extender(view, passed, reasons)
            taken_away = len(feasible) < len(passed)
        if not feasible:
            raise NotSchedulableError(len(nodes), reasons, by_extender=taken_away)
        return self._best(view, feasible).node.name

    async def _nominated_node(
        self, view: PodView, expected: dict[str, list[PodView]], reasons: Reasons
    ) -> list[NodeView]:
        """Try the node that the pod is nominated to, alone (`evaluateNominatedNode`)."""
        node = self._cluster.node(view.pod.nominated_node)
        if node is None:
            return []
        why = self._why_not(view, node, expected)
        if why:
            reasons[node.node.name] = why
            return []
        return await self._pass_extender(view, [node], reasons)

    def _pass_filters(
        self,
        view: PodView,
        nodes: list[NodeView],
        expected: dict[str, list[PodView]],
        reasons: Reasons,
    ) -> list[NodeView]:
        """Look for feasible nodes, round robin, until there are enough."""
        passed: list[NodeView] = []
        looked_at = 0
        for node in rotated(nodes, self._start):
            if len(passed) == self._sample:
                break
            looked_at += 1
            if why := self._why_not(view, node, expected):
                reasons[node.node.name] = why
            else:
                reasons.pop(node.node.name, None)
                passed.append(node)
        self._start = (self._start + looked_at) % len(nodes)
        return passed

    def _why_not(
        self, view: PodView, node: NodeView, expected: dict[str, list[PodView]]
    ) -> tuple[str, ...]:
        used = dict(self._cluster.used(node.node.name))
        for other in expected.get(node.node.name, ()):
            for name, amount in other.pod.requests.items():
                used[name] = used.get(name, 0) + amount
        return why_not(view, node, used)

    async def _pass_extender(
        self, view: PodView, nodes: list[NodeView], reasons: Reasons
    ) -> list[NodeView]:
        if self._extender is None or not nodes:
            return nodes
        by_name = {node.node.name: node for node in nodes}
        result = await self._extender.filter(view, list(by_name))
        reasons.update(result.reasons)
        return [by_name[name] for name in result.node_names or ()]

    def _best(self, view: PodView, nodes: list[NodeView]) -> NodeView:
        """Return the node with the best score; of equals, the first by name."""
        return min(
            nodes,
            key=lambda n: (-score(view, n, self._cluster.used(n.node.name)), n.node.name),
        )


def _expected(view: PodView, nominated: Iterable[PodView]) -> dict[str, list[PodView]]:
    """Group by node the nominated pods that this one has to respect (`addNominatedPods`)."""
    expected: dict[str, list[PodView]] = {}
    for other in nominated:
        if other.pod.uid != view.pod.uid and other.pod.priority >= view.pod.priority:
            expected.setdefault(other.pod.nominated_node, []).append(other)
    return expected
