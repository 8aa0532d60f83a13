"""The entry of a reservation at one ref, and its recovered claims."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import NamedTuple

from reserver.cluster.byte_cache import same
from reserver.cluster.pod import Pod
from reserver.cluster.quantity import shared
from reserver.reservations.digest import digest, equals, lasting_digest
from reserver.reservations.placement import Parts, clipped
from reserver.reservations.reservation import NOT_YET, Reservation, Written

UNSEEN = -1
"""The resourceVersion of a claim whose binding no watch has shown yet."""


class Recorded(NamedTuple):
    """A claim from before this process started.

    Attributes:
        at: a resourceVersion at which the pod had its slot.
        known_at: a resourceVersion at which the claim belonged to the entry there; not earlier.
        node: where the slot was; empty if unknown.
        is_written: whether the claim is persisted in the status. Claims recovered from the watch
            history are persisted only once confirmed.
    """

    at: int
    known_at: int
    node: str
    is_written: bool = True


NO_UNSURE: Mapping[str, Recorded] = MappingProxyType({})


class EndedClaim(NamedTuple):
    """A slot that was claimed.

    Attributes:
        uid: the pod's UID.
        pod: ``namespace/name``; empty if unknown by now.
        node: the pod's node; empty if unknown by now.
        at: the first observation of the claim, unix seconds; 0 if not recorded.
    """

    uid: str
    pod: str = ""
    node: str = ""
    at: float = 0.0


def ended_claim(uid: str, pod: Pod | None, at: float = 0.0) -> EndedClaim:
    """Return the ended claim of a UID; `pod` is None if the pod is unknown by now."""
    return EndedClaim(uid, str(pod.name), pod.node, at) if pod else EndedClaim(uid, at=at)


class Peak(NamedTuple):
    """The most pods with slots of a reusable reservation, before one of them gave its slot back.

    Attributes:
        pods: the number of pods.
        slots: the number of their slots.
        claims: some of their claims.
    """

    pods: int = 0
    slots: int = 0
    claims: tuple[EndedClaim, ...] = ()


NO_PEAK = Peak()


class Claimed(NamedTuple):
    """A slot that a pod has.

    Attributes:
        at: a resourceVersion at which the pod had the slot; `UNSEEN` until a watch shows it.
        node: the pod's node; empty if unknown.
    """

    at: int
    node: str


@dataclass(slots=True, eq=False)
class Entry:
    """One ref at which a reservation is written.

    Attributes:
        reservation: the written spec, with the current `placed`, even if that is not written yet.
        written: the resourceVersions between which the entry was written.
        since: the first write at this ref, unix seconds.
        recorded: the written place.
        read_at: resourceVersion of the last place that this process did not write itself; 0
            without one.
        unsure: recovered claims, by UID, that may belong to an earlier entry with the same content.
        unwritten: why the expiry or place cannot be written into the entry; empty if not so.
    """

    reservation: Reservation
    written: Written
    since: float
    recorded: Parts
    read_at: float = 0.0
    unsure: Mapping[str, Recorded] = field(default_factory=lambda: NO_UNSURE)
    unwritten: str = ""


def identified(written: Reservation) -> Reservation:
    """Return a reservation with its digest, which depends on its content, not on its layout.

    The digest depends neither on the ref or `origin`, so that a copy in another store is the same
    reservation, nor on the place that Reserver chose.

    A rewrite with the same content (another layout, a ttl resolved to its moment) keeps the claims;
    so does a new expiry of a reusable reservation. Any other edit, even of the expiry, does not.
    """
    return replace(
        written,
        digest=digest(written),
        lasting=lasting_digest(written),
        node=same(written.node),
        owners=tuple(sorted(written.owners)),
        resources=shared(written.resources),
    )


def inherit(entry: Entry, old: Entry) -> bool:
    """Let the new entry of a ref begin at the place of the old one.

    It holds there until the placer has checked the place. Return whether both are the same to
    claims: a different expiry may be, of a reusable reservation or computed by another process.
    """
    after = entry.reservation
    if entry.recorded == old.recorded:
        entry.read_at = old.read_at
    if not (after.node or after.placed or old.reservation.node):
        after = replace(after, placed=clipped(old.reservation.placed, after.most_slots))
    is_equal = equals(after, old.reservation)
    if is_equal:
        after = replace(after, drift=old.reservation.drift)
    is_same = is_equal or after.identity == old.reservation.identity
    if is_same:
        entry.written = entry.written if old.written is NOT_YET else old.written
    entry.reservation = after
    return is_same


def latest(
    entries: Sequence[Entry], admits: Callable[[Reservation], bool] = lambda _: True
) -> Reservation:
    """Return the first entry's reservation, with the latest expiry of all admitted entries.

    While a reservation is moved from one store to another, a client may extend one of the copies. A
    copy that no quota admits does not extend it: a tenant may have copied a manager's reservation.
    """
    counted = [entry for entry in entries if admits(entry.reservation)] or entries
    moments = [entry.reservation.expires_at for entry in counted]
    known = [at for at in moments if at is not None]
    expires_at = max(known) if len(known) == len(moments) else None
    return replace(entries[0].reservation, expires_at=expires_at)


def by_namespace(entries: Sequence[Entry]) -> Iterable[Reservation]:
    """Return one reservation for each namespace, with the latest expiry of its entries there."""
    if len(entries) == 1:
        return (entries[0].reservation,)
    found: dict[str, list[Entry]] = {}
    for each in entries:
        found.setdefault(each.reservation.ref.namespace, []).append(each)
    return map(latest, found.values())
