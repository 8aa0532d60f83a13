"""Random claims and volumes."""

from __future__ import annotations

from dataclasses import dataclass, field

from hack.differential.draw import (
    NAMESPACES,
    NODE_LABELS,
    REGION,
    ZONE,
    Json,
    Random,
    expression,
)

CLASSES = (
    {"metadata": {"name": "now"}, "provisioner": "example.com/disk"},
    {
        "metadata": {"name": "later"},
        "provisioner": "example.com/disk",
        "volumeBindingMode": "WaitForFirstConsumer",
    },
)
_BOUND = {"pv.kubernetes.io/bind-completed": "yes"}


@dataclass
class Drawn:
    """Claims and volumes.

    Attributes:
        volumes: PersistentVolumes.
        claims: PersistentVolumeClaims.
        names: of the claims; each namespace has them all.
        lost: namespace and name of claims whose volume is gone.
        going: namespace and name of claims that are being deleted.
    """

    volumes: list[Json] = field(default_factory=list)
    claims: list[Json] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    lost: list[tuple[str, str]] = field(default_factory=list)
    going: list[tuple[str, str]] = field(default_factory=list)


def storage(draw: Random, prefix: str, nodes: list[str]) -> Drawn:
    """Return claims of all kinds, more of them bound than not."""
    drawn = Drawn()
    kinds = ["bound"] * 6 + ["alone"] * 2 + ["gone", "now", "later", "selected", "lost", "going"]
    for number, kind in enumerate(kinds):
        name = f"{prefix}-{number}-{kind}"
        drawn.names.append(name)
        for namespace in NAMESPACES:
            _add(draw, drawn, kind, (namespace, name), nodes)
    return drawn


def _add(draw: Random, drawn: Drawn, kind: str, name: tuple[str, str], nodes: list[str]) -> None:
    volume = "-".join(name)
    spec: Json = {
        "accessModes": ["ReadWriteOncePod" if kind == "alone" else "ReadWriteMany"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "now" if kind in {"now", "bound"} else "later",
    }
    annotations: dict[str, str] = {}
    if kind in {"bound", "gone", "lost", "going", "alone"}:
        spec["volumeName"] = volume
        annotations |= _BOUND
    if kind == "selected":
        annotations["volume.kubernetes.io/selected-node"] = draw.choice(nodes)
    metadata = {"namespace": name[0], "name": name[1], "annotations": annotations}
    drawn.claims.append({"metadata": metadata, "spec": spec})
    if kind in {"bound", "alone", "going"}:
        drawn.volumes.append(_volume(draw, volume, name))
    if kind == "lost":
        drawn.lost.append(name)
    if kind == "going":
        drawn.going.append(name)


def _volume(draw: Random, volume: str, claim: tuple[str, str]) -> Json:
    labels = {}
    if draw.random() < 0.3:
        labels[ZONE] = draw.choice(("a", "b", "a__c"))
    if draw.random() < 0.15:
        labels["failure-domain.beta.kubernetes.io/region"] = draw.choice(NODE_LABELS[REGION])
    spec: Json = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteMany"],
        "claimRef": {"namespace": claim[0], "name": claim[1]},
        "csi": {"driver": "example.com", "volumeHandle": volume},
    }
    if draw.random() < 0.7:
        operators = ("In", "In", "NotIn", "Exists")
        terms = [
            {"matchExpressions": [expression(draw, NODE_LABELS, operators)]}
            for _ in range(draw.randint(1, 2))
        ]
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    return {"metadata": {"name": volume, "labels": labels}, "spec": spec}
