"""The scheduler's cache of pods and nodes, with kube-scheduler's own filters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from reserver.cluster.node import Node
from reserver.cluster.pod import Pod
from reserver.k8s.objects.objects import decode
from reserver.k8s.objects.pods import PodObject
from reserver_demo.apiserver.status import Json

_NOT_SENT = frozenset({"kind", "apiVersion"})


@dataclass(frozen=True, slots=True)
class PodView:
    """A pod: its value for decisions, and its JSON for extenders."""

    pod: Pod
    content: Json

    @property
    def path(self) -> str:
        """The path of the pod in the API."""
        return f"/api/v1/namespaces/{self.pod.name.namespace}/pods/{self.pod.name.name}"

    @property
    def what_counts(self) -> object:
        """The part whose change justifies another attempt: everything but the conditions."""
        metadata = self.content["metadata"]
        written = (metadata.get("labels"), metadata.get("annotations"), self.content["spec"])
        return written, self.pod.nominated_node, self.pod.finished

    def waits_for(self, scheduler: str) -> bool:
        """Return whether the pod waits for a node from a scheduler."""
        spec = self.content["spec"]
        is_wanted = not (self.pod.node or self.pod.terminating or spec.get("schedulingGates"))
        return is_wanted and spec.get("schedulerName") == scheduler

    def condition(self, kind: str) -> Json:
        """Return a condition of its status; empty without one."""
        conditions: list[Json] = self.content.get("status", {}).get("conditions", [])
        return next((c for c in conditions if c["type"] == kind), {})


def parse_pod(raw: bytes) -> PodView:
    """Read a pod's JSON."""
    content: Json = msgspec.json.decode(raw)
    # kube-scheduler's informers drop managedFields, so extenders never see them.
    content["metadata"].pop("managedFields", None)
    sent = {key: value for key, value in content.items() if key not in _NOT_SENT}
    return PodView(decode(PodObject, raw).value(), sent)


class ClusterView:
    """The nodes, and their bound and assumed pods.

    A pod is assumed on its node from the decision on, unless its binding fails.
    """

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, tuple[str, Pod]] = {}
        """The node and the value of each bound or assumed pod, by UID."""

    def why_not(self, view: PodView, node: Node) -> tuple[str, ...]:
        """Return the reasons of the first filter that refuses a node; empty if all pass.

        The filters are in the order of the default profile: NodeUnschedulable, NodeAffinity,
        NodeResourcesFit.
        """
        selector: Mapping[str, str] = view.content["spec"].get("nodeSelector", {})
        if node.unschedulable:
            return ("node(s) were unschedulable",)
        if any(node.labels.get(key) != value for key, value in selector.items()):
            return ("node(s) didn't match Pod's node affinity/selector",)
        free = self._free(node)
        short = [n for n, amount in view.pod.requests.items() if amount > max(free[n], 0)]
        return tuple("Too many pods" if n == "pods" else f"Insufficient {n}" for n in short)

    def emptiest(self, names: list[str]) -> str:
        """Return the node with the most free CPU; of equals, the first by name."""
        return min(names, key=lambda name: (-self._free(self.nodes[name])["cpu"], name))

    def _free(self, node: Node) -> Counter[str]:
        free = Counter(node.allocatable)
        for name, pod in self.pods.values():
            if name == node.name:
                free.subtract(pod.requests)
        return free


def fit_message(nodes: int, reasons: Mapping[str, tuple[str, ...]]) -> str:
    """Word a refusal as kube-scheduler does (`framework.FitError`).

    For example: `0/3 nodes are available: 1 Insufficient cpu, 2 Too many pods.`

    Args:
        nodes: the number of nodes.
        reasons: the reasons by node.
    """
    counts = Counter(reason for of_node in reasons.values() for reason in of_node)
    listed = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    return f"0/{nodes} nodes are available: {listed}."
