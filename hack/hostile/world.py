"""A large cluster without machines, in which another tenant `shop` works normally."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hack.bed.api import Api
from hack.bench.documents import NAMESPACE, node_document, pod_document
from hack.controlplane.kubeconfig import service_account_kubeconfig

SCHEDULER = "reserver-scheduler"
NODE_NAME = "w-{}"
TENANT = "hostile"
"""Namespace and service account of the tenant."""

RESERVATIONS = "/apis/reserver.io/v1alpha1/namespaces/{}/reservations"
QUOTAS = "/apis/reserver.io/v1alpha1/namespaces/{}/reservationquotas"
_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
_CPUS = 32
"""CPUs of a node; each pod requests one, and the shop holds the rest."""


@dataclass(frozen=True)
class World:
    """The cluster.

    Attributes:
        nodes: names of all nodes.
        held: names of the nodes on which `shop` holds all free room.
    """

    nodes: tuple[str, ...]
    held: frozenset[str]

    @classmethod
    def create(
        cls, api: Api, *, nodes: int, pods: int, holds: int, show: Callable[[str], None]
    ) -> World:
        """Create bound pods on all nodes, and holds on the first nodes."""
        names = tuple(NODE_NAME.format(number) for number in range(1, nodes + 1))
        show(f"creating {nodes:,} nodes")
        api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        api.create_all("/api/v1/nodes", (_node(index, name) for index, name in enumerate(names)))
        show(f"creating {pods:,} pods")
        api.create_all(_PODS, (_pod(index, names[index % nodes]) for index in range(pods)))
        api.create(QUOTAS.format(NAMESPACE), quota())
        held = names[:holds]
        show(f"holding {holds:,} nodes")
        holds_ = (_hold(name, _CPUS - -(-pods // nodes)) for name in held)
        api.create_all(RESERVATIONS.format(NAMESPACE), holds_)
        return cls(names, frozenset(held))


def tenant_kubeconfig(kubeconfig: Path, api: Api, path: Path) -> None:
    """Give the tenant the rights of `edit` in its namespace; write its kubeconfig.

    Without a controller manager the ClusterRole `edit` is empty, so its parts are bound instead.
    """
    account = {"kind": "ServiceAccount", "name": TENANT, "namespace": TENANT}
    api.create(f"/api/v1/namespaces/{TENANT}/serviceaccounts", {"metadata": {"name": TENANT}})
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{TENANT}"
    kinds = {
        "reserver.io": ["reservations", "schedpatches", "podmoves"],
        "autoscaling.x-k8s.io": ["provisioningrequests"],
        "": ["podtemplates"],
    }
    rules = [{"apiGroups": [g], "resources": each, "verbs": ["*"]} for g, each in kinds.items()]
    api.create(f"{rbac}/roles", {"metadata": {"name": TENANT}, "rules": rules})
    for kind, role in (("Role", TENANT), ("ClusterRole", "system:aggregate-to-edit")):
        ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role}
        name = role.replace(":", "-")
        binding = {"metadata": {"name": name}, "roleRef": ref, "subjects": [account]}
        api.create(f"{rbac}/rolebindings", binding)
    service_account_kubeconfig(kubeconfig, TENANT, TENANT, path)


def _node(index: int, name: str) -> dict[str, Any]:
    document = node_document(index)
    labels = {"kubernetes.io/hostname": name, **document["metadata"]["labels"]}
    return {"metadata": {"name": name, "labels": labels}, "status": document["status"]}


def _pod(index: int, node: str) -> dict[str, Any]:
    document = pod_document(f"web-5d8f7c9b9d-{index:07d}", uid="", node=node)
    metadata = document["metadata"]
    for field in ("uid", "resourceVersion", "creationTimestamp", "generateName"):
        del metadata[field]
    for container in document["spec"]["containers"]:
        container["image"] = "registry.example/shop/web:2.41.0"
    return {"metadata": metadata, "spec": document["spec"]}


def quota() -> dict[str, Any]:
    """Return a quota for `shop`: the default quota is for about the capacity of one worker."""
    hard = {"reservations": "100000", "held.cpu": "1000000"}
    kind = {"apiVersion": "reserver.io/v1alpha1", "kind": "ReservationQuota"}
    return kind | {"metadata": {"name": "shop"}, "spec": {"hard": hard}}


def _hold(node: str, cpus: int) -> dict[str, Any]:
    owner = {"selector": {"matchLabels": {"app": "nobody-yet"}}}
    spec = {"owners": [owner], "resources": {"cpu": str(cpus)}, "node": node, "ttl": "0"}
    kind = {"apiVersion": "reserver.io/v1alpha1", "kind": "Reservation"}
    return kind | {"metadata": {"name": f"hold-{node}"}, "spec": spec}
