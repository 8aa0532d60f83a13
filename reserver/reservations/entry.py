"""What is written at one ref, and the claims that are known of it."""

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
"""Instead of a resourceVersion, for a claim whose binding no watch has shown."""


class Recorded(NamedTuple):
    """A claim from before this process started.

    Attributes:
        at: a resourceVersion at which the pod had its slot.
        known_at: one at which the claim was of what was written there; not earlier.
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
        uid: of the pod.
        pod: as ``namespace/name``; empty if it is not known any more.
        node: where it was bound; empty likewise.
        at: when that was first seen, unix seconds; 0 if nobody noted it.
    """

    uid: str
    pod: str = ""
    node: str = ""
    at: float = 0.0


def ended_claim(uid: str, pod: Pod | None, at: float = 0.0) -> EndedClaim:
    """Return the claim of a pod, by its UID; None for one that is not known any more."""
    return EndedClaim(uid, str(pod.name), pod.node, at) if pod else EndedClaim(uid, at=at)


class Peak(NamedTuple):
    """When most pods had slots of what is reusable, before one of them gave its slot back.

    Attributes:
        pods: how many there were.
        slots: how many slots they had.
        claims: some of these.
    """

    pods: int = 0
    slots: int = 0
    claims: tuple[EndedClaim, ...] = ()


NO_PEAK = Peak()


class Claimed(NamedTuple):
    """A slot that a pod has.

    Attributes:
        at: a resourceVersion at which it had it; `UNSEEN` while its binding is.
        node: where it landed; empty if unknown.
    """

    at: int
    node: str


@dataclass(slots=True, eq=False)
class Entry:
    """One ref at which a reservation is written.

    Attributes:
        reservation: what is written; `placed` says where it is, even if that is not written.
        written: when.
        since: when something was first written there, unix seconds.
        recorded: where it is placed, as written.
        read_at: when another Reserver, or this one before its start, wrote a place at the latest;
            a resourceVersion, 0 if neither has.
        unsure: recovered claims, by UID, that may belong to an earlier entry with the same content.
        unwritten: why its expiry or place cannot be written into it; empty if it can, or need not.
    """

    reservation: Reservation
    written: Written
    since: float
    recorded: Parts
    read_at: float = 0.0
    unsure: Mapping[str, Recorded] = field(default_factory=lambda: NO_UNSURE)
    unwritten: str = ""


def identified(written: Reservation) -> Reservation:
    """Return a reservation with its digest, which depends on what it says, not on its layout.

    Nor does it depend on where it is written, `origin` included, so that a copy in another store is
    the same reservation; nor on where Reserver has placed it.

    Rewriting it (another layout, a ttl resolved to its moment) keeps its claims; so does another
    expiry, of what is reusable. Replacing it by another one does not, if only with a later expiry.
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
    """Let what is written at a ref begin where that one was placed.

    It holds there until it is known whether that still suits it. Return whether both are the same
    to claims: another expiry may be, of what is reusable, or that another Reserver computed.
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
    """Return what the first entry says, until the last of those expires that their quotas admit.

    While it is moved from one store to another, somebody may extend it in one of them. Who writes
    a copy where no quota admits it does not: it might be of what a manager holds for a tenant.
    """
    counted = [entry for entry in entries if admits(entry.reservation)] or entries
    moments = [entry.reservation.expires_at for entry in counted]
    known = [at for at in moments if at is not None]
    expires_at = max(known) if len(known) == len(moments) else None
    return replace(entries[0].reservation, expires_at=expires_at)


def by_namespace(entries: Sequence[Entry]) -> Iterable[Reservation]:
    """Return what is written in each namespace, until the last entry there expires."""
    if len(entries) == 1:
        return (entries[0].reservation,)
    found: dict[str, list[Entry]] = {}
    for each in entries:
        found.setdefault(each.reservation.ref.namespace, []).append(each)
    return map(latest, found.values())
