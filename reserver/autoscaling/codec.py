"""CapacityBuffers and their PodTemplates, as autoscalers read them (`autoscaling.x-k8s.io`)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

from reserver.cluster.node import HOSTNAME
from reserver.cluster.quantity import show
from reserver.k8s.objects.objects import Metadata, ObjectKind, PartialObject, decode
from reserver.reservations.reservation import Ref
from reserver.scheduling.buffers import Buffer

API_VERSION = "autoscaling.x-k8s.io/v1beta1"
COLLECTION = f"/apis/{API_VERSION}/capacitybuffers"
KIND = "CapacityBuffer"

LABEL = "reserver.io/capacity-buffer"
"""The label of the CapacityBuffers and PodTemplates that Reserver writes."""

RESERVATION_ANNOTATION = "reserver.io/reservation"
"""The annotation that names the reservation."""

POD_ANNOTATION = "reserver.io/pod"
"""The annotation that names the pod of a pod's buffer."""

_SHAPE = ("nodeSelector", "affinity", "tolerations", "topologySpreadConstraints")

_APPLY = "fieldManager=reserver&force=true"
_DEMANDED = "requiredDuringSchedulingIgnoredDuringExecution"


def name_for(owner: Ref | str) -> str:
    """Return the name of the CapacityBuffer and PodTemplate of a reservation, or of a pod's UID."""
    return f"reserver-{blake2b(str(owner).encode(), digest_size=10).hexdigest()}"


def path_of(namespace: str, name: str) -> str:
    """Return the path of a CapacityBuffer."""
    return f"/apis/{API_VERSION}/namespaces/{namespace}/capacitybuffers/{name}"


def applied_at(namespace: str, name: str) -> tuple[str, str]:
    """Return the paths to apply a CapacityBuffer and its PodTemplate at."""
    template = f"/api/v1/namespaces/{namespace}/podtemplates/{name}"
    return f"{path_of(namespace, name)}?{_APPLY}", f"{template}?{_APPLY}"


def show_buffer(wanted: Buffer, owner: Metadata, kind: ObjectKind) -> dict[str, Any]:
    """Return the CapacityBuffer to apply.

    Args:
        wanted: the desired buffer.
        owner: the owner of the CapacityBuffer: the object of the reservation, or the pod.
    """
    metadata = _metadata(wanted, kind, owner)
    spec = {"podTemplateRef": {"name": metadata["name"]}, "replicas": wanted.replicas}
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": spec}


def read_shape(raw: bytes) -> tuple[Metadata, dict[str, Any]]:
    """Return a Pod's metadata, and a template with its labels, placement and volume claims."""
    pod = json.loads(raw)
    found = pod["spec"]
    spec = {name: found[name] for name in _SHAPE if found.get(name)}
    claim = "persistentVolumeClaim"
    volumes = [v for v in found.get("volumes") or () if v.get(claim)]
    labels = pod["metadata"].get("labels") or {}
    template = {"metadata": {"labels": labels}, "spec": {**spec, "volumes": volumes}}
    return decode(PartialObject, raw).metadata, template


def show_template(
    wanted: Buffer, owner: Metadata, shape: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the PodTemplate to apply.

    Args:
        wanted: the desired buffer.
        owner: the CapacityBuffer, which owns the PodTemplate.
        shape: the template of a waiting pod without containers; None for a reservation.
    """
    pod = shape or _slot_template(wanted)
    pod = {**pod, "spec": _pod_spec(wanted, pod["spec"])}
    metadata = _metadata(wanted, ObjectKind(API_VERSION, KIND), owner)
    return {"apiVersion": "v1", "kind": "PodTemplate", "metadata": metadata, "template": pod}


def _metadata(wanted: Buffer, kind: ObjectKind, owner: Metadata) -> dict[str, Any]:
    made, pod = wanted.reservation, wanted.pod
    reference = {**kind.reference(), "name": owner.name, "uid": owner.uid}
    return {
        "name": name_for(made.ref if made else pod.uid),
        "labels": {LABEL: "true"},
        "annotations": {RESERVATION_ANNOTATION: str(made.ref)}
        if made
        else {POD_ANNOTATION: str(pod.name)},
        "ownerReferences": [reference],
    }


def _slot_template(wanted: Buffer) -> dict[str, Any]:
    placement = wanted.reservation.placement.text if wanted.reservation else ""
    spec: dict[str, Any] = json.loads(placement) if placement else {}
    spec.pop("strategy", None)
    return {"metadata": {"labels": dict(wanted.pod.labels)}, "spec": spec}


def _pod_spec(wanted: Buffer, shape: Mapping[str, Any]) -> dict[str, Any]:
    requests, spec = wanted.pod.requests, dict(shape)
    amounts = {name: show(name, value) for name, value in requests.items() if name != "pods"}
    # Limits as well: extended resources and huge pages take no request without one.
    asked = {"requests": amounts, "limits": amounts}
    spec["containers"] = [{"name": "slot", "image": "none", "resources": asked}]
    if wanted.shunned:
        spec["affinity"] = _kept_from(spec.get("affinity") or {}, wanted.shunned)
    return spec


def _kept_from(affinity: Mapping[str, Any], hosts: Sequence[str]) -> dict[str, Any]:
    """Return an affinity that also excludes some nodes."""
    rule = {"key": HOSTNAME, "operator": "NotIn", "values": list(hosts)}
    node: Mapping[str, Any] = affinity.get("nodeAffinity") or {}
    before = (node.get(_DEMANDED) or {}).get("nodeSelectorTerms")
    terms = [{"matchExpressions": [rule]}]
    if before is not None:
        terms = [_and(each, rule) for each in before]
    return {**affinity, "nodeAffinity": {**node, _DEMANDED: {"nodeSelectorTerms": terms}}}


def _and(term: Mapping[str, Any], rule: Mapping[str, Any]) -> dict[str, Any]:
    """Return a node selector term with one more rule; an empty term stays: it matches no node."""
    if not term.get("matchExpressions") and not term.get("matchFields"):
        return dict(term)
    return {**term, "matchExpressions": [*(term.get("matchExpressions") or ()), rule]}
