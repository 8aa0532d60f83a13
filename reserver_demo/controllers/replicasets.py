"""ReplicaSets: the desired number of pods (pkg/controller/replicaset)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reserver_demo.apiserver.status import Json
from reserver_demo.controllers.effects import Change, Delete, Effect, key_of
from reserver_demo.controllers.made_pods import (
    is_active,
    is_ready,
    is_terminating,
    new_pod,
    owner_reference,
)


def reconciled(replica_set: Json, pods: Sequence[Json]) -> Iterator[Effect]:
    """Yield the due changes of a ReplicaSet; `pods` are its own."""
    active = [pod for pod in pods if is_active(pod)]
    missing = replica_set["spec"]["replicas"] - len(active)
    reference = owner_reference("ReplicaSet", "apps/v1", replica_set)
    for _ in range(missing):
        yield new_pod(reference, replica_set)
    for pod in sorted(active, key=_worth)[: max(-missing, 0)]:
        yield Delete("pods", key_of(pod))
    yield Change(
        "replicasets", key_of(replica_set), {"status": _status(replica_set, pods)}, "status"
    )


def _worth(pod: Json) -> tuple[bool, bool, int]:
    """Return the sort key of pods to delete: first unbound, then unready, then newest ones."""
    return (
        bool(pod["spec"].get("nodeName")),
        is_ready(pod),
        -int(pod["metadata"]["resourceVersion"]),
    )


def _status(replica_set: Json, pods: Sequence[Json]) -> Json:
    active = [pod for pod in pods if is_active(pod)]
    ready = sum(map(is_ready, active))
    counts = {"fullyLabeledReplicas": len(active), "readyReplicas": ready}
    counts |= {"availableReplicas": ready}
    return {
        "replicas": len(active),
        "observedGeneration": replica_set["metadata"]["generation"],
        "terminatingReplicas": sum(map(is_terminating, pods)),
        **{name: count for name, count in counts.items() if count},
    }
