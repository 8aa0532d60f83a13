"""A reservation: capacity of nodes that is kept for pods which do not exist yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from reserver.base.schedule import Occurrence
from reserver.cluster.node import NODES
from reserver.cluster.pod import Pod, PodName
from reserver.reservations import placement as places
from reserver.reservations.enums import Phase, Policy, StoreKind
from reserver.reservations.owner import OwnerRule
from reserver.reservations.placement import ANYWHERE, Part, Parts, Placement
from reserver.reservations.recurrence import Recurrence, occurrence_digest, series_digest


class Written(NamedTuple):
    """The resourceVersions between which a reservation was written, both included.

    A watch shows each write's own resourceVersion, so that both are the same; a list shows only the
    last write of the whole object. The API server counts all writes of a cluster with one number.
    """

    first: float
    last: float


ANY_TIME = Written(0, 2**63)
"""The time of the write is unknown."""

NOT_YET = Written(2**63, 2**63)
"""The write is in flight, after everything observed."""


class Ref(NamedTuple):
    """The place of an entry: in a ConfigMap, or a Reservation object.

    Attributes:
        namespace: the namespace of the ConfigMap or the Reservation.
        configmap: the ConfigMap's name; empty for a Reservation.
        key: the data key, or the Reservation's name.
        item: the owner, as ``namespace/name``, if the key's value is a list of reservations;
            empty if the value is one reservation.
        kind: the kind of the store; this, not `configmap`, selects the store.
    """

    namespace: str
    configmap: str
    key: str
    item: str = ""
    kind: StoreKind = StoreKind.CONFIGMAP

    @classmethod
    def of_object(cls, namespace: str, name: str) -> Ref:
        """Return the ref of a Reservation object."""
        return cls(namespace, "", name, kind=StoreKind.OBJECT)

    @property
    def whole(self) -> Ref:
        """The ref of the whole key: of the list, for an item of a list."""
        return self._replace(item="") if self.item else self

    def __str__(self) -> str:
        """Return the name in messages, which is unique.

        Names and keys have no slash, so it is NAMESPACE/CONFIGMAP/KEY or NAMESPACE/NAME.
        """
        if self.kind is StoreKind.OBJECT:
            return f"{self.namespace}/{self.key}"
        item = f"[{self.item}]" if self.item else ""
        return f"{self.namespace}/{self.configmap}/{self.key}{item}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """A reservation: capacity of nodes that is kept for pods which do not exist yet.

    Attributes:
        ref: the place of its entry.
        digest: a hash of its content, which distinguishes it from earlier entries at the ref.
        lasting: its digest without the expiry, if claims outlast a new expiry; else empty.
        node: the named node; empty if Reserver chooses nodes.
        owners: the named pods, sorted: each claims it, and lands on it first.
        rules: rules for further pods that may claim a slot; `owners` or `rules` is not empty.
        resources: the resources of one slot, in millicores of cpu and base units of all others.
            Only `NODES`, with the amount 1, stands for a whole node.
        slots: the number of slots; with refill, the number of free slots to keep.
        starts_at: the start of the hold, unix seconds; None for at once.
        expires_at: the end of the hold, unix seconds; None for never.
        policy: whether owners may land elsewhere when kube-scheduler refuses their seat.
        yields_above: pods of a higher priority may take its room; None: no pod may.
        reusable: a slot comes back when its pod goes.
        refill_up_to: claimed slots are replaced where there is room, so that `slots` are free, as
            long as claimed and free slots together are no more than this; 0: no refill.
        release_if_idle: it ends after so many seconds without a pod in a slot; 0: never.
        lends_below: pods of a lower priority may borrow its room (`cluster.lending`).
        recurrence: its recurrence; then `starts_at` and `expires_at` are of one occurrence.
        placement: the constraints on nodes that Reserver chooses.
        placed: the chosen nodes, written or only decided; empty without a place, or with `node`.
            Not part of the content.
        origin: the ref under which claims are recorded, if not `ref`: its ref before it was moved
            here, or an extended ref, as the ref alone does not identify it.
        created_at: the creation of its object, unix seconds; 0 for a key. Not part of the content.
        occurrence: the start of its occurrence, if recurring, unix seconds; None after the last.
            Not part of the content.
        next_occurrences: that occurrence and the next, to show. Not part of the content.
        drift: seconds by which another process may compute a different expiry from the same
            ``ttl``; 0 if the expiry is written as a moment. Not part of the content.
        is_seat: it belongs to a PodMove. This and all following fields are not part of the content.
        volume_claims: the PersistentVolumeClaims of the pod whose seat it is.
        fallback: the placement of that pod without its move's constraints; None if unknown.
        is_retained: its entry stays after its end.
        description: its purpose, in the author's words.
        author: its author; empty if unknown.
        identity: the key of its claims; an edit changes it.
    """

    ref: Ref
    digest: str
    node: str
    owners: tuple[PodName, ...]
    resources: Mapping[str, int]
    slots: int = 1
    starts_at: float | None = None
    expires_at: float | None = None
    policy: Policy = Policy.PREFER
    yields_above: int | None = None
    rules: tuple[OwnerRule, ...] = ()
    reusable: bool = False
    refill_up_to: int = 0
    release_if_idle: float = 0.0
    lends_below: int | None = None
    recurrence: Recurrence | None = None
    placement: Placement = ANYWHERE
    placed: Parts = ()
    origin: str = ""
    created_at: float = 0.0
    occurrence: float | None = field(default=None, compare=False)
    next_occurrences: tuple[Occurrence, ...] = field(default=(), compare=False)
    drift: int = field(default=0, compare=False)
    lasting: str = field(default="", compare=False)
    is_seat: bool = field(default=False, compare=False)
    volume_claims: tuple[str, ...] = field(default=(), compare=False)
    fallback: Placement | None = field(default=None, compare=False)
    is_retained: bool = field(default=False, compare=False)
    description: str = field(default="", compare=False)
    author: str = field(default="", compare=False)
    identity: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Compute the identity once: it is the key in many indexes."""
        object.__setattr__(self, "identity", f"{self.record}@{self.lasting or self.digest}")

    @property
    def edition(self) -> str:
        """The identity including the expiry, under which versions before 0.2 record all claims."""
        return f"{self.record}@{self.digest}" if self.lasting else self.identity

    @property
    def is_whole(self) -> bool:
        """Whether each slot is a whole node, for any number of pods, until the reservation ends."""
        return NODES in self.resources

    @property
    def anywhere(self) -> Reservation:
        """The reservation with `fallback` as its placement, as a seat is after the eviction."""
        return self if self.fallback is None else replace(self, placement=self.fallback)

    def at(self, now: float) -> Reservation:
        """Return the reservation with its occurrence at `now` (unix seconds), or the next one.

        Each occurrence has its own digest, so that a claim belongs to one occurrence. After the
        last occurrence the reservation stays as it is: expired.
        """
        recurrence = self.recurrence
        found = recurrence.shown(now) if recurrence is not None else ()
        if recurrence is None or (not found and self.occurrence is not None):
            return self
        if not found:
            end = min(now, recurrence.ends_at or now)
            return replace(self, starts_at=end, expires_at=end)
        return replace(
            self,
            digest=occurrence_digest(self.digest, found[0].start),
            starts_at=found[0].start - recurrence.lead,
            expires_at=found[0].end,
            occurrence=found[0].start,
            next_occurrences=found,
        )

    def identity_at(self, now: float) -> str:
        """Return the identity of its occurrence at a moment, in unix seconds."""
        found = self.recurrence.at(now) if self.recurrence is not None else None
        if found is None:
            return self.identity
        return f"{self.record}@{occurrence_digest(self.digest, found.start)}"

    def about(self, other: Reservation) -> Reservation:
        """Return the reservation with the occurrence of `other`, another copy of it."""
        if self.occurrence is not None and self.digest == other.digest:
            return self
        return replace(
            self,
            digest=other.digest,
            starts_at=other.starts_at,
            expires_at=other.expires_at,
            occurrence=other.occurrence,
            next_occurrences=other.next_occurrences,
        )

    @property
    def recurs(self) -> bool:
        """Whether another occurrence follows."""
        recurrence, ends_at = self.recurrence, self.expires_at
        return recurrence is not None and ends_at is not None and recurrence.at(ends_at) is not None

    def is_for(self, moment: float) -> bool:
        """Return whether a pod that is bound at a moment (unix seconds) may be for this occurrence.

        An occurrence is for pods that come while it holds.
        """
        recurrence = self.recurrence
        return recurrence is None or (
            not recurrence.is_suspended and (self.starts_at is None or self.starts_at <= moment)
        )

    @property
    def written_as(self) -> str:
        """The identity of the written spec: the same for all occurrences."""
        if self.lasting or self.recurrence is None:
            return self.identity
        return f"{self.record}@{series_digest(self.digest)}"

    @property
    def parts(self) -> Parts:
        """The nodes of its slots, with the slots on each."""
        return (Part(self.node, self.slots),) if self.node else self.placed

    def on(self, part: Part) -> Reservation:
        """Return its part on one node, as a reservation of that node."""
        if self.node:
            return self
        return replace(self, node=part.node, slots=part.slots, placed=())

    @property
    def most_slots(self) -> int:
        """The most slots that it may have, claimed and free slots together."""
        return self.refill_up_to or self.slots

    def slots_beside(self, claims: int) -> int:
        """Return its number of slots with a number of claims, claimed slots included."""
        return places.slots_in_all(self.slots, self.refill_up_to, claims)

    @property
    def record(self) -> str:
        """The ref under which claims are recorded."""
        return self.origin or str(self.ref)

    def is_owned_by(self, pod: Pod) -> bool:
        """Return whether a pod may claim it; mirror pods, whose names kubelets choose, may not."""
        if pod.is_mirror:
            return False
        return pod.name in self.owners or any(rule.matches(pod) for rule in self.rules)

    def covers(self, requests: Mapping[str, int]) -> bool:
        """Return whether a slot covers a request in the slot's resources."""
        return all(amount >= requests.get(name, 0) for name, amount in self.resources.items())

    def yields_to(self, priority: int) -> bool:
        """Return whether a pod of a priority may take its room."""
        return self.yields_above is not None and priority > self.yields_above

    def lends_to(self, pod: Pod) -> bool:
        """Return whether a pod may borrow its room."""
        below = self.lends_below
        return below is not None and pod.priority < below and pod.constraints.tolerates_recall

    def phase(self, claims: int, now: float) -> Phase:
        """Return its phase at `now` (unix seconds), with `claims` claimed slots."""
        if claims >= self.most_slots and not self.is_whole:
            return Phase.CLAIMED
        if self.expires_at is not None and now >= self.expires_at:
            return Phase.EXPIRED
        if self.starts_at is not None and now < self.starts_at:
            return Phase.PENDING
        if self.recurrence is not None and self.recurrence.is_suspended:
            return Phase.PENDING
        return Phase.ACTIVE

    def unclaimed(self, claimed_on: Sequence[str]) -> tuple[dict[str, int], int]:
        """Return unclaimed slots by node, and the number without a place, given claims' nodes."""
        if self.node:
            return {self.node: max(0, self.slots - len(claimed_on))}, 0
        if self.refill_up_to:
            return places.refilled(
                self.placed, min(self.slots, self.refill_up_to - len(claimed_on)), claimed_on
            )
        return places.unclaimed(self.placed, self.slots, () if self.is_whole else claimed_on)
