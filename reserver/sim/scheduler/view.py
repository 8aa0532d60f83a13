"""What the scheduler knows of the cluster: nodes, and the pods that are on them or will be.

kube-scheduler's backend/cache: a pod is assumed on its node from the decision until the API server
shows it there, or until the binding fails.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from reserver.cluster.pod import Pod
from reserver.sim.scheduler.objects import NodeView


class ClusterView:
    """Nodes, and what their pods take."""

    def __init__(self) -> None:
        self._nodes: dict[str, NodeView] = {}
        self._pods: dict[str, tuple[str, Pod]] = {}
        self._used: dict[str, dict[str, int]] = {}
        self._assumed: set[str] = set()

    @property
    def nodes(self) -> list[NodeView]:
        """The nodes, in the order in which they came."""
        return list(self._nodes.values())

    def node(self, name: str) -> NodeView | None:
        """Return a node."""
        return self._nodes.get(name)

    def set_node(self, node: NodeView) -> None:
        """Add or replace a node."""
        self._nodes[node.node.name] = node

    def remove_node(self, name: str) -> None:
        """Forget a node."""
        self._nodes.pop(name, None)

    def used(self, node: str) -> Mapping[str, int]:
        """Return what the pods of a node take from it."""
        return self._used.get(node, {})

    def assume(self, pod: Pod, node: str) -> None:
        """Count a pod on a node before it is bound."""
        self._assumed.add(pod.uid)
        self._place(pod, node)

    def forget(self, uid: str) -> None:
        """Take an assumed pod away again; one that was seen bound stays."""
        if uid in self._assumed:
            self.remove_pod(uid)

    def set_pod(self, pod: Pod) -> None:
        """Count a pod on the node that it is bound to."""
        self._assumed.discard(pod.uid)
        if pod.finished:
            self.remove_pod(pod.uid)
        else:
            self._place(pod, pod.node)

    def remove_pod(self, uid: str) -> None:
        """Forget a pod."""
        self._assumed.discard(uid)
        if uid in self._pods:
            node, pod = self._pods.pop(uid)
            self._add(node, pod.requests, -1)

    def knows(self, uid: str) -> bool:
        """Whether a pod has a node."""
        return uid in self._pods

    def _place(self, pod: Pod, node: str) -> None:
        assumed = pod.uid in self._assumed
        self.remove_pod(pod.uid)
        if assumed:
            self._assumed.add(pod.uid)
        self._pods[pod.uid] = (node, pod)
        self._add(node, pod.requests, 1)

    def _add(self, node: str, requests: Mapping[str, int], sign: int) -> None:
        used = self._used.setdefault(node, {})
        for name, amount in requests.items():
            used[name] = used.get(name, 0) + sign * amount


def rotated(nodes: list[NodeView], start: int) -> Iterator[NodeView]:
    """Yield the nodes from an index on, then the ones before it."""
    for offset in range(len(nodes)):
        yield nodes[(start + offset) % len(nodes)]
