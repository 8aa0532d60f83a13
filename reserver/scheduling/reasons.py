"""The reasons against nodes, in the words of kube-scheduler.

Plugins and messages are those of pkg/scheduler/framework/plugins (Kubernetes 1.37), each from the
file that `docs/fit.md` names.
"""

from __future__ import annotations

from typing import NamedTuple

from reserver.cluster.categorical import Bools


class Reason(NamedTuple):
    """A reason for which a pod does not fit on a node.

    Attributes:
        plugin: the kube-scheduler plugin that refuses; `RESERVER` for Reserver's own reasons.
        message: its message.
    """

    plugin: str
    message: str


class Refusal(NamedTuple):
    """A reason, and the rows of the refused nodes.

    Attributes:
        rows: bool array, rows of the snapshot; arbitrary for rows without a Node object.
    """

    reason: Reason
    rows: Bools


RESERVER = "Reserver"
UNSCHEDULABLE = Reason("NodeUnschedulable", "node(s) were unschedulable")
TAINTED = Reason("TaintToleration", "node(s) had untolerated taint(s)")
NODE_AFFINITY = Reason("NodeAffinity", "node(s) didn't match Pod's node affinity/selector")
PORTS = Reason("NodePorts", "node(s) didn't have free ports for the requested pod ports")
TOO_MANY_PODS = Reason("NodeResourcesFit", "Too many pods")
POD_AFFINITY = Reason("InterPodAffinity", "node(s) didn't match pod affinity rules")
ANTI_AFFINITY = Reason("InterPodAffinity", "node(s) didn't match pod anti-affinity rules")
EXISTING_ANTI_AFFINITY = Reason(
    "InterPodAffinity", "node(s) didn't satisfy existing pods anti-affinity rules"
)
SPREAD = Reason("PodTopologySpread", "node(s) didn't match pod topology spread constraints")
SPREAD_LABEL = Reason(SPREAD.plugin, f"{SPREAD.message} (missing required label)")
EXCLUSIVE_CLAIM = Reason(
    "VolumeRestrictions",
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already "
    "in-use by another pod",
)
UNBOUND_CLAIM = Reason("VolumeBinding", "pod has unbound immediate PersistentVolumeClaims")
VOLUME_AFFINITY = Reason("VolumeBinding", "node(s) didn't match PersistentVolume's node affinity")
VOLUME_ELSEWHERE = Reason(
    "VolumeBinding", "node(s) didn't find available persistent volumes to bind"
)
VOLUME_GONE = Reason(
    "VolumeBinding", "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
)
VOLUME_ZONE = Reason("VolumeZone", "node(s) had no available volume zone")
TOO_MANY_VOLUMES = Reason("NodeVolumeLimits", "node(s) exceed max volume count")
HELD = Reason(RESERVER, "capacity held by reservations")
OCCUPIED = Reason(RESERVER, "node(s) had pods beside those of DaemonSets")
NOT_JUDGED = Reason(RESERVER, "the pod's constraints are too many for Reserver to judge")
UNKNOWN_NODE = Reason(RESERVER, "node not known yet")


def insufficient(resource: str) -> Reason:
    """Return the reason of a node with too little of a resource left."""
    return (
        TOO_MANY_PODS
        if resource == "pods"
        else Reason(TOO_MANY_PODS.plugin, f"Insufficient {resource}")
    )
