"""The annotations of pods that Reserver reads and writes."""

from __future__ import annotations

from collections.abc import Mapping

from reserver.errors import InvalidInput
from reserver.k8s.objects.limits import POD
from reserver.k8s.objects.objects import decode

CLAIMS_ANNOTATION = "reserver.io/claims"
"""On a bound pod: a JSON list of the identities of the reservations that its binding claimed."""

MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
"""On a mirror pod, the only kind of pod that the NodeRestriction admission plugin lets kubelets
create (MirrorPodAnnotationKey in k8s.io/api/core/v1)."""

MOVE_WINDOW_ANNOTATION = "reserver.io/move-window"
"""On a pod or a namespace: the window for moves of its pods."""

SURGE_ANNOTATION = "reserver.io/surge"
"""``NAME/UID`` of a PodMove. A pod with a controller is to be removed for the move; a pod without
one is a copy for the move (docs/adr/0085)."""

MOST_SURGE = 320
"""Most characters of `SURGE_ANNOTATION`."""

COST_ANNOTATION = "controller.kubernetes.io/pod-deletion-cost"
"""The ready pod of a ReplicaSet with the lowest cost is removed first (PodDeletionCost in
k8s.io/api/core/v1)."""

COST_BEFORE_ANNOTATION = "reserver.io/pod-deletion-cost-before"
"""On a pod that is to be removed for a move: its earlier deletion cost, if it had one."""

MOST_MOVE_WINDOW = 200
"""Most characters of `MOVE_WINDOW_ANNOTATION`."""

PROVISIONING_CLASS = "hold.reserver.io"
"""The class of the ProvisioningRequests that Reserver carries out (docs/provisioning.md)."""

_CONSUMING = tuple(
    (f"{domain}/consume-provisioning-request", f"{domain}/provisioning-class-name")
    for domain in ("autoscaling.x-k8s.io", "cluster-autoscaler.kubernetes.io")
)
"""On a pod: its ProvisioningRequest and the request's class; the deprecated pair is last
(ProvisioningRequestPodAnnotationKey in k8s.io/autoscaler/cluster-autoscaler/apis)."""

DECISIVE = frozenset(
    {CLAIMS_ANNOTATION, MIRROR_ANNOTATION, MOVE_WINDOW_ANNOTATION, SURGE_ANNOTATION}
    | {consuming for consuming, _ in _CONSUMING}
)
"""Without these, no annotation of a pod decides anything: most pods have none of them."""

RETRY_ANNOTATION = "reserver.io/retry"
"""On a pending pod: any change makes kube-scheduler retry the pod."""

MARKS_ANNOTATION = "reserver.io/sched-patches"
"""On a patched pod: a JSON list of ``NAME/UID/SLOT``, one for each SchedPatch of the pod."""

_MOST_NAME = 253


def claimed_by(annotations: Mapping[str, str]) -> frozenset[str]:
    """Return the identities of the reservations that a pod's binding claimed."""
    text = annotations.get(CLAIMS_ANNOTATION)
    if text is None or len(text) > POD.part_bytes:
        return frozenset()
    try:
        claims = frozenset(decode(list[str], text.encode()))
    except InvalidInput:
        return frozenset()  # Reserver never writes such a list.
    return claims if len(claims) <= POD.claims else frozenset()  # Nor such a long one.


def provisioned_by(annotations: Mapping[str, str]) -> str:
    """Return the ProvisioningRequest in a pod's annotations; empty if its class is not ours."""
    for consuming, of_class in _CONSUMING:
        name = annotations.get(consuming)
        if name is not None:
            is_ours = annotations.get(of_class, PROVISIONING_CLASS) == PROVISIONING_CLASS
            return name if is_ours and len(name) <= _MOST_NAME else ""
    return ""


def move_window(annotations: Mapping[str, str]) -> str:
    """Return the window for moves of a pod or of a namespace's pods; empty for any time."""
    return annotations.get(MOVE_WINDOW_ANNOTATION, "")[: MOST_MOVE_WINDOW + 1]


def surged_by(annotations: Mapping[str, str]) -> str:
    """Return the PodMove (``NAME/UID``) that a pod is a copy or a removal for; empty for none."""
    text = annotations.get(SURGE_ANNOTATION, "")
    return text if len(text) <= MOST_SURGE else ""
