"""A reservation: capacity of a node that is kept for pods which do not exist yet."""

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
    """Between which resourceVersions of the store a reservation was written, both included.

    A watch shows each write with its own, so that both are the same; a list only shows when the
    whole object was written last. The API server counts all writes of a cluster with one number.
    """

    first: float
    last: float


ANY_TIME = Written(0, 2**63)
"""It is unknown when it was written."""

NOT_YET = Written(2**63, 2**63)
"""It is being written, after everything that is known."""


class Ref(NamedTuple):
    """Where an entry is written: in a ConfigMap, or as a Reservation object.

    Attributes:
        namespace: of the ConfigMap or the Reservation.
        configmap: the ConfigMap's name; of a Reservation there is none.
        key: the data key, or the Reservation's name.
        item: the owner, as ``namespace/name``, where the key's value is a list of reservations;
            empty where the value is one reservation.
        kind: of which kind the store is; this, and not `configmap`, decides who is in charge.
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
        """The ref of all that its key says: itself, unless it is an item of a list."""
        return self._replace(item="") if self.item else self

    def __str__(self) -> str:
        """Return the name that messages use: no two refs have the same.

        Names and keys have no slash, so that it is NAMESPACE/CONFIGMAP/KEY or NAMESPACE/NAME.
        """
        if self.kind is StoreKind.OBJECT:
            return f"{self.namespace}/{self.key}"
        item = f"[{self.item}]" if self.item else ""
        return f"{self.namespace}/{self.configmap}/{self.key}{item}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """A reservation: capacity of a node that is kept for pods which do not exist yet.

    Attributes:
        ref: where it is written.
        digest: tells it from what was written there before.
        lasting: its digest without its expiry, where claims outlast a change of that; else empty.
        node: the node whose capacity it holds; empty where Reserver chooses.
        owners: the pods that it names, sorted: each claims it, and lands on it first.
        rules: pods that may claim a slot without being named; with `owners`, never both empty.
        resources: what one slot holds: millicores of cpu, base units of all else. Nothing but one
            of `NODES` is a whole node.
        slots: how many pods may claim it.
        starts_at: when it begins to hold, unix seconds; None for at once.
        expires_at: when it stops holding, unix seconds; None for never.
        policy: where owners may land when their seat cannot be had.
        yields_above: pods of a higher priority than this may take what it holds; None: none may.
        reusable: a slot comes back when its pod goes.
        refill_up_to: claimed slots are replaced where there is room, so that `slots` of them are
            free, as long as both are no more than this; 0: none is replaced.
        release_if_idle: it ends once no pod has had a slot for so many seconds; 0: it does not.
        lends_below: pods of a lower priority than this may borrow it (`cluster.lending`).
        recurrence: when it recurs; then `starts_at` and `expires_at` are of one occurrence.
        placement: where Reserver may choose.
        placed: where it has, as far as that is written or decided; empty while it has not, and
            where the reservation names its node. Not part of what the reservation says.
        origin: the ref under which claims are recorded, where that is not `ref`: it was written
            there before it was moved here, or the ref alone does not tell it from another one.
        created_at: when its object was created, unix seconds; 0 for a key. Not part of it.
        occurrence: of what recurs: when the one that it is about starts, unix seconds; None once
            none is to come. Not part of what it says.
        next_occurrences: that one, and those after it, to show to people. Not part of what it says.
        drift: by how many seconds its expiry may differ where somebody else has worked it out from
            the same ``ttl``; 0 where it is written as a moment. Not part of what it says.
        is_seat: it belongs to a PodMove. Like all that follows not part of what it says.
        volume_claims: PersistentVolumeClaims that the pod uses whose seat it is.
        fallback: where that pod itself may be, whatever its move says; None if that is not known.
        is_retained: it stays written once it is over.
        description: its purpose, in the author's words.
        author: who wrote it, as far as that is known; empty if it is not.
        identity: the key of its claims; an edited reservation has another one.
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
        """Compute the identity once: it is the key of much that is known of a reservation."""
        object.__setattr__(self, "identity", f"{self.record}@{self.lasting or self.digest}")

    @property
    def edition(self) -> str:
        """The identity with its expiry in it, by which versions before 0.2 know all claims."""
        return f"{self.record}@{self.digest}" if self.lasting else self.identity

    @property
    def is_whole(self) -> bool:
        """Whether each slot is a whole node, for any number of pods, until the reservation ends."""
        return NODES in self.resources

    @property
    def anywhere(self) -> Reservation:
        """The same as it is once its pod was evicted: wherever that pod may be."""
        return self if self.fallback is None else replace(self, placement=self.fallback)

    def at(self, now: float) -> Reservation:
        """Return what recurs with the occurrence under way at `now` (unix seconds), or the next.

        Each occurrence has a digest of its own, so that claims are of one. Once none comes any
        more, it stays as it is: over.
        """
        recurrence = self.recurrence
        found = recurrence.shown(now) if recurrence is not None else ()
        if recurrence is None or (not found and self.occurrence is not None):
            return self
        if not found:
            return replace(self, expires_at=min(now, recurrence.ends_at or now))
        return replace(
            self,
            digest=occurrence_digest(self.digest, found[0].start),
            starts_at=found[0].start - recurrence.lead,
            expires_at=found[0].end,
            occurrence=found[0].start,
            next_occurrences=found,
        )

    def identity_at(self, now: float) -> str:
        """Return the identity that it has `at` a moment, in unix seconds."""
        found = self.recurrence.at(now) if self.recurrence is not None else None
        if found is None:
            return self.identity
        return f"{self.record}@{occurrence_digest(self.digest, found.start)}"

    def about(self, other: Reservation) -> Reservation:
        """Return what recurs with the occurrence that the same is about elsewhere."""
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
        """Whether an occurrence comes after the one that it is about."""
        recurrence, ends_at = self.recurrence, self.expires_at
        return recurrence is not None and ends_at is not None and recurrence.at(ends_at) is not None

    def is_for(self, moment: float) -> bool:
        """Return whether a pod that is bound at a moment (unix seconds) may have come for it.

        What recurs is for pods that come while it holds: the one before was for those before.
        """
        recurrence = self.recurrence
        return recurrence is None or (
            not recurrence.is_suspended and (self.starts_at is None or self.starts_at <= moment)
        )

    @property
    def written_as(self) -> str:
        """The identity of what is written: of what recurs the same for all occurrences."""
        return self.identity if self.lasting else f"{self.record}@{series_digest(self.digest)}"

    @property
    def parts(self) -> Parts:
        """The nodes where it holds, with the slots that are there."""
        return (Part(self.node, self.slots),) if self.node else self.placed

    def on(self, part: Part) -> Reservation:
        """Return the part of it that is on one node, as a reservation of that node."""
        if self.node:
            return self
        return replace(self, node=part.node, slots=part.slots, placed=())

    @property
    def most_slots(self) -> int:
        """How many slots it has at most, claimed and free ones together."""
        return self.refill_up_to or self.slots

    def slots_beside(self, claims: int) -> int:
        """Return how many slots it has with so many claims, these included."""
        return places.slots_in_all(self.slots, self.refill_up_to, claims)

    @property
    def record(self) -> str:
        """The ref under which claims are recorded."""
        return self.origin or str(self.ref)

    def is_owned_by(self, pod: Pod) -> bool:
        """Return whether a pod may claim it; mirror pods may not, whose names kubelets choose."""
        if pod.is_mirror:
            return False
        return pod.name in self.owners or any(rule.matches(pod) for rule in self.rules)

    def covers(self, requests: Mapping[str, int]) -> bool:
        """Return whether a slot covers a request, in the resources that it holds."""
        return all(amount >= requests.get(name, 0) for name, amount in self.resources.items())

    def yields_to(self, priority: int) -> bool:
        """Return whether a pod of this priority may take what it holds."""
        return self.yields_above is not None and priority > self.yields_above

    def lends_to(self, pod: Pod) -> bool:
        """Return whether a pod may borrow what it holds."""
        below = self.lends_below
        return below is not None and pod.priority < below and pod.constraints.tolerates_recall

    def phase(self, claims: int, now: float) -> Phase:
        """Return its phase at `now` (unix seconds), with this many slots claimed."""
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
        """Return its unclaimed slots by node, and how many have no place, beside such claims."""
        if self.node:
            return {self.node: max(0, self.slots - len(claimed_on))}, 0
        if self.refill_up_to:
            return places.refilled(
                self.placed, min(self.slots, self.refill_up_to - len(claimed_on)), claimed_on
            )
        return places.unclaimed(self.placed, self.slots, () if self.is_whole else claimed_on)
