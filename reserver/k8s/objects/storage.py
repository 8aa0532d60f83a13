"""PersistentVolumeClaims, PersistentVolumes and StorageClasses as the API server sends them."""

from __future__ import annotations

from collections.abc import Iterator

from reserver.cluster.labels import Labels
from reserver.cluster.pod import PodName
from reserver.cluster.storage import ZONE_LABELS, StorageClass, Volume, VolumeClaim
from reserver.k8s.objects.limits import MOST_NAME
from reserver.k8s.objects.nodes import Labelled
from reserver.k8s.objects.objects import Metadata, WireStruct
from reserver.k8s.objects.pods import Owned, controller_of
from reserver.k8s.objects.selectors import NodeSelector, node_terms

_BOUND = "pv.kubernetes.io/bind-completed"
_SELECTED_NODE = "volume.kubernetes.io/selected-node"
_OLD_CLASS = "volume.beta.kubernetes.io/storage-class"

_SHARED = frozenset({"ReadWriteMany", "ReadOnlyMany"})

_ZONE_DELIMITER = "__"


class _ClaimSpec(WireStruct, frozen=True):
    volume_name: str = ""
    storage_class_name: str | None = None
    access_modes: list[str] | None = None


class _ClaimStatus(WireStruct, frozen=True):
    phase: str = ""


class ClaimObject(WireStruct, frozen=True):
    """A PersistentVolumeClaim on the wire."""

    MOST_BYTES = 1_048_576

    metadata: Owned = Owned()
    spec: _ClaimSpec = _ClaimSpec()
    status: _ClaimStatus = _ClaimStatus()

    def value(self) -> VolumeClaim:
        """Return the claim as a value for decisions.

        Raises:
            InvalidInput: its owner references are malformed.
        """
        metadata, spec = self.metadata, self.spec
        annotations = metadata.annotations or {}
        owner = controller_of(bytes(metadata.owner_references))
        return VolumeClaim(
            name=PodName(metadata.namespace, metadata.name),
            uid=metadata.uid,
            volume=_name(spec.volume_name),
            is_bound=bool(spec.volume_name) and _BOUND in annotations,
            storage_class=_name(annotations.get(_OLD_CLASS, spec.storage_class_name or "")),
            is_lost=self.status.phase == "Lost",
            terminating=metadata.deletion_timestamp is not None,
            owner_uid=_name(owner.uid) if owner else "",
            selected_node=_name(annotations.get(_SELECTED_NODE, "")),
            is_exclusive="ReadWriteOncePod" in (spec.access_modes or ()),
            is_shared=not _SHARED.isdisjoint(spec.access_modes or ()),
        )


def _name(text: str) -> str:
    """Return a text, or the beginning of one that is too long to name anything."""
    return text[: MOST_NAME + 1]


class _VolumeAffinity(WireStruct, frozen=True):
    required: NodeSelector | None = None


class _CsiVolume(WireStruct, frozen=True):
    driver: str = ""
    volume_handle: str = ""


class _ClaimRef(WireStruct, frozen=True):
    namespace: str = ""
    name: str = ""
    uid: str = ""


class _VolumeSpec(WireStruct, frozen=True):
    node_affinity: _VolumeAffinity | None = None
    csi: _CsiVolume | None = None
    claim_ref: _ClaimRef | None = None


class VolumeObject(WireStruct, frozen=True):
    """A PersistentVolume on the wire."""

    MOST_BYTES = 262_144

    metadata: Labelled = Labelled()
    spec: _VolumeSpec = _VolumeSpec()

    def value(self) -> Volume:
        """Return the volume as a value for decisions."""
        affinity = self.spec.node_affinity
        required = affinity.required if affinity else None
        csi, claim = self.spec.csi or _CsiVolume(), self.spec.claim_ref
        return Volume(
            name=self.metadata.name,
            driver=csi.driver,
            handle=csi.volume_handle,
            node_terms=node_terms(required) if required else None,
            zones=tuple(_zones(self.metadata.labels or {})),
            claim=PodName(claim.namespace, claim.name) if claim else None,
            claim_uid=claim.uid if claim else "",
        )


def _zones(labels: Labels) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield zone and region labels with their zones; a label with an empty zone is ignored."""
    for key in ZONE_LABELS.keys() & labels.keys():
        zones = frozenset(zone.strip() for zone in labels[key].split(_ZONE_DELIMITER))
        if "" not in zones:
            yield key, zones


class StorageClassObject(WireStruct, frozen=True):
    """A StorageClass on the wire."""

    MOST_BYTES = 1_048_576

    metadata: Metadata = Metadata()
    volume_binding_mode: str = ""

    def value(self) -> StorageClass:
        """Return the class as a value for decisions."""
        return StorageClass(
            self.metadata.name, waits=self.volume_binding_mode == "WaitForFirstConsumer"
        )


class _Attachable(WireStruct, frozen=True):
    count: int | None = None


class _Driver(WireStruct, frozen=True):
    name: str
    allocatable: _Attachable | None = None


class _NodeDrivers(WireStruct, frozen=True):
    drivers: list[_Driver] | None = None


class CsiNodeObject(WireStruct, frozen=True):
    """A CSINode on the wire; it has the name of its node."""

    metadata: Metadata = Metadata()
    spec: _NodeDrivers = _NodeDrivers()

    def limits(self) -> dict[str, int]:
        """Return the most volumes that the node can attach, by driver with a limit."""
        offered = {each.name: each.allocatable for each in self.spec.drivers or ()}
        return {
            name: most.count
            for name, most in offered.items()
            if most is not None and most.count is not None
        }
