"""CapacityBuffers and their PodTemplates, as autoscalers read them (`autoscaling.x-k8s.io`)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

from reserver.cluster.node import HOSTNAME
from reserver.cluster.quantity import show
from reserver.reservations.reservation import Ref
from reserver.scheduling.buffers import Buffer
from reserver.wire.k8s.objects import Metadata
from reserver.wire.spec import object as reservation_object

API_VERSION = "autoscaling.x-k8s.io/v1beta1"
COLLECTION = f"/apis/{API_VERSION}/capacitybuffers"
KIND = "CapacityBuffer"

LABEL = "reserver.io/capacity-buffer"
"""On the CapacityBuffers and PodTemplates that Reserver writes."""

RESERVATION = "reserver.io/reservation"
"""The annotation that names the reservation."""

_APPLY = "fieldManager=reserver&force=true"
_DEMANDED = "requiredDuringSchedulingIgnoredDuringExecution"
_VERSIONS = {"ConfigMap": "v1", reservation_object.KIND: reservation_object.API_VERSION}


def name_for(ref: Ref) -> str:
    """Return the name of the CapacityBuffer and of the PodTemplate of a reservation."""
    return f"reserver-{blake2b(str(ref).encode(), digest_size=10).hexdigest()}"


def path_of(namespace: str, name: str) -> str:
    """Return the path of a CapacityBuffer."""
    return f"/apis/{API_VERSION}/namespaces/{namespace}/capacitybuffers/{name}"


def applied_at(namespace: str, name: str) -> tuple[str, str]:
    """Return where a CapacityBuffer and its PodTemplate are applied."""
    template = f"/api/v1/namespaces/{namespace}/podtemplates/{name}"
    return f"{path_of(namespace, name)}?{_APPLY}", f"{template}?{_APPLY}"


def show_buffer(wanted: Buffer, owner: Metadata, kind: str) -> dict[str, Any]:
    """Return a CapacityBuffer, to be applied.

    Args:
        wanted: what it is for.
        owner: the object in which the reservation is written; with it the buffer goes.
        kind: of that object: ``Reservation`` or ``ConfigMap``.
    """
    metadata = _metadata(wanted, _VERSIONS[kind], kind, owner)
    spec = {"podTemplateRef": {"name": metadata["name"]}, "replicas": wanted.replicas}
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": spec}


def show_template(wanted: Buffer, owner: Metadata) -> dict[str, Any]:
    """Return a PodTemplate, to be applied; with its CapacityBuffer, the owner, it goes."""
    pod = {"metadata": {"labels": dict(wanted.pod.labels)}, "spec": _pod_spec(wanted)}
    metadata = _metadata(wanted, API_VERSION, KIND, owner)
    return {"apiVersion": "v1", "kind": "PodTemplate", "metadata": metadata, "template": pod}


def _metadata(wanted: Buffer, version: str, kind: str, owner: Metadata) -> dict[str, Any]:
    ref = wanted.reservation.ref
    reference = {"apiVersion": version, "kind": kind, "name": owner.name, "uid": owner.uid}
    return {
        "name": name_for(ref),
        "labels": {LABEL: "true"},
        "annotations": {RESERVATION: str(ref)},
        "ownerReferences": [reference],
    }


def _pod_spec(wanted: Buffer) -> dict[str, Any]:
    placement = wanted.reservation.placement.text
    spec: dict[str, Any] = json.loads(placement) if placement else {}
    spec.pop("strategy", None)
    resources = wanted.reservation.resources
    amounts = {name: show(name, value) for name, value in resources.items() if name != "pods"}
    # Limits as well: extended resources and huge pages take no request without one.
    asked = {"requests": amounts, "limits": amounts}
    spec["containers"] = [{"name": "slot", "image": "none", "resources": asked}]
    if wanted.shunned:
        spec["affinity"] = _kept_from(spec.get("affinity") or {}, wanted.shunned)
    return spec


def _kept_from(affinity: Mapping[str, Any], hosts: Sequence[str]) -> dict[str, Any]:
    """Return an affinity that keeps pods from some nodes, beside what it says."""
    rule = {"key": HOSTNAME, "operator": "NotIn", "values": list(hosts)}
    node: Mapping[str, Any] = affinity.get("nodeAffinity") or {}
    said = (node.get(_DEMANDED) or {}).get("nodeSelectorTerms")
    terms = [{"matchExpressions": [rule]}] if said is None else [_and(each, rule) for each in said]
    return {**affinity, "nodeAffinity": {**node, _DEMANDED: {"nodeSelectorTerms": terms}}}


def _and(term: Mapping[str, Any], rule: Mapping[str, Any]) -> dict[str, Any]:
    """Return a term that also has a rule; one that says nothing matches nothing, and stays so."""
    if not term.get("matchExpressions") and not term.get("matchFields"):
        return dict(term)
    return {**term, "matchExpressions": [*(term.get("matchExpressions") or ()), rule]}
