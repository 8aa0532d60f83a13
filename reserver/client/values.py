"""What the client takes and returns."""

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
        allocatable: what the node offers to pods.
        requested: what pods there take, those being bound included.
        held: what reservations hold.
        free: what is left; negative where holds lack room.
        borrowed: what pods borrow of what reservations lend: part of `requested`, not of `held`.
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
    """A pod that is to go: UIDs of it and of pods that were there before it went."""

    uid: str
    existing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerSelector:
    """Pods that may claim a reservation: those to which all that is said applies.

    Attributes:
        namespace: of the pods.
        pod: the name of a pod.
        controller: what made them.
        match_labels: labels that they have.
        match_expressions: conditions on their labels.
        replaces: the pod that they come after.
    """

    namespace: str
    pod: str = ""
    controller: ControllerOwner | None = None
    match_labels: Mapping[str, str] = field(default_factory=dict)
    match_expressions: Sequence[LabelRequirement] = ()
    replaces: ReplacedPod | None = None


class Lend(NamedTuple):
    """Which pods may borrow a hold.

    Attributes:
        below_priority: those of a lower priority, if they tolerate ``reserver.io/lent``.
    """

    below_priority: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """The spec of a reservation.

    Attributes:
        owners: who may claim it; never empty.
        node: the node whose capacity to hold; without it the server chooses one.
        resources: what one slot holds, as Kubernetes quantities.
        slots: how many pods may claim it.
        nodes: instead of `resources` and `slots`: whole nodes, for any number of owners.
        starts_at: holds from here on; None for at once. With an offset from UTC.
        expires_at: holds until here. With an offset from UTC.
        ttl: instead: how long it lives. Neither stands for 24 hours, zero for ever.
        schedule: when it recurs; then `starts_at` is the earliest start of an occurrence.
        policy: where owners may land when their seat cannot be had.
        reusable: a slot comes back when its pod goes.
        refill: a claimed slot is replaced where there is room, so that `slots` of them are free.
        refill_up_to: with so many claimed and free slots none is replaced; None for 1,000.
        release_if_idle: it ends once no pod has had a slot for so long; None: it does not.
        preemptible: pods of higher priority than `priority` may take the hold.
        priority: as in a PriorityClass; for `preemptible` only.
        placement: where the server may put it, as ``placement`` of docs/reservations.md in JSON.
        retain: it stays once it is over, with what became of it.
        description: what it is for.
        lend: which pods may borrow the hold until an owner comes; None: none may.
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
    """Slots on a node, claimed ones included."""

    node: str
    slots: int


class Claim(NamedTuple):
    """A slot that a pod claimed: ``namespace/name`` and UID."""

    pod: str
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationInfo:
    """A reservation as it was when the server answered.

    Attributes:
        name: its name.
        id: where it is written.
        spec: what it asks for.
        etag: changes with the spec.
        phase: how far it has come.
        is_backed: it holds, and its node has the room.
        message: why it is not backed; empty when it is.
        claims: the slots that are taken.
        placements: where it holds; empty while it has no place.
        reason: why it is backed or not, in one word, e.g. ``QuotaExceeded``.
        author: the user who wrote it, as far as that is known.
        since: when it was first seen; None if the server does not say.
        labels: of its object, the first 64 by name; a key of a ConfigMap has none.
        assumes_namespace: an owner names no namespace, so only pods of Reserver's own may claim it.
        idle_since: since when no pod has had a slot, of one with `release_if_idle`; None while one
            has.
        occurrences: of what recurs: the one that all else is about, and the two after it.
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
    """A slot that was claimed: by which pod, where and, if somebody noted it, when."""

    pod: str
    uid: str
    node: str
    at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PastReservation:
    """A reservation that is over.

    Attributes:
        name: its name.
        id: where it was written.
        owner_namespace: the namespace of the pods that it was for.
        owners: who could claim it, in words.
        outcome: what became of it; None if this client does not know that yet.
        since: when Reserver first saw it.
        ended: when Reserver saw that it was over.
        expires_at: until when it would have held; None for ever.
        nodes: where it held.
        resources: what one slot held, as Kubernetes quantities.
        slots: how many there were.
        claimed: how many of them were claimed.
        claims: the first of these claims.
        description: what it was for.
        author: the user who created it, as far as that is known.
        spec: of one that was removed, or idle, as JSON and without its end; empty if it was not
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
        node: those that hold on a node.
        owner: those that a pod may claim; one that does not exist yet only where it is named.
        owner_namespace: those that pods of a namespace may claim.
        owner_controller: those that pods of a controller may claim because they are its.
        owner_labels: those that pods with these labels, and no others, may claim because of them.
        phases: those of one of these phases.
        label_selector: those with labels that it selects, as ``kubectl get -l`` has it.
    """

    node: str = ""
    owner: PodOwner | None = None
    owner_namespace: str = ""
    owner_controller: ControllerOwner | None = None
    owner_labels: Mapping[str, str] = field(default_factory=dict)
    phases: Sequence[Phase] = ()
    label_selector: str = ""


EVERYTHING = Selection()
