"""Sums for `reserver report`: capacity that was held, claimed or not. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from statistics import fmean
from types import MappingProxyType

from reserver.cli import formatting
from reserver.client import PastReservation, Phase, ReservationInfo
from reserver.client.slots import all_slots, of_slot
from reserver.cluster import quantity
from reserver.cluster.node import NODES

BUCKETS = 24
"""Into how many parts the time of a report is divided."""

NO_OFFERS: Mapping[str, float] = MappingProxyType({})
_UNITS = {"cpu": (1000, "cores"), "memory": (2**30, "GiB"), "ephemeral-storage": (2**30, "GiB")}


_LEAST = 0.01


class Fate(StrEnum):
    """The outcome of capacity that was held."""

    USED = "used"
    """The capacity was claimed in the end."""

    UNUSED = "unused"
    """The capacity expired or was removed unclaimed."""

    OPEN = "open"
    """The capacity is still held."""


@dataclass(frozen=True, slots=True)
class Held:
    """Capacity that was held for an owner for a time.

    Attributes:
        owner: the owner, as printed.
        reservation: the id of the reservation, with the start of the hold.
        begin: the start of the hold.
        end: the end of the hold.
        amount: in the unit of the resource.
        fate: the fate of the capacity.
    """

    namespace: str
    owner: str
    reservation: str
    begin: datetime
    end: datetime
    amount: float
    fate: Fate


@dataclass(slots=True)
class Sums:
    """Amounts held, summed by their outcome.

    Attributes:
        hours: amount times hours.
        reservations: which ones.
    """

    hours: dict[Fate, float] = field(default_factory=lambda: dict.fromkeys(Fate, 0.0))
    reservations: set[str] = field(default_factory=set)

    @property
    def held(self) -> float:
        """All that was held."""
        return sum(self.hours.values())


def received(resource: str) -> int:
    """Return how many of the API's units are one of the report: it counts bytes, not GiB."""
    return 1 if resource == "cpu" else _UNITS.get(resource, (1, ""))[0]


def number(value: float) -> str:
    """Return an amount, short."""
    if value >= 1 or not value:
        return f"{value:.1f}"
    return f"{value:.2f}" if value >= _LEAST else f"<{_LEAST}"


def unit(resource: str) -> str:
    """Return the unit of a resource."""
    return _UNITS.get(resource, (1, resource))[1]


def amount(resource: str, text: str) -> float:
    """Return a quantity in the unit of its resource."""
    return quantity.amount(resource, text) / _UNITS.get(resource, (1, ""))[0]


def of_past(
    past: PastReservation, resource: str, offers: Mapping[str, float] = NO_OFFERS
) -> Iterator[Held]:
    """Yield the holds of a past reservation: each claimed slot until its claim.

    A whole node was held until the end, claimed or not.

    Args:
        past: the reservation.
        resource: of what.
        offers: what nodes offer of it, by name, for whole nodes; in its unit.
    """
    is_whole = NODES in past.resources
    one = _of_slot(past.resources, resource, past.nodes, offers)
    if one is None or not past.nodes:
        return
    owner = past.owners.replace(f"{past.owner_namespace}/", "")
    name = f"{past.id}@{past.since.isoformat()}"

    def held(end: datetime, slots: int, fate: Fate) -> Held:
        return Held(past.owner_namespace, owner, name, past.since, end, one * slots, fate)

    claims = () if is_whole else past.claims
    for claim in claims:
        yield held(claim.at or past.ended, 1, Fate.USED)
    if more := past.claimed - len(claims):
        yield held(past.ended, more, Fate.USED)
    if free := past.slots - past.claimed:
        yield held(past.ended, free, Fate.UNUSED)


def of_present(
    reservation: ReservationInfo,
    resource: str,
    now: datetime,
    offers: Mapping[str, float] = NO_OFFERS,
) -> Iterator[Held]:
    """Yield the holds of a present reservation; the moment of a claim is unknown.

    Of what recurs that is the occurrence under way: those before are over. For `offers` see
    `of_past`.
    """
    spec, since = reservation.spec, reservation.since
    nodes = [part.node for part in reservation.placements]
    one = _of_slot(of_slot(spec), resource, nodes, offers)
    taken = len(reservation.claims) if spec.nodes is None else 0  # Which nodes, nobody says.
    fates = {Phase.ACTIVE: Fate.OPEN, Phase.EXPIRED: Fate.UNUSED, Phase.CLAIMED: Fate.USED}
    fate = fates.get(reservation.phase) if reservation.phase else None
    if one is None or since is None or fate is None or not nodes:
        return
    begin, end = _span(reservation, since, now)
    first, *_ = spec.owners
    owner = ", ".join(formatting.owner(each) for each in spec.owners)
    for slots, came in ((taken, Fate.USED), (all_slots(reservation) - taken, fate)):
        if slots:
            yield Held(
                first.namespace,
                owner.replace(f"{first.namespace}/", ""),
                reservation.id,
                begin,
                end,
                one * slots,
                came,
            )


def _span(
    reservation: ReservationInfo, since: datetime, now: datetime
) -> tuple[datetime, datetime]:
    """Return from when until when a reservation has held; since when it is written is known."""
    spec, idle_since = reservation.spec, reservation.idle_since
    begin, end = max(since, spec.starts_at or since), min(now, spec.expires_at or now)
    if spec.schedule is not None and reservation.occurrences:
        occurrence, lead = reservation.occurrences[0], spec.schedule.lead or timedelta()
        begin, end = max(begin, occurrence.starts_at - lead), min(end, occurrence.ends_at)
    if reservation.reason == "Idle" and idle_since and spec.release_if_idle:
        end = min(end, idle_since + spec.release_if_idle)
    return begin, end


def _of_slot(
    slot: Mapping[str, str], resource: str, nodes: Iterable[str], offers: Mapping[str, float]
) -> float | None:
    """Return a slot's amount of a resource, in its unit; None for nothing.

    A whole node counts as the average of the given nodes that still exist.
    """
    if (text := slot.get(resource)) is not None:
        return amount(resource, text)
    known = [offers[node] for node in nodes if node in offers] if NODES in slot else []
    return fmean(known) if known else None


def clipped(held: Iterable[Held], begin: datetime, end: datetime) -> list[tuple[Held, float]]:
    """Return the holds between two moments, each with its hours in that time."""
    found = []
    for each in held:
        hours = (min(each.end, end) - max(each.begin, begin)) / timedelta(hours=1)
        if hours > 0:
            found.append((each, hours))
    return found


def summed(
    held: Sequence[Held], begin: datetime, end: datetime, key: Callable[[Held], tuple[str, ...]]
) -> dict[tuple[str, ...], Sums]:
    """Return the sums between two moments by a key, the largest first."""
    sums: dict[tuple[str, ...], Sums] = {}
    for each, hours in clipped(held, begin, end):
        mine = sums.setdefault(key(each), Sums())
        mine.hours[each.fate] += each.amount * hours
        mine.reservations.add(each.reservation)
    return dict(sorted(sums.items(), key=lambda item: (-item[1].held, item[0])))


def over_time(
    held: Sequence[Held], begin: datetime, end: datetime
) -> list[tuple[datetime, dict[Fate, float]]]:
    """Return the average amount in each part of the time between two moments."""
    width = (end - begin) / BUCKETS
    parts = []
    for number in range(BUCKETS):
        start = begin + number * width
        mean = dict.fromkeys(Fate, 0.0)
        for each, hours in clipped(held, start, start + width):
            mean[each.fate] += each.amount * hours / (width / timedelta(hours=1))
        parts.append((start, mean))
    return parts
