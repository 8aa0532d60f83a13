"""Documents that several entries share, and extreme values."""

from __future__ import annotations

from collections.abc import Sequence

from hack.hostile.costly.entry import Document, Target

APP = "hostile"
"""Label `app` of the tenant's pods, and of its reservations' owners."""

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

EXTREMES: tuple[object, ...] = (
    *(2**63, -(2**63), 2**63 - 1, 2**31, 2**31 - 1, 2**64, 10**30, 0, -1, 1),
    *(1e19, 0.5, "9" * 60, "1", None, [], {}),
)
AMOUNTS = ("9007199254740", "8Pi", "8Ei", "9223372036854775807", "1e18", "1n", "999999999999Gi")


def spec(turn: int, amounts: Document, slots: int = 1) -> Document:
    """Return the spec of a reservation without an existing owner."""
    owner = {"pod": {"name": f"nobody-{turn}"}}
    return {"owners": [owner], "resources": amounts, "slots": slots}


def placed(target: Target, slots: int, **placement: object) -> Document:
    """Return the spec of a reservation that Reserver has to place."""
    where = {"nodeSelector": target.labels} | placement if target.labels else placement
    return spec(0, {"cpu": "1m"}, slots) | {"placement": where}


def term(labels: Document) -> Document:
    """Return a term of an affinity to pods with these labels, by node."""
    return {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": labels}}


def keys(count: int, turn: int) -> Document:
    """Return an affinity term that requires the absence of `count` labels."""
    absent = [{"key": f"k{turn}-{number}", "operator": "DoesNotExist"} for number in range(count)]
    return {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchExpressions": absent}}


def pod(
    target: Target,
    *,
    cpu: str = "1m",
    ports: Sequence[object] = (),
    limits: Document | None = None,
    **spec: object,
) -> Document:
    """Return a pod of one container; without `nodeName` it is pending."""
    resources = {"requests": {"cpu": cpu}, "limits": limits or {}}
    container = {"name": "main", "image": "none", "resources": resources, "ports": ports}
    whole = {"schedulerName": target.scheduler, "containers": [container], **spec}
    if target.labels and "nodeName" not in spec:
        whole["nodeSelector"] = target.labels
    return {"metadata": {"labels": {"app": APP}}, "spec": whole}
