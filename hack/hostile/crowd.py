"""Objects of hostile tenants before the start, as writing them takes longer than a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hack.bed.api import Api
from hack.hostile.catalogue import CATALOGUE
from hack.hostile.costly.entry import Target
from hack.hostile.tenant import PATHS, body
from hack.hostile.world import QUOTAS, RESERVATIONS, SCHEDULER, TENANT, quota

GANG_GATE, GANG_API = "GenericWorkload", "scheduling.k8s.io/v1beta1"
"""The feature gate and API of a control plane with PodGroups."""

GANG = "gang"
"""A PodGroup, its pods' label, and the namespace of a tenant with its own quota."""

_GROUPS = f"/apis/{GANG_API}/namespaces/{GANG}/podgroups"
_MEMBERS, _SEATS, _PATCHES, _MOVING = 500, 1_000, 64, 50


def crowd(api: Api, nodes: Sequence[str]) -> None:
    """Create a gang of pending pods with seats, pods to move, SchedPatches and PodMoves."""
    api.create("/api/v1/namespaces", {"metadata": {"name": GANG}})
    api.create(QUOTAS.format(GANG), quota())
    policy = {"schedulingPolicy": {"gang": {"minCount": _MEMBERS}}}
    kind = {"apiVersion": GANG_API, "kind": "PodGroup"}
    api.create(_GROUPS, {**kind, "metadata": {"name": GANG}, "spec": policy})
    seats = (_seat(number, nodes[number * 7 % len(nodes)]) for number in range(_SEATS))
    api.create_all(RESERVATIONS.format(GANG), seats)
    api.create_all(f"/api/v1/namespaces/{GANG}/pods", map(_member, range(_MEMBERS)))
    bound = ({"nodeName": nodes[number * 7 % len(nodes)]} for number in range(_MOVING))
    pods = (_tenants_pod(f"bound-{number}", {}, spec) for number, spec in enumerate(bound))
    api.create_all(f"/api/v1/namespaces/{TENANT}/pods", pods)
    for entry, standing in (("product", _PATCHES), ("greedy-move", _MOVING)):
        target = Target(nodes, SCHEDULER)
        made = [body(CATALOGUE[entry](target, turn)) for turn in range(standing)]
        api.create_all(PATHS[CATALOGUE[entry](target, 0).kind].format(TENANT), made)


def _seat(number: int, node: str) -> dict[str, Any]:
    owner = {"selector": {"matchLabels": {"app": GANG}}}
    spec = {"owners": [owner], "resources": {"cpu": "1m"}, "node": node, "ttl": "0"}
    kind = {"apiVersion": "reserver.io/v1alpha1", "kind": "Reservation"}
    return kind | {"metadata": {"name": f"seat-{number}"}, "spec": spec}


def _member(number: int) -> dict[str, Any]:
    labels = {"app": GANG, "apps.kubernetes.io/pod-index": str(number)}
    group = {"schedulingGroup": {"podGroupName": GANG}}
    return _tenants_pod(f"member-{number}", labels, group)


def _tenants_pod(name: str, labels: dict[str, str], spec: dict[str, Any]) -> dict[str, Any]:
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1m"}}}
    whole = {"schedulerName": SCHEDULER, "containers": [container], **spec}
    return {"metadata": {"name": name, "labels": labels}, "spec": whole}
