"""Reservations as words and table cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from math import ceil

from reserver.cli.owner_flags import word_of
from reserver.cli.table import Cell, counted
from reserver.client import (
    OwnerSelector,
    Phase,
    PlacedSlots,
    PodOwner,
    RecurringSchedule,
    ReservationInfo,
    Spec,
)
from reserver.cluster import quantity
from reserver.errors import InvalidInput
from reserver.k8s.objects.times import show_duration

NOTHING = "-"

_DAYS = {0: "", 1: " tomorrow"}
"""The suffix of a time of day, by days from now."""

_COLUMN = 40
"""Most characters of a description in a column."""

MOST_OWNERS = 2 * _COLUMN
"""The same, of owners; `describe` shows all."""

QUOTA_EXCEEDED = "QuotaExceeded"

_CLOSED = {
    "NodeCordoned": "node cordoned",
    "NodeLeaving": "node leaves",
    "NodeTainted": "node tainted",
    "Idle": "idle",
}
"""Reasons of a reservation whose node takes no pods now, or that was released, in words."""

UNKNOWN = "Unspecified"
"""Stands for a phase that only newer clients can read."""

_STYLES = {
    Phase.ACTIVE: "green",
    Phase.CLAIMED: "cyan",
    Phase.PENDING: "yellow",
    Phase.FAILED: "red",
    Phase.INVALID: "red",
    Phase.EXPIRED: "dim",
}


_LEAST = ((86_400, 3_600), (3_600, 60))
"""To how many seconds a duration of so many is rounded."""


def duration(seconds: float | None) -> str:
    """Return a duration in its two largest units, rounded, as flags take it; None has no end."""
    if seconds is None:
        return "no end"
    left = max(0, int(seconds))
    least = next((size for longest, size in _LEAST if left >= longest), 1)
    left = (left + least // 2) // least * least
    parts: list[tuple[int, str]] = []
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count or parts:
            parts.append((count, unit))
    return "".join(f"{count}{unit}" for count, unit in parts[:2] if count) or "0s"


def short_name(reservation: ReservationInfo) -> str:
    """Return a name that is unique among neighbours: an item of a list has its pod's name."""
    name, bracket, item = reservation.id.partition("[")
    return f"{name.rpartition('/')[2]}[{item}" if bracket else reservation.name


def phase(reservation: ReservationInfo) -> Cell:
    """Return its phase, and a lack of room or another condition."""
    if reservation.phase is None:
        return Cell(UNKNOWN, "")
    word, style = str(reservation.phase), _STYLES.get(reservation.phase, "")
    if reservation.phase is Phase.ACTIVE and not reservation.is_backed:
        return Cell("Waiting, no room", "yellow")  # Active alone means that it is in force.
    if reservation.reason in _CLOSED:
        return Cell(f"{word}, {_CLOSED[reservation.reason]}", "yellow")
    if reservation.assumes_namespace and reservation.phase in {Phase.ACTIVE, Phase.PENDING}:
        return Cell(f"{word}, no namespace", "yellow")
    if reservation.reason == QUOTA_EXCEEDED:
        return Cell(f"{word}, over quota", style)
    return Cell(word, style)


def slots(reservation: ReservationInfo) -> str:
    """Return the number of slots."""
    nodes, slots = reservation.spec.nodes, str(reservation.spec.slots)
    found = slots if nodes is None else f"{nodes.count} whole"
    return NOTHING if reservation.phase is Phase.INVALID else found


def claimed(reservation: ReservationInfo) -> str:
    """Return the number of claims."""
    claims = len(reservation.claims)
    found = str(claims) if reservation.spec.nodes is None else counted(claims, "pod")
    return NOTHING if reservation.phase is Phase.INVALID else found


def node(reservation: ReservationInfo) -> str:
    """Return the nodes of its slots."""
    return places(reservation.placements) if reservation.placements else NOTHING


def places(parts: Sequence[PlacedSlots]) -> str:
    """Return nodes, with the number of slots where there are several."""
    if len(parts) == 1:
        return parts[0].node
    return ", ".join(f"{part.node} ×{part.slots}" for part in parts) or NOTHING


def ends_in(reservation: ReservationInfo, now: datetime) -> str:
    """Return the time until it expires."""
    spec = reservation.spec
    if spec.schedule is not None and spec.schedule.suspend:
        return "suspended"
    if reservation.occurrences:
        begin, end = reservation.occurrences[0]
        left = ceil(((begin if now < begin else end) - now).total_seconds())
        return f"starts in {duration(left)}" if now < begin else duration(max(0, left))
    if spec.expires_at is None:
        return "never" if spec.ttl == timedelta(0) else NOTHING
    left = ceil((spec.expires_at - now).total_seconds())
    return duration(left) if left > 0 else "over"


def every(schedule: RecurringSchedule) -> str:
    """Return when a reservation recurs."""
    suspended = "; suspended: nothing is held" if schedule.suspend else ""
    zone, span = schedule.time_zone or "UTC", show_duration(schedule.duration)
    lead = f", held from {show_duration(schedule.lead)} before" if schedule.lead else ""
    return f"{schedule.cron} ({zone}) for {span}{lead}{suspended}"


def amounts(resources: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the amount of each resource, each written in the one way of `quantity.show`."""
    return [(name, _amount(name, text)) for name, text in sorted(resources.items())]


def _amount(name: str, text: str) -> str:
    try:
        return quantity.show(name, quantity.amount(name, text))
    except InvalidInput:  # Of an entry that cannot be read.
        return text


def holds(resources: Mapping[str, str]) -> str:
    """Return the resources of one slot, for a column."""
    return ", ".join(f"{name} {text}" for name, text in amounts(resources)) or NOTHING


def shortened(text: str, most: int = _COLUMN) -> str:
    """Return the first line of a text, cut to fit a column."""
    line = text.partition("\n")[0]
    return (line if len(line) <= most else f"{line[: most - 1]}…") or NOTHING


def owner(who: PodOwner | OwnerSelector) -> str:
    """Return an owner as `create --owner` takes it, with its namespace."""
    if isinstance(who, PodOwner):
        return f"{who.namespace}/pod/{who.name}"
    parts = [f"pod/{who.pod}"] if who.pod else []
    if who.controller is not None:
        parts.append(f"{word_of(who.controller.kind)}/{who.controller.name}")
    labels = [f"{key}={value}" for key, value in sorted(who.match_labels.items())]
    for key, operator, values in who.match_expressions:
        labels.append(f"{key} {operator}" + (f" ({', '.join(values)})" if values else ""))
    if labels:
        parts.append(",".join(labels))
    return f"{who.namespace}/{' and '.join(parts)}"


def owners(reservation: ReservationInfo) -> str:
    """Return the owners of a reservation."""
    return "; ".join(map(owner, reservation.spec.owners)) or NOTHING


def one_line(reservation: ReservationInfo, now: datetime) -> str:
    """Return a reservation in a line: how much, where, for whom and until when.

    Args:
        now: the present, in the zone of whoever reads.
    """
    spec = reservation.spec
    on = f" on {node(reservation)}" if reservation.placements else ""
    what, whom = _held(spec), shortened(owners(reservation), MOST_OWNERS)
    held = f"{what}{on} held for {whom}"
    if not (reservation.phase is Phase.ACTIVE and reservation.is_backed):
        held = f"{phase(reservation).text}{on}: {what} for {whom}"
    if spec.schedule is not None and spec.schedule.suspend:
        return f"{held}, suspended"
    if reservation.occurrences:
        begin, end = reservation.occurrences[0]
        span = f"until {moment(end, now)}" if begin <= now else f"next at {moment(begin, now)}"
        more = ", and again" if begin <= now and reservation.occurrences[1:] else ""
        return f"{held}, {span}{more}"
    since = ""
    if spec.starts_at is not None and spec.starts_at > now:
        since = f", from {moment(spec.starts_at, now)}"
    if spec.expires_at is None:
        return f"{held}{since}, for ever"
    return f"{held}{since}, until {moment(spec.expires_at, now)}"


def moment(when: datetime, now: datetime) -> str:
    """Return a moment in the zone of `now`, as flags take it."""
    there = when.astimezone(now.tzinfo)
    clock = f"{there:%H:%M}"
    days = (there.date() - now.date()).days
    if days in _DAYS:
        return f"{clock}{_DAYS[days]}"
    return f"{there:%Y-%m-%d} {clock}"


def _held(spec: Spec) -> str:
    """Return the amounts of a spec in words, such as ``2 slots of 1 CPU, 4Gi memory``."""
    if (nodes := spec.nodes) is not None:
        return "a whole node" if nodes.count == 1 else f"{nodes.count} whole nodes"
    said = ", ".join(_worded(*each) for each in amounts(spec.resources)) or "nothing"
    return said if spec.slots == 1 else f"{spec.slots} slots of {said}"


def _worded(name: str, text: str) -> str:
    if name == "cpu":
        return f"{text} CPU" if text == "1" or text.endswith("m") else f"{text} CPUs"
    return f"{text} {name}"
