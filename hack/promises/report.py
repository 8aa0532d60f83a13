"""The checker's findings, for people and for programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any


class Kind(StrEnum):
    """The promises of the design, as what becomes of them when they break."""

    GIVEN_AWAY = "given away"
    CLAIMED_TWICE = "claimed twice"
    CLAIMED_WRONGLY = "claimed wrongly"
    CLAIM_NOT_RECORDED = "claim not recorded"
    CLAIM_LOST = "claim lost"
    RESERVATION_LOST = "reservation lost"
    EDIT_VANISHED = "edit vanished"
    STALE_REFUSAL = "expired hold still refused"
    OFF_SEAT = "owner off its seat"
    KEPT_OUT = "owner kept out by a borrower"
    LEFT_OVER = "hold left at the end"
    EVICTED_WITHOUT_SEAT = "evicted without a seat"
    EVICTED_BEFORE_GROUP = "evicted before its group had seats"
    EVICTED_OUTSIDE_WINDOW = "evicted outside of its window"
    SEAT_GIVEN_UP = "seat given up before the landing"
    SEAT_OUTLIVED = "seat outlived its move"
    REMOVED_BEFORE_READY = "removed before its copy was ready"
    EVICTED_WHILE_SURGING = "evicted while it surged"
    SURGE_OUTLIVED = "surge outlived its move"
    PLACED_IN_MAINTENANCE = "placed on a node in maintenance"
    CORDON_LIFTED = "cordon of somebody else lifted"


@dataclass(frozen=True, kw_only=True)
class Violation:
    """One promise broken once.

    Attributes:
        kind: which one.
        revision: of the write that broke it, or that shows it.
        at: when that was received, unix seconds.
        node: the node that it is about, if it is about one.
        pod: as ``namespace/name``, if it is about one.
        entry: the ref of the reservation.
        sums: the numbers: millicores of cpu, base units of all else, seconds where it says so.
        text: what happened, in a sentence.
    """

    kind: Kind
    revision: int
    at: float
    node: str = ""
    pod: str = ""
    entry: str = ""
    sums: Mapping[str, Any] = field(default_factory=dict)
    text: str

    def __str__(self) -> str:
        """Return one line."""
        moment = datetime.fromtimestamp(self.at, UTC).strftime("%H:%M:%S.%f")[:-3]
        where = {"node": self.node, "pod": self.pod, "entry": self.entry, **self.sums}
        facts = ", ".join(f"{name} {value}" for name, value in where.items() if value != "")
        return f"{self.kind}: revision {self.revision} at {moment}: {self.text} ({facts})"


@dataclass(frozen=True)
class Report:
    """The findings in a history.

    Attributes:
        counts: the numbers of judged and of unjudged cases.
        violations: broken promises, in the order of their revisions.
        warnings: allowed but unusual cases.
        notes: unjudged cases, with the reason.
    """

    counts: Mapping[str, int]
    violations: tuple[Violation, ...]
    warnings: tuple[Violation, ...]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return all of it, for a person."""
        lines = [", ".join(f"{count} {name}" for name, count in self.counts.items())]
        lines += self.notes
        lines += [f"WARNING   {warning}" for warning in self.warnings]
        lines += [f"VIOLATION {violation}" for violation in self.violations]
        lines.append(f"{len(self.violations)} violations, {len(self.warnings)} warnings")
        return "\n".join(lines)

    def document(self) -> dict[str, Any]:
        """Return all of it, as JSON has it."""
        return asdict(self)
