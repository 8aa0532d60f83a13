"""The documents that the page draws: reservations, nodes, moves and windows as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from reserver.client import (
    NodeCapacity,
    OwnerSelector,
    PastReservation,
    Phase,
    ReservationInfo,
    Spec,
)
from reserver.client.slots import all_slots
from reserver.cluster import quantity
from reserver.errors import InvalidInput
from reserver.maintenance.model import Window
from reserver.printable import printable

Document = Mapping[str, Any]
"""The JSON of one object for the page; times are unix milliseconds, amounts exact integers."""

_NOT_STARTED = "NotStarted"
_MOST_CLAIMS = 20
_MOST_TEXT = 1000
_MOST_LABELS = 64


class ReservationWords(NamedTuple):
    """The CLI's words for a reservation.

    Attributes:
        phase: the phase in the words of `reserver get`.
        owners: the owners.
        every: the schedule; empty without one.
    """

    phase: str = ""
    owners: str = ""
    every: str = ""


def _whole(spec: Spec) -> str:
    """Return the whole nodes of a spec in words; empty for any other spec."""
    number = spec.nodes.count if spec.nodes is not None else 0
    return "a whole node" if number == 1 else f"{number} whole nodes" if number else ""


def reservation(info: ReservationInfo, words: ReservationWords) -> Document:
    """Return the document of a reservation, with the present or next occurrence of a schedule."""
    spec, ((starts, ends), *coming) = info.spec, _spans(info)
    return {
        "id": info.id,
        "name": info.name,
        "namespace": spec.owners[0].namespace if spec.owners else "",
        "owners": _shown(words.owners),
        "amounts": _amounts(spec.resources),
        "holds": ", ".join(f"{name} {text}" for name, text in sorted(spec.resources.items()))
        or _whole(spec),
        "slots": all_slots(info) if spec.nodes is None else 1,
        "claimed": len(info.claims) if spec.nodes is None else 0,
        "claims": [claim.pod for claim in info.claims[:_MOST_CLAIMS]],
        "nodes": [[part.node, part.slots] for part in info.placements],
        "since": _milliseconds(info.since),
        "starts": starts,
        "ends": ends,
        "every": _shown(words.every),
        "coming": coming,
        "words": words.phase,
        "shape": shape(info),
        "why": _shown(info.message),
        "description": _shown(spec.description),
        "author": _shown(info.author),
        "lends": None if spec.lend is None else spec.lend.below_priority,
        "isSeat": any(isinstance(o, OwnerSelector) and o.replaces is not None for o in spec.owners),
    }


def _spans(info: ReservationInfo) -> list[tuple[int | None, int | None]]:
    """Return start and end of the hold, for a schedule of each known occurrence."""
    spec = info.spec
    if spec.schedule is None or not info.occurrences:
        return [(_milliseconds(spec.starts_at), _milliseconds(spec.expires_at))]
    lead = spec.schedule.lead or timedelta()
    # A lead never overlaps the occurrence before.
    ends = [datetime.min.replace(tzinfo=UTC), *(each.ends_at for each in info.occurrences)]
    return [
        (_milliseconds(max(each.starts_at - lead, before)), _milliseconds(each.ends_at))
        for each, before in zip(info.occurrences, ends, strict=False)
    ]


def shape(info: ReservationInfo) -> str:
    """Return the drawing style of a reservation.

    ``held`` is in force, ``noroom`` has a node without room, ``placeless`` waits for a node,
    ``later`` has not started, ``claimed`` and ``over`` hold nothing, ``broken`` needs an edit.
    """
    if info.phase is Phase.ACTIVE:
        return "held" if info.is_backed else "noroom"
    if info.phase is Phase.PENDING:
        return "later" if info.reason == _NOT_STARTED else "placeless"
    simple = {Phase.CLAIMED: "claimed", Phase.EXPIRED: "over"}
    return simple.get(info.phase, "broken") if info.phase else "broken"


def past(info: PastReservation) -> Document:
    """Return the document of an ended reservation, with its slots spread over its nodes."""
    each, more = divmod(info.slots, len(info.nodes)) if info.nodes else (0, 0)
    return {
        "id": info.id,
        "name": info.name,
        "namespace": info.owner_namespace,
        "owners": _shown(info.owners),
        "amounts": _amounts(info.resources),
        "holds": ", ".join(f"{name} {text}" for name, text in sorted(info.resources.items())),
        "slots": info.slots,
        "claimed": info.claimed,
        "claims": [claim.pod for claim in info.claims[:_MOST_CLAIMS]],
        "nodes": [[node, each + (at < more)] for at, node in enumerate(info.nodes)],
        "since": _milliseconds(info.since),
        "ends": _milliseconds(info.ended),
        "words": str(info.outcome or "over"),
        "shape": "over",
        "description": _shown(info.description),
        "author": _shown(info.author),
    }


def past_key(info: PastReservation) -> str:
    """Return a unique key of an ended reservation, whose name may have been reused."""
    return f"{info.id}@{info.since.isoformat()}"


def node(
    capacity: NodeCapacity, labels: Mapping[str, str], windows: Sequence[str] = ()
) -> Document:
    """Return the document of a node; `windows` are its maintenance windows."""
    columns = ("allocatable", "requested", "held", "borrowed")
    return {
        "name": capacity.node,
        "labels": dict(list(labels.items())[:_MOST_LABELS]),
        "windows": windows,
        **{
            column: _amounts({n: getattr(a, column) for n, a in capacity.resources.items()})
            for column in columns
        },
    }


def move(found: Mapping[str, Any]) -> Document:
    """Return the document of a PodMove."""
    spec, status = found.get("spec") or {}, found.get("status") or {}
    pod = spec.get("pod") or {}
    texts = {
        "phase": status.get("phase"),
        "reason": status.get("reason"),
        "message": status.get("message"),
        "from": status.get("from"),
        "to": status.get("to") or (spec.get("to") or {}).get("node"),
    }
    return {
        "name": found["metadata"]["name"],
        "namespace": found["metadata"]["namespace"],
        "pod": str(pod.get("name") or ""),
        "made": found["metadata"].get("creationTimestamp"),
        "mode": str(spec.get("mode") or ""),
        "paused": bool(spec.get("paused")),
        **{name: _shown(str(text or "")) for name, text in texts.items()},
    }


def window(found: Window, progress: str) -> Document:
    """Return the document of a maintenance window with its progress in words."""
    start, end = found.period
    return {
        "name": found.name,
        "drains": round(found.drain_at * 1000),
        "starts": round(start * 1000),
        "ends": round(end * 1000),
        "progress": _shown(progress),
    }


def windows_by_node(
    windows: Sequence[Window], labels: Mapping[str, Mapping[str, str]]
) -> dict[str, list[str]]:
    """Return the names of the windows of each node, selected by name or by its labels."""
    found: dict[str, list[str]] = {}
    for each in windows:
        for name in each.nodes | {name for name, has in labels.items() if each.has(name, has)}:
            found.setdefault(name, []).append(each.name)
    return found


def _shown(text: str) -> str:
    """Return the beginning of a text; its invisible characters, except line feeds, are escaped."""
    return printable(text[:_MOST_TEXT], "\n")


def _amounts(texts: Mapping[str, str]) -> dict[str, int]:
    """Return amounts in millicores, bytes or pieces, except unparsable ones."""
    found = {}
    for resource, text in texts.items():
        try:
            found[resource] = quantity.amount(resource, text)
        except InvalidInput:
            continue
    return found


def _milliseconds(moment: datetime | None) -> int | None:
    return None if moment is None else round(moment.timestamp() * 1000)
