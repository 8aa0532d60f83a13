"""What is written at one ref, and the claims that are known of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import NamedTuple

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
        is_written: it was written down, and stays so while it is unsure. What the past tells of
            besides is written down only once it is sure: of all that is, it is noted at which
            version of the store it was of what stood there.
    """

    at: int
    known_at: int
    node: str
    is_written: bool = True


NO_UNSURE: Mapping[str, Recorded] = MappingProxyType({})


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
        unsure: recorded claims of it, or of what stood there before and said the same, by UID.
        unwritten: why its expiry or place cannot be written into it; empty if it can, or need not.
    """

    reservation: Reservation
    written: Written
    since: float
    recorded: Parts
    unsure: Mapping[str, Recorded] = field(default_factory=lambda: NO_UNSURE)
    unwritten: str = ""


def inherit(entry: Entry, old: Entry) -> bool:
    """Let what is written at a ref begin where that one was placed.

    It holds there until it is known whether that still suits it. Return whether both are the same,
    except for an expiry that another Reserver computed.
    """
    after = entry.reservation
    if not (after.node or after.placed or old.reservation.node):
        after = replace(after, placed=clipped(old.reservation.placed, after.slots))
    is_same = after.continues(old.reservation)
    if is_same:
        after = replace(after, drift=old.reservation.drift)
        entry.written = entry.written if old.written is NOT_YET else old.written
    entry.reservation = after
    return is_same
