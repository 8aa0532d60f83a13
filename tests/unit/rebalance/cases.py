"""A case: a cluster, a strategy, and the pods that it evicts."""

from dataclasses import dataclass, field
from typing import Any

from reserver.rebalance.policy import Arguments
from tests.unit.rebalance.build import node, pod, taint

Objects = list[dict[str, Any]]


@dataclass(frozen=True)
class Case:
    """A cluster, a policy, and the pods to evict."""

    objects: Objects
    args: Arguments
    goes: list[str] = field(default_factory=list)


NODES = [node("a"), node("b")]


def status(**status: Any) -> dict[str, Any]:
    return {"status": status}


def created(at: str) -> dict[str, Any]:
    return {"metadata": {"creationTimestamp": f"2030-01-31T{at}Z"}}


FAILED = status(phase="Failed", reason="Evicted")


def restarted(count: int, init: int = 0, **state: Any) -> dict[str, Any]:
    return status(
        containerStatuses=[{"name": "a", "restartCount": count, **state}],
        initContainerStatuses=[{"name": "b", "restartCount": init}],
    )


TAINTED = node("t", taints=[taint("k", "v")])

ON_T = pod("p", "t")


def in_zone(zone: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}


def needs(zone: str) -> dict[str, Any]:
    required = {"nodeSelectorTerms": [in_zone(zone)]}
    return affinity(requiredDuringSchedulingIgnoredDuringExecution=required)


def affinity(**kinds: Any) -> dict[str, Any]:
    return {"spec": {"affinity": {"nodeAffinity": kinds}}}


def keeps_from(app: str, key: str = "zone", **term: Any) -> dict[str, Any]:
    required = [{"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key, **term}]
    kinds = {"requiredDuringSchedulingIgnoredDuringExecution": required}
    return {"spec": {"affinity": {"podAntiAffinity": kinds}}}
