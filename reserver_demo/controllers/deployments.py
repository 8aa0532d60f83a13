"""Deployments: a ReplicaSet for each template, and rollouts (controller/deployment)."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Any

from reserver_demo.apiserver.status import Json
from reserver_demo.controllers.effects import Change, Create, Effect, key_of, with_conditions
from reserver_demo.controllers.made_pods import owner_reference
from reserver_demo.controllers.percent import of_total

_HASH, _REVISION = "pod-template-hash", "deployment.kubernetes.io/revision"
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


def reconciled(deployment: Json, owned: Sequence[Json], now: str) -> Iterator[Effect]:
    """Yield the due changes of a Deployment at a time; `owned` are its ReplicaSets."""
    current = next((each for each in owned if _is_current(deployment, each)), None)
    if current is None:
        yield _new_replica_set(deployment, owned)
        return
    others = [each for each in owned if each is not current]
    newest = max((_revision(each) for each in others), default=0)
    if _revision(current) <= newest:  # A rollback.
        annotations = current["metadata"].get("annotations", {}) | {_REVISION: str(newest + 1)}
        metadata = current["metadata"] | {"annotations": annotations}
        yield Change("replicasets", key_of(current), {"metadata": metadata})
        return
    yield from _scaled(deployment, current, others)
    noted = deployment["metadata"].get("annotations", {})
    if noted.get(_REVISION) != str(_revision(current)):
        annotations = noted | {_REVISION: str(_revision(current))}
        metadata = deployment["metadata"] | {"annotations": annotations}
        yield Change("deployments", key_of(deployment), {"metadata": metadata})
    status = _status(deployment, current, others, now)
    yield Change("deployments", key_of(deployment), {"status": status}, "status")


def _revision(replica_set: Json) -> int:
    return int(replica_set["metadata"].get("annotations", {}).get(_REVISION, 0))


def _is_current(deployment: Json, replica_set: Json) -> bool:
    template = copy.deepcopy(replica_set["spec"]["template"])
    template["metadata"].get("labels", {}).pop(_HASH, None)
    return bool(template == deployment["spec"]["template"])


def _hash(template: Json) -> str:
    digest = hashlib.sha256(json.dumps(template, sort_keys=True).encode()).digest()
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest[:10])


def _new_replica_set(deployment: Json, owned: Sequence[Json]) -> Create:
    """Return a new ReplicaSet for the template, with 0 replicas."""
    spec, metadata = copy.deepcopy(deployment["spec"]), deployment["metadata"]
    template = spec["template"]
    own = {_HASH: _hash(template)}
    labels = template["metadata"].get("labels", {}) | own
    template["metadata"]["labels"] = labels
    selector = spec["selector"]
    selector["matchLabels"] = selector.get("matchLabels", {}) | own
    body = {
        "metadata": {
            "name": f"{metadata['name']}-{own[_HASH]}",
            "namespace": metadata["namespace"],
            "labels": labels,
            "annotations": {_REVISION: str(max(map(_revision, owned), default=0) + 1)},
            "ownerReferences": [owner_reference("Deployment", "apps/v1", deployment)],
        },
        "spec": {"replicas": 0, "selector": selector, "template": template},
    }
    return Create("replicasets", body)


def _replicas(replica_set: Json) -> int:
    return int(replica_set["spec"]["replicas"])


def _available(replica_set: Json) -> int:
    return int(replica_set["status"].get("availableReplicas", 0))


def _has_pods(replica_set: Json) -> bool:
    status = replica_set["status"]
    return any((_replicas(replica_set), status.get("replicas"), status.get("terminatingReplicas")))


def _scaled(deployment: Json, current: Json, others: Sequence[Json]) -> Iterator[Change]:
    """Yield the changes of replicas that the strategy allows at present."""
    spec = deployment["spec"]
    desired = spec["replicas"]
    if spec["strategy"]["type"] == "Recreate":
        if any(map(_has_pods, others)):
            desired = 0
        yield from _scale(current, desired)
        for each in others:
            yield from _scale(each, 0)
        return
    surge, unavailable = _margins(spec)
    total = _replicas(current) + sum(map(_replicas, others))
    more = min(desired - _replicas(current), max(desired + surge - total, 0))
    yield from _scale(current, min(_replicas(current) + more, desired))
    not_yet = max(_replicas(current) - _available(current), 0)
    spare = total - (desired - unavailable) - not_yet
    for each in sorted(others, key=_available):  # ReplicaSets without ready pods first.
        less = min(max(spare, 0), _replicas(each))
        spare -= less
        yield from _scale(each, _replicas(each) - less)


def _margins(spec: Json) -> tuple[int, int]:
    """Return maxSurge and maxUnavailable as numbers of pods."""
    rolling: dict[str, Any] = spec["strategy"].get("rollingUpdate", {})
    surge = of_total(rolling.get("maxSurge", 0), spec["replicas"], up=True)
    unavailable = of_total(rolling.get("maxUnavailable", 0), spec["replicas"], up=False)
    return surge, unavailable if surge or unavailable else 1


def _scale(replica_set: Json, replicas: int) -> Iterator[Change]:
    if _replicas(replica_set) != replicas:
        fields = {"spec": replica_set["spec"] | {"replicas": replicas}}
        yield Change("replicasets", key_of(replica_set), fields)


def _status(deployment: Json, current: Json, others: Sequence[Json], now: str) -> Json:
    owned, wanted = (current, *others), deployment["spec"]["replicas"]
    available = sum(map(_available, owned))
    counts = {
        "replicas": sum(each["status"].get("replicas", 0) for each in owned),
        "updatedReplicas": current["status"].get("replicas", 0),
        "readyReplicas": sum(each["status"].get("readyReplicas", 0) for each in owned),
        "availableReplicas": available,
        "unavailableReplicas": max(wanted - available, 0),
    }
    _, unavailable = _margins(deployment["spec"])
    enough = available >= wanted - unavailable
    done = counts["updatedReplicas"] == counts["replicas"] == wanted == available
    name = current["metadata"]["name"]
    conditions = (
        {
            "type": "Available",
            "status": "True" if enough else "False",
            "reason": f"MinimumReplicas{'Available' if enough else 'Unavailable'}",
            "message": "Deployment "
            + ("has minimum availability." if enough else "does not have minimum availability."),
        },
        {
            "type": "Progressing",
            "status": "True",
            "reason": "NewReplicaSetAvailable" if done else "ReplicaSetUpdated",
            "message": f'ReplicaSet "{name}" '
            + ("has successfully progressed." if done else "is progressing."),
        },
    )
    return {
        "observedGeneration": deployment["metadata"]["generation"],
        "conditions": with_conditions(deployment.get("status", {}), conditions, now),
        **{key: count for key, count in counts.items() if count},
    }
