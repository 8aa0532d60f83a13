"""The costliest SchedPatches, and bodies for the webhooks' port, which any client may send."""

from __future__ import annotations

from typing import Any

from hack.hostile.costly.documents import APP, REQUIRED
from hack.hostile.costly.entry import PATCH, REVIEW, Document, Entries, Target, enter

ENTRIES: Entries = {}

review = enter(ENTRIES, REVIEW)

_VALUES = [str(number) for number in range(62)]


@enter(ENTRIES, PATCH, standing=64)
def product(target: Target, turn: int) -> Document:
    """Multiply the alternatives of each pod, as often as there are patches (doors 2)."""
    asked = [_requirement(f"p{turn}-{number}") for number in range(target.many(16))]
    required = {"nodeSelectorTerms": [{"matchExpressions": asked}]}
    return {
        "selector": {"matchLabels": {"app": APP}},
        "maxCount": 1_000,
        "affinity": {"nodeAffinity": {REQUIRED: required}},
    }


@review
def review_containers(target: Target, turn: int) -> Document:
    """Review the resize of an absent pod with 130,000 containers (doors 1): 6.5 MB."""
    containers = [
        {"resources": {"requests": {"cpu": f"{number + turn}m"}}}
        for number in range(target.many(130_000))
    ]
    spec = {"nodeName": target.node(turn), "containers": containers}
    return {"/judge-resize": _pod(f"u{turn}", spec)}


@review
def review_resources(target: Target, turn: int) -> Document:
    """Request hundreds of thousands of resources in one container (doors 1): 7 MB."""
    requests = {f"a{turn}-{number}": 1 for number in range(target.many(400_000))}
    spec = {"nodeName": target.node(turn), "containers": [{"resources": {"requests": requests}}]}
    return {"/judge-resize": _pod(f"u{turn}", spec)}


@review
def review_labels(target: Target, turn: int) -> Document:
    """Compare half a million labels with patches (doors 1)."""
    labels = {f"k{turn}-{number}": "v" for number in range(target.many(400_000))}
    return {"/patch-pod": _pod("", {}, **labels)}


@review
def review_product(target: Target, turn: int) -> Document:
    """Patch a pod of 2.6 MB, and in turn a pod of the largest size that is read (doors 2)."""
    alternatives, asked = (64, 120) if turn % 2 else (1, 10)
    term = {"matchExpressions": [_requirement(f"{n}z") for n in range(target.many(asked))]}
    required = {"nodeSelectorTerms": [term] * alternatives}
    return {"/patch-pod": _pod("", {"affinity": {"nodeAffinity": {REQUIRED: required}}})}


def _requirement(last: str) -> Document:
    return {"key": "k", "operator": "In", "values": [*_VALUES, last]}


def _pod(uid: str, spec: Document, **labels: Any) -> Document:  # noqa: ANN401
    return {"metadata": {"name": "any", "uid": uid, "labels": {"app": APP, **labels}}, "spec": spec}
