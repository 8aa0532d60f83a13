"""The costliest pods."""

from __future__ import annotations

import json

from hack.hostile.costly import documents
from hack.hostile.costly.documents import APP, REQUIRED
from hack.hostile.costly.entry import POD, STANDING, Document, Entries, Target, enter

ENTRIES: Entries = {}

pod = enter(ENTRIES, POD)


@pod
def pod_keys(target: Target, turn: int) -> Document:
    """Require a thousand absent labels of all pods (core 10): 44 KiB."""
    affinity = {"podAffinity": {REQUIRED: [documents.keys(target.many(1_000), turn)]}}
    return documents.pod(target, affinity=affinity)


@pod
def pod_terms(target: Target, turn: int) -> Document:
    """Reject thousands of kinds of pods by anti-affinity."""
    terms = [documents.term({"app": f"x{turn}-{number}"}) for number in range(target.many(4_000))]
    return documents.pod(target, affinity={"podAntiAffinity": {REQUIRED: terms}})


@pod
def pod_ports(target: Target, turn: int) -> Document:
    """Take ten thousand ports of the node (core 16)."""
    ports = [
        {"containerPort": 1 + number, "hostPort": 1 + number, "hostIP": f"10.{turn % 200}.0.1"}
        for number in range(target.many(10_000))
    ]
    return documents.pod(target, ports=ports)


@pod
def pod_resources(target: Target, turn: int) -> Document:
    """Bind the pod at its creation, and request unknown resources (core 18)."""
    amounts = {f"hostile.example/p{turn}-{number}": "1" for number in range(target.many(2_000))}
    return documents.pod(target, nodeName=target.node(turn), limits=amounts)


@pod
def pod_of_a_daemon_set(target: Target, turn: int) -> Document:
    """Name DaemonSets of existing and absent kinds as controllers: whole nodes admit the pod."""
    body = documents.pod(target, cpu="1m")
    version = ("hostile.example/v1", "v1", "apps.example/v1")[turn % 3]
    owner = {"apiVersion": version, "kind": "DaemonSet", "name": "agent", "uid": f"u-{turn}"}
    body["metadata"]["ownerReferences"] = [owner | {"controller": True}]
    return body


@pod
def pod_containers(target: Target, turn: int) -> Document:
    """Have 14,500 containers, each with another request (doors 5): 1.4 MB."""
    body = documents.pod(target, nodeName=target.node(turn))
    body["spec"]["containers"] = [
        {
            "name": f"c{number}",
            "image": "i",
            "resources": {"requests": {"cpu": f"{number + turn}m", "memory": f"{number}Ki"}},
        }
        for number in range(target.many(14_500))
    ]
    return body


@pod
def pod_ordinary_containers(target: Target, turn: int) -> Document:
    """Have as many containers as Reserver reads."""
    body = documents.pod(target, nodeName=target.node(turn))
    body["spec"]["containers"] = [
        {"name": f"c{number}", "image": "i", "resources": {"requests": {"cpu": f"{turn}n"}}}
        for number in range(target.many(1_000))
    ]
    return body


@pod
def pod_forged(target: Target, turn: int) -> Document:
    """Claim other owners' reservations, on a node without them (security 12)."""
    claims = [f"shop/hold-{number}@1" for number in range(target.many(turn % 5_000))]
    claims += [f"{APP}/wide-spread-{number}@1" for number in range(STANDING)]
    body = documents.pod(target, nodeName=("no-such-node", target.node(turn))[turn % 2])
    body["metadata"]["annotations"] = {"reserver.io/claims": json.dumps(claims)}
    body["metadata"]["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"web-{number}", "uid": "u"}
        | {"controller": number == 0}
        for number in range(target.many(1_000))
    ]
    return body


@pod
def pod_labels(target: Target, turn: int) -> Document:
    """Have a thousand labels, each of them new (core 10)."""
    body = documents.pod(target, nodeName=target.node(turn))
    body["metadata"]["labels"] |= {
        f"hostile.example/l{turn}-{i}": str(i) for i in range(target.many(1_000))
    }
    return body


@pod
def pod_volumes(target: Target, turn: int) -> Document:
    """Wait for a thousand absent PersistentVolumeClaims."""
    volumes = [
        {"name": f"v{number}", "persistentVolumeClaim": {"claimName": f"c{turn}-{number}"}}
        for number in range(target.many(1_000))
    ]
    return documents.pod(target, volumes=volumes)


@pod
def pod_spread(target: Target, turn: int) -> Document:
    """Spread among absent pods, over hundreds of topology keys."""
    constraints = [
        {
            "maxSkew": 2**31 - 1 if number % 2 else 1,
            "topologyKey": f"hostile.example/zone-{number}",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": documents.keys(target.many(40), number + turn)["labelSelector"],
        }
        for number in range(target.many(200))
    ]
    return documents.pod(target, topologySpreadConstraints=constraints)


@enter(ENTRIES, POD, standing=500)
def waiting(target: Target, _: int) -> Document:
    """Add another pending pod: wake-ups have to read all of them (core 14, 15)."""
    return documents.pod(target, cpu="20")


@enter(ENTRIES, POD, standing=300)
def heavy(target: Target, turn: int) -> Document:
    """Add another pod with unknown resources to the same node, 0.5 MB."""
    amounts = {f"hostile.example/h{turn}-{n}": "1" for n in range(target.many(9_000))}
    return documents.pod(target, nodeName=target.node(0), limits=amounts)


@enter(ENTRIES, POD, standing=300)
def claiming(target: Target, turn: int) -> Document:
    """Add another pod with as many claims as an annotation holds: 256 KiB."""
    body = documents.pod(target, nodeName=target.node(turn))
    claims = [f"{turn}-{number}-{'x' * 1_000}" for number in range(target.many(250))]
    body["metadata"]["annotations"] = {"reserver.io/claims": json.dumps(claims)}
    return body
