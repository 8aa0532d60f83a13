"""The arguments and results of the client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple

from reserver.client.spec_parts import Nodes, OccurrenceInfo, RecurringSchedule
from reserver.reservations.enums import Outcome, Phase, Policy


class ResourceAmounts(NamedTuple):
    """One resource of a node, as Kubernetes quantities.

    Attributes:
        allocatable: the amount for pods.
        requested: the requests of its pods, including pods being bound.
        held: the amount held by reservations.
        free: the rest; negative if holds lack room.
        borrowed: the amount that pods borrow from holds: part of `requested`, not of `held`.
    """

    allocatable: str
    requested: str
    held: str
    free: str
    borrowed: str = "0"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodOwner:
    """A pod that may claim a reservation."""

    namespace: str
    name: str

    def __str__(self) -> str:
        """Return ``namespace/name``."""
        return f"{self.namespace}/{self.name}"


class ControllerOwner(NamedTuple):
    """A controller that creates pods, such as a ReplicaSet."""

    kind: str
    name: str


class LabelRequirement(NamedTuple):
    """A condition on a label: ``In``, ``NotIn``, ``Exists`` or ``DoesNotExist``."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class ReplacedPod(NamedTuple):
    """A pod to be replaced: its UID, and the UIDs of pods that existed before."""

    uid: str
    existing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerSelector:
    """Pods that may claim a reservation: pods that meet every given condition.

    Attributes:
        namespace: the namespace of the pods.
        pod: the name of a pod.
        controller: the controller of the pods.
        match_labels: the labels of the pods.
        match_expressions: conditions on their labels.
        replaces: the pod that they replace.
    """

    namespace: str
    pod: str = ""
    controller: ControllerOwner | None = None
    match_labels: Mapping[str, str] = field(default_factory=dict)
    match_expressions: Sequence[LabelRequirement] = ()
    replaces: ReplacedPod | None = None


class Lend(NamedTuple):
    """The pods that may borrow a hold.

    Attributes:
        below_priority: pods of a lower priority may borrow, if they tolerate ``reserver.io/lent``.
    """

    below_priority: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """The spec of a reservation.

    Attributes:
        owners: the pods that may claim it; never empty.
        node: the node to hold on; empty to let the server choose.
        resources: the resources of one slot, as Kubernetes quantities.
        slots: the number of slots; each is for one pod.
        nodes: instead of `resources` and `slots`: whole nodes, for any number of owners.
        starts_at: the start of the hold, with an offset from UTC; None for at once.
        expires_at: the end of the hold, with an offset from UTC.
        ttl: instead of `expires_at`: the lifetime; zero for ever. Neither means 24 hours.
        schedule: the schedule of a recurring reservation; `starts_at` is then the earliest start.
        policy: whether owners may be bound elsewhere when their seat is unavailable.
        reusable: whether a slot becomes free again when its pod is deleted.
        refill: whether claimed slots are replaced while there is room, so that `slots` stay free.
        refill_up_to: the most claimed and free slots with `refill`; None for 1,000.
        release_if_idle: the time without a pod after which it ends; None for no such end.
        preemptible: whether pods of a higher priority than `priority` may take the hold.
        priority: as in a PriorityClass; only with `preemptible`.
        placement: constraints on nodes, as ``placement`` of docs/reservations.md in JSON.
        retain: whether its entry, with its outcome, is kept after its end.
        description: its purpose.
        lend: the pods that may borrow the hold until an owner comes; None for no pods.
    """

    owners: Sequence[PodOwner | OwnerSelector]
    node: str = ""
    resources: Mapping[str, str] = field(default_factory=dict)
    slots: int = 1
    nodes: Nodes | None = None
    starts_at: datetime | None = None
    expires_at: datetime | None = None
    ttl: timedelta | None = None
    schedule: RecurringSchedule | None = None
    policy: Policy = Policy.PREFER
    reusable: bool = False
    refill: bool = False
    refill_up_to: int | None = None
    release_if_idle: timedelta | None = None
    preemptible: bool = False
    priority: int | None = None
    placement: Mapping[str, Any] | None = None
    retain: bool = False
    description: str = ""
    lend: Lend | None = None


class PlacedSlots(NamedTuple):
    """The slots on a node, including claimed ones."""

    node: str
    slots: int


class Claim(NamedTuple):
    """A claimed slot: ``namespace/name`` and UID of its pod."""

    pod: str
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationInfo:
    """A reservation at the time of the server's answer.

    Attributes:
        name: its name.
        id: the place of its entry: ``NAMESPACE/CONFIGMAP/KEY`` or, for an object,
            ``NAMESPACE/NAME``.
        spec: its spec.
        etag: a version of the spec.
        phase: its phase; None if this version of the client does not define it.
        is_backed: whether it holds, and its nodes have the room.
        message: the reason for a missing backing; else empty.
        claims: the claimed slots.
        placements: the nodes with its slots; empty while it is not placed.
        reason: the reason for its backing or missing backing in one word, e.g. ``QuotaExceeded``.
        author: the user who wrote it; empty if unknown.
        since: the time at which Reserver first saw it; None if unknown.
        labels: the first 64 labels of its object, by name; empty for a key of a ConfigMap.
        assumes_namespace: whether an owner without a namespace has Reserver's own by default.
        idle_since: the start of the time without a pod, with `release_if_idle`; None while a pod
            has a slot.
        occurrences: of a schedule: the occurrence of this status, and the next two.
    """

    name: str
    id: str
    spec: Spec
    etag: str
    phase: Phase | None
    is_backed: bool
    message: str
    claims: tuple[Claim, ...]
    placements: tuple[PlacedSlots, ...] = ()
    reason: str = ""
    author: str = ""
    since: datetime | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    assumes_namespace: bool = False
    idle_since: datetime | None = None
    occurrences: tuple[OccurrenceInfo, ...] = ()


class PastClaim(NamedTuple):
    """A claimed slot: the pod, its node and, if recorded, the time of the claim."""

    pod: str
    uid: str
    node: str
    at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PastReservation:
    """An ended reservation.

    Attributes:
        name: its name.
        id: the former place of its entry, as `ReservationInfo.id`.
        owner_namespace: the namespace of its owners.
        owners: its owners, in words.
        outcome: its outcome; None if this version of the client does not define it.
        since: the time at which Reserver first saw it.
        ended: the time at which Reserver saw its end.
        expires_at: the time of its expiry; None without one.
        nodes: the nodes on which it held.
        resources: the resources of one slot, as Kubernetes quantities.
        slots: the number of slots.
        claimed: the number of claimed slots.
        claims: the first claims.
        description: its purpose.
        author: the user who created it; empty if unknown.
        spec: the spec of a removed or idle reservation, as JSON without its expiry; empty if not
            kept.
    """

    name: str
    id: str
    owner_namespace: str
    owners: str
    outcome: Outcome | None
    since: datetime
    ended: datetime
    expires_at: datetime | None
    nodes: tuple[str, ...]
    resources: Mapping[str, str]
    slots: int
    claimed: int
    claims: tuple[PastClaim, ...]
    description: str = ""
    author: str = ""
    spec: str = ""


class ChangeKind(StrEnum):
    """The kind of a change of a reservation."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


class Change(NamedTuple):
    """One change of a reservation."""

    kind: ChangeKind
    reservation: ReservationInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """A filter for reservations; an empty field selects all.

    Attributes:
        node: a node with its slots.
        owner: a pod that may claim it; a pod that does not exist yet must be named by an owner.
        owner_namespace: the namespace of an owner.
        owner_controller: the controller of an owner.
        owner_labels: the complete labels of pods that an owner's selector matches.
        phases: the allowed phases.
        label_selector: a selector of labels of its object, in the form of ``kubectl get -l``.
    """

    node: str = ""
    owner: PodOwner | None = None
    owner_namespace: str = ""
    owner_controller: ControllerOwner | None = None
    owner_labels: Mapping[str, str] = field(default_factory=dict)
    phases: Sequence[Phase] = ()
    label_selector: str = ""


EVERYTHING = Selection()
