"""The Reservation objects of reserver.io/v1alpha1, as structs."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from reserver.errors import InvalidInput
from reserver.k8s.objects import names
from reserver.k8s.objects.limits import (
    MOST_LABELS,
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
from reserver.stores.codec.placement_codec import PartObject
from reserver.stores.codec.recurrence_codec import OccurrenceFields

API_VERSION = "reserver.io/v1alpha1"
KIND = "Reservation"
RESERVATION = ObjectKind(API_VERSION, KIND)
COLLECTION = f"/apis/{API_VERSION}/reservations"
"""The path of all Reservations of a cluster."""

_MOVE = "PodMove"

OWN_DOMAIN = "reserver.io/"
"""Before the labels that only Reserver writes."""

SET_LABEL = f"{OWN_DOMAIN}set"
"""On each member of a set: the id of the set."""

UNFINISHED_ANNOTATION = "reserver.io/unfinished-set"
"""On the first member of a set until all members are written (docs/adr/0012): how many there are to
be, or `ABANDONED`."""

ABANDONED = "abandoned"
"""Instead of that number, once the set can be finished no more: its members are being deleted."""

VOLUMES_ANNOTATION = f"{OWN_DOMAIN}volume-claims"
"""On the seat of a PodMove: the PersistentVolumeClaims of the pod that is to land there, as
``a,b``."""

PLACEMENT_ANNOTATION = f"{OWN_DOMAIN}placement-of-pod"
"""On the seat of a PodMove: where the pod itself may be, whatever the move says."""

MOST_CLAIMS = 32
"""How many of these count; the pod itself is judged by all of them before it is evicted."""


class StatusClaim(msgspec.Struct, frozen=True):
    """A slot that a pod claimed.

    Attributes:
        pod: as ``namespace/name``.
        uid: of the pod.
        node: where it was bound; empty if that is no longer known.
        at: when Reserver saw it, RFC 3339.
    """

    pod: str
    uid: str
    node: str
    at: str


class MoreClaims(msgspec.Struct, frozen=True):
    """The slots on one node that pods claimed which `claims` has no room for.

    Attributes:
        node: where they were bound; empty if that is no longer known.
        pods: their marks (`digest.mark`), one after the other.
    """

    node: str
    pods: str


class Summary(msgspec.Struct, frozen=True):
    """A Reservation in words, for the columns of `kubectl get`.

    These show one value each, and no list.

    Attributes:
        nodes: where it holds.
        resources: what it holds.
        owners: who may claim it.
        claimed: how many slots are claimed, of how many.
    """

    nodes: str
    resources: str
    owners: str
    claimed: str


class ReservationStatus(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """The whole status subresource: a write replaces everything that was there."""

    phase: str
    observed_generation: Int64
    claimed: Int32
    expires_at: str | None = None  # The API server drops what is null.
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

    @property
    def controller_uid(self) -> str:
        """The UID of the object that it belongs to; empty if it is nobody's."""
        owners = self.owner_references or ()
        return next((owner.uid for owner in owners if owner.controller), "")

    @property
    def is_seat(self) -> bool:
        """Whether it belongs to a PodMove."""
        owners = self.owner_references or ()
        return any(owner.controller and owner.kind == _MOVE for owner in owners)

    @property
    def volume_claims(self) -> tuple[str, ...]:
        """The PersistentVolumeClaims of the pod whose seat it is."""
        written = (self.annotations or {}).get(VOLUMES_ANNOTATION, "") if self.is_seat else ""
        return tuple(filter(None, written.split(",", MOST_CLAIMS)[:MOST_CLAIMS]))

    @property
    def set_id(self) -> str:
        """The set that it was created with, ``NAMESPACE/ID``; empty if it stands alone."""
        label = (self.labels or {}).get(SET_LABEL, "")
        return f"{self.namespace}/{label}" if label else ""

    @property
    def unfinished(self) -> str:
        """What it says of its set, of which it is the first; empty once that is whole."""
        return (self.annotations or {}).get(UNFINISHED_ANNOTATION, "") if self.set_id else ""

    @property
    def is_unfinished(self) -> bool:
        """Whether it is the first member of a set that may be incomplete."""
        return bool(self.unfinished)

    @property
    def is_abandoned(self) -> bool:
        """Whether it is the first member of a set that will never be complete."""
        return self.unfinished == ABANDONED


class ReservationObject(CustomResource, frozen=True):
    """A Reservation on the wire."""

    metadata: ObjectMetadata = ObjectMetadata()

    @property
    def ref(self) -> Ref:
        """Where it is written."""
        return Ref.of_object(self.metadata.namespace, self.metadata.name)

    @property
    def path(self) -> str:
        """Its path in the API."""
        return path(self.ref)

    def said(self) -> ReservationStatus | None:
        """Return its status; None without one, or if it is not in the form that Reserver writes."""
        return decode_or_none(ReservationStatus, self.status)


def path(ref: Ref) -> str:
    """Return the path of a Reservation in the API."""
    return f"{collection(ref.namespace)}/{ref.key}"


def collection(namespace: str) -> str:
    """Return the path of the Reservations of a namespace."""
    return f"/apis/{API_VERSION}/namespaces/{namespace}/reservations"


def is_own(key: str) -> bool:
    """Return whether only Reserver writes a label or an annotation with this key."""
    return key.startswith(OWN_DOMAIN)


def check_labels(labels: Mapping[str, str], path: str) -> None:
    """Refuse labels that the API server would refuse, that are too many, or Reserver's own.

    Raises:
        InvalidInput: at `path`.
    """
    check_count(labels, path, MOST_LABELS)
    for key, value in labels.items():
        names.check_label_key(key, path)
        names.check_label_value(value, path)
        if is_own(key):
            raise InvalidInput(path, f"{key} is written by Reserver only", "remove it")
