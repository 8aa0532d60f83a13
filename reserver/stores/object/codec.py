"""Structs for the Reservation objects of reserver.io/v1alpha1."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec.structs import force_setattr

from reserver.errors import InvalidInput
from reserver.k8s.objects import names
from reserver.k8s.objects.kept_metadata import OWN_DOMAIN
from reserver.k8s.objects.limits import (
    MOST_LABELS,
    POD,
    Int32,
    Int64,
    check_count,
)
from reserver.k8s.objects.objects import (
    Condition,
    CustomResource,
    ObjectKind,
    ResourceMetadata,
    decode_or_none,
)
from reserver.k8s.objects.pods import OwnerReference
from reserver.reservations.reservation import Ref
from reserver.stores.codec.lifetime_codec import OccurrenceFields
from reserver.stores.codec.placement_codec import PartObject

API_VERSION = "reserver.io/v1alpha1"
KIND = "Reservation"
RESERVATION = ObjectKind(API_VERSION, KIND)
COLLECTION = f"/apis/{API_VERSION}/reservations"
"""The path of all Reservations of a cluster."""

_MOVE = "PodMove"

SET_LABEL = f"{OWN_DOMAIN}set"
"""The label of each member of a set: the id of the set."""

UNFINISHED_ANNOTATION = "reserver.io/unfinished-set"
"""The annotation of the first member of a set until all members are written (docs/adr/0012): the
size of the set, or `ABANDONED`."""

ABANDONED = "abandoned"
"""The value of this annotation while the members of an unfinished set are being deleted."""

VOLUMES_ANNOTATION = f"{OWN_DOMAIN}volume-claims"
"""The annotation of a PodMove's seat: the pod's PersistentVolumeClaims, as ``a,b``."""

PLACEMENT_ANNOTATION = f"{OWN_DOMAIN}placement-of-pod"
"""The annotation of a PodMove's seat: the pod's own placement, without restrictions of the move."""

MOST_CLAIMS = 32
"""Most volume claims of a seat: a pod with more is not moved."""


class StatusClaim(msgspec.Struct, frozen=True):
    """A claimed slot.

    Attributes:
        pod: as ``namespace/name``.
        uid: the UID of the pod.
        node: the node of the pod; empty if no longer known.
        at: the time at which Reserver saw the claim, RFC 3339.
    """

    pod: str
    uid: str
    node: str
    at: str


class MoreClaims(msgspec.Struct, frozen=True):
    """The claimed slots of one node beyond the bound of `claims`.

    Attributes:
        node: the node of the pods; empty if no longer known.
        pods: the marks of the pods (`digest.mark`), joined.
    """

    node: str
    pods: str


class Summary(msgspec.Struct, frozen=True):
    """A Reservation in words, for the columns of `kubectl get`.

    A column shows one value, and no list.

    Attributes:
        nodes: the nodes with its slots.
        resources: the held resources.
        owners: the pods that may claim it.
        claimed: claimed and total slots, such as 1/3.
    """

    nodes: str
    resources: str
    owners: str
    claimed: str


class ReservationStatus(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """The whole status subresource, which each write replaces."""

    phase: str
    observed_generation: Int64
    claimed: Int32
    expires_at: str | None = None  # The API server drops null fields.
    idle_since: str | None = None
    occurrences: list[OccurrenceFields] | None = None
    placements: list[PartObject]
    claims: list[StatusClaim]
    more_claims: list[MoreClaims] | None = None
    summary: Summary | None = None
    conditions: list[Condition]


class ObjectMetadata(ResourceMetadata, frozen=True):
    """The metadata of a Reservation."""

    owner_references: list[OwnerReference] | None = None

    def __post_init__(self) -> None:
        """Forget other owners than the controller, and that too if a text of it is too long."""
        super().__post_init__()
        if self.owner_references:
            controller = next((each for each in self.owner_references if each.controller), None)
            kept = [controller] if controller and _is_short(controller) else None
            force_setattr(self, "owner_references", kept)

    @property
    def _controller(self) -> OwnerReference | None:
        return next(iter(self.owner_references or ()), None)

    @property
    def controller_uid(self) -> str:
        """The UID of its controller; empty without one."""
        return self._controller.uid if self._controller else ""

    @property
    def is_seat(self) -> bool:
        """Whether its controller is a PodMove."""
        return self._controller is not None and self._controller.kind == _MOVE

    @property
    def volume_claims(self) -> tuple[str, ...]:
        """The PersistentVolumeClaims of the pod for this seat; empty for any other Reservation."""
        written = (self.annotations or {}).get(VOLUMES_ANNOTATION, "") if self.is_seat else ""
        return tuple(filter(None, written.split(",", MOST_CLAIMS)[:MOST_CLAIMS]))

    @property
    def set_id(self) -> str:
        """Its set as ``NAMESPACE/ID``; empty without a set."""
        label = (self.labels or {}).get(SET_LABEL, "")
        return f"{self.namespace}/{label}" if label else ""

    @property
    def unfinished(self) -> str:
        """The annotation of the first member of an unfinished set; empty on any other object."""
        return (self.annotations or {}).get(UNFINISHED_ANNOTATION, "") if self.set_id else ""

    @property
    def is_unfinished(self) -> bool:
        """Whether it is the first member of a set that may be incomplete."""
        return bool(self.unfinished)

    @property
    def is_abandoned(self) -> bool:
        """Whether it is the first member of a set that is being deleted before completion."""
        return self.unfinished == ABANDONED


class ReservationObject(CustomResource, frozen=True):
    """A Reservation on the wire."""

    metadata: ObjectMetadata = ObjectMetadata()

    @property
    def ref(self) -> Ref:
        """The ref of the object."""
        return Ref.of_object(self.metadata.namespace, self.metadata.name)

    @property
    def path(self) -> str:
        """The path of the object in the API."""
        return path(self.ref)

    def stored_status(self) -> ReservationStatus | None:
        """Return the status; None if it is absent, or not in the form that Reserver writes."""
        return decode_or_none(ReservationStatus, self.status)


def _is_short(owner: OwnerReference) -> bool:
    texts = (owner.kind, owner.name, owner.uid, owner.api_version)
    return sum(map(len, texts)) <= POD.part_bytes


def path(ref: Ref) -> str:
    """Return the path of a Reservation in the API."""
    return f"{collection(ref.namespace)}/{ref.key}"


def collection(namespace: str) -> str:
    """Return the path of the Reservations of a namespace."""
    return f"/apis/{API_VERSION}/namespaces/{namespace}/reservations"


def is_own(key: str) -> bool:
    """Return whether a key of a label or an annotation is reserved for Reserver."""
    return key.startswith(OWN_DOMAIN)


def check_labels(labels: Mapping[str, str], path: str) -> None:
    """Refuse invalid labels, too many labels, and keys reserved for Reserver.

    Raises:
        InvalidInput: at `path`.
    """
    check_count(labels, path, MOST_LABELS)
    for key, value in labels.items():
        names.check_label_key(key, path)
        names.check_label_value(value, path)
        if is_own(key):
            raise InvalidInput(path, f"{key} is written by Reserver only", "remove it")
