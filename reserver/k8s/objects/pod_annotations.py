"""The annotations of pods that Reserver reads and writes."""

from __future__ import annotations

from collections.abc import Mapping

from reserver.errors import InvalidInput
from reserver.k8s.objects.limits import POD
from reserver.k8s.objects.objects import decode

CLAIMS_ANNOTATION = "reserver.io/claims"
"""On a bound pod: a JSON list of the identities of the reservations that its binding claimed."""

MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
"""On a mirror pod: the only pods that the NodeRestriction admission plugin lets kubelets create
(MirrorPodAnnotationKey in k8s.io/api/core/v1)."""

MOVE_WINDOW_ANNOTATION = "reserver.io/move-window"
"""Of a pod or a namespace: its pods are moved in this window only."""

SURGE_ANNOTATION = "reserver.io/surge"
"""``NAME/UID`` of a PodMove. On a pod with a controller: that is to be removed for the move. On one
without: its copy (docs/adr/0085)."""

MOST_SURGE = 320
"""How many characters of that are acceptable."""

COST_ANNOTATION = "controller.kubernetes.io/pod-deletion-cost"
"""Of the ready pods of a ReplicaSet the one with the lowest is removed first (PodDeletionCost in
k8s.io/api/core/v1)."""

COST_BEFORE_ANNOTATION = "reserver.io/pod-deletion-cost-before"
"""On a pod that is to be removed for a move: its deletion cost before that, if it had one."""

MOST_MOVE_WINDOW = 200
"""How many characters of that are acceptable."""

PROVISIONING_CLASS = "hold.reserver.io"
"""The class of the ProvisioningRequests that Reserver carries out (docs/provisioning.md)."""

_CONSUMING = tuple(
    (f"{domain}/consume-provisioning-request", f"{domain}/provisioning-class-name")
    for domain in ("autoscaling.x-k8s.io", "cluster-autoscaler.kubernetes.io")
)
"""On a pod: its ProvisioningRequest, and the class of that; the deprecated ones last
(ProvisioningRequestPodAnnotationKey in k8s.io/autoscaler/cluster-autoscaler/apis)."""

RETRY_ANNOTATION = "reserver.io/retry"
"""On a pending pod: any change of it makes kube-scheduler try the pod again."""

MARKS_ANNOTATION = "reserver.io/sched-patches"
"""On a patched pod: a JSON list of ``NAME/UID/SLOT``, one for each SchedPatch that it has."""

_MOST_NAME = 253


def claimed_by(annotations: Mapping[str, str]) -> frozenset[str]:
    """Return the identities of the reservations that a pod's binding claimed."""
    text = annotations.get(CLAIMS_ANNOTATION)
    if text is None or len(text) > POD.part_bytes:
        return frozenset()
    try:
        claims = frozenset(decode(list[str], text.encode()))
    except InvalidInput:
        return frozenset()  # Not written by us.
    return claims if len(claims) <= POD.claims else frozenset()  # Nor this.


def provisioned_by(annotations: Mapping[str, str]) -> str:
    """Return the ProvisioningRequest that a pod says it is of; empty if it is of another class."""
    for consuming, of_class in _CONSUMING:
        name = annotations.get(consuming)
        if name is not None:
            is_ours = annotations.get(of_class, PROVISIONING_CLASS) == PROVISIONING_CLASS
            return name if is_ours and len(name) <= _MOST_NAME else ""
    return ""


def move_window(annotations: Mapping[str, str]) -> str:
    """Return in which window a pod, or those of a namespace, may be moved; empty for any time."""
    return annotations.get(MOVE_WINDOW_ANNOTATION, "")[: MOST_MOVE_WINDOW + 1]


def surged_by(annotations: Mapping[str, str]) -> str:
    """Return for which PodMove a pod is a copy, or is to be removed: ``NAME/UID``, or empty."""
    text = annotations.get(SURGE_ANNOTATION, "")
    return text if len(text) <= MOST_SURGE else ""
