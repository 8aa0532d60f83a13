"""PersistentVolumeClaims, PersistentVolumes and StorageClasses, which bind pods to nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reserver.cluster.constraints import NodeTerm
from reserver.cluster.pod import PodName

ZONE_LABELS = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
}
"""The topology labels of volumes, each with its current name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeClaim:
    """A PersistentVolumeClaim.

    Attributes:
        name: namespace and name.
        uid: its UID; empty if unknown.
        volume: ``spec.volumeName``; empty without a volume.
        is_bound: volume and claim both state that they are bound to each other.
        storage_class: the class that provisions its volume; empty for none.
        is_lost: its volume no longer exists.
        terminating: the claim is being deleted.
        owner_uid: UID of its controller; empty for none.
        selected_node: the node where its volume is being provisioned; empty for none yet.
        is_exclusive: only one pod may use the claim (access mode ReadWriteOncePod).
        is_shared: pods of several nodes may use it at once (ReadWriteMany, ReadOnlyMany).
    """

    name: PodName
    uid: str = ""
    volume: str = ""
    is_bound: bool = False
    storage_class: str = ""
    is_lost: bool = False
    terminating: bool = False
    owner_uid: str = ""
    selected_node: str = ""
    is_exclusive: bool = False
    is_shared: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """A PersistentVolume.

    Attributes:
        driver: the CSI driver that attaches the volume; empty for none.
        handle: the driver's identifier of the volume.
        node_terms: alternatives of its required node affinity; None without one.
        zones: its zone and region labels, each with the values that a node may have.
        claim: the claim that it is bound to, or kept for (``spec.claimRef``); None without one.
        claim_uid: the UID of that claim; empty if unknown.
    """

    name: str
    driver: str = ""
    handle: str = ""
    node_terms: tuple[NodeTerm, ...] | None = None
    zones: tuple[tuple[str, frozenset[str]], ...] = ()
    claim: PodName | None = None
    claim_uid: str = ""

    def is_of(self, claim: VolumeClaim) -> bool:
        """Return whether it says that it belongs to a claim: a claim may name any volume."""
        is_same = not (self.claim_uid and claim.uid) or self.claim_uid == claim.uid
        return self.claim == claim.name and is_same


@dataclass(frozen=True, slots=True)
class StorageClass:
    """A StorageClass.

    Attributes:
        waits: it binds a claim once a pod with the claim is scheduled (WaitForFirstConsumer).
    """

    name: str
    waits: bool = False


class Storage:
    """The volume claims, volumes and storage classes of a cluster, by name.

    Attributes:
        attachable: volumes of a CSI driver that a node can attach, by node and driver (CSINode);
            an absent driver has no limit.
    """

    def __init__(self) -> None:
        """Begin without volumes."""
        self.claims: dict[PodName, VolumeClaim] = {}
        self.volumes: dict[str, Volume] = {}
        self.classes: dict[str, StorageClass] = {}
        self.attachable: dict[str, Mapping[str, int]] = {}
