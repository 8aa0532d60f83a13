"""The Kubernetes objects of an instance."""

from __future__ import annotations

from hack.optimum.instances import App, Instance, Machine

NAMESPACE = "shop"


def documents(found: Instance) -> list[dict[str, object]]:
    """Return the Kubernetes objects of an instance."""
    items = [_node(each) for each in found.nodes.values()]
    items.append({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    items += [_pod(name, found.apps[app], node) for name, (app, node) in found.pods.items()]
    return items + [_budget(each) for each in found.apps.values() if each.allowed >= 0]


def _node(machine: Machine) -> dict[str, object]:
    taints = [{"key": "dedicated", "value": "yes", "effect": "NoSchedule"}]
    amounts = {"cpu": f"{machine.cpu}m", "memory": f"{machine.memory}Mi", "pods": "110"}
    labels = {
        "kubernetes.io/hostname": machine.name,
        "topology.kubernetes.io/zone": machine.zone,
        "pool": machine.pool,
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": machine.name, "labels": labels},
        "spec": {"taints": taints if machine.tainted else []},
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _affinity(app: App) -> dict[str, object]:
    """Return required terms: towards a near app in the zone, away from apps on the node."""
    affinity = {
        "podAffinity": [(app.near, "topology.kubernetes.io/zone")] if app.near else [],
        "podAntiAffinity": [
            (each, "kubernetes.io/hostname")
            for each in (app.name if app.apart else "", app.away)
            if each
        ],
    }
    return {
        kind: {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": key, "labelSelector": {"matchLabels": {"app": other}}}
                for other, key in terms
            ]
        }
        for kind, terms in affinity.items()
        if terms
    }


def _pod(name: str, app: App, node: str) -> dict[str, object]:
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": app.name,
        "uid": app.name,
        "controller": True,
    }
    asked = {"cpu": f"{app.cpu}m", "memory": f"{app.memory}Mi"}
    spread = {
        "maxSkew": app.skew,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": app.name}},
    }
    spec: dict[str, object] = {
        "containers": [{"name": "c", "image": "c", "resources": {"requests": asked}}],
        "nodeSelector": {"pool": app.pool} if app.pool else {},
        "tolerations": [{"operator": "Exists"}] if app.tolerates else [],
        "topologySpreadConstraints": [spread] if app.skew else [],
        "affinity": _affinity(app),
    }
    if node:
        spec["nodeName"] = node
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "uid": name,
            "labels": {"app": app.name},
            "ownerReferences": [] if app.bare else [owner],
        },
        "spec": spec,
        "status": {"phase": "Running" if node else "Pending"},
    }


def _budget(app: App) -> dict[str, object]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": app.name, "namespace": NAMESPACE},
        "spec": {"selector": {"matchLabels": {"app": app.name}}},
        "status": {"disruptionsAllowed": app.allowed},
    }
