"""Judges a recorded history: which promises of the design were broken, when and by how much."""

from __future__ import annotations

from dataclasses import replace

from hack.promises import (
    claims,
    holds,
    maintained,
    moves,
    recalls,
    store,
    surges,
    waiting,
    whole_nodes,
)
from hack.promises.case import Case
from hack.promises.history import History, read_history
from hack.promises.replay import replay
from hack.promises.report import Kind, Report, Violation
from hack.promises.timing import Rules

__all__ = ["Kind", "Report", "Rules", "Violation", "check", "judge", "read_history"]


def check(history: History, *, schedulers: frozenset[str], grace_s: float = 1.0) -> Report:
    """Judge a history.

    Args:
        history: as recorded (`read_history`). schedulers: names of the schedulers with Reserver as
        their extender; others are not judged. grace_s: seconds between a write and its arrival in
        Reserver, and before a binding is written.
    """
    return judge(history, Rules(schedulers=schedulers, grace_s=grace_s))


def judge(history: History, rules: Rules) -> Report:
    """Judge a history by the given rules."""
    case = Case(replace(replay(history), ends=rules.ends), rules)
    seats = tuple(holds.off_seat(case))
    violations = (
        *holds.given_away(case),
        *whole_nodes.intruded(case),
        *(violation for forbidden, violation in seats if forbidden),
        *claims.claimed_twice(case),
        *claims.claimed_wrongly(case),
        *claims.not_recorded(case),
        *claims.left_over(case),
        *store.reservation_lost(case),
        *store.edit_vanished(case),
        *waiting.stale_refusals(case),
        *recalls.kept_out(case),
        *moves.evicted_without_seat(case),
        *moves.evicted_before_group(case),
        *moves.evicted_outside_window(case),
        *moves.seat_given_up(case),
        *moves.seat_outlived(case),
        *surges.removed_before_ready(case),
        *surges.evicted_while_surging(case),
        *surges.surge_outlived(case),
        *maintained.placed_in_maintenance(case),
        *maintained.cordons_lifted(case),
    )
    return Report(
        _counts(case),
        tuple(sorted(violations, key=lambda violation: violation.revision)),
        tuple(warning for forbidden, warning in seats if not forbidden),
        tuple(_notes(history)),
    )


def _counts(case: Case) -> dict[str, int]:
    world, history = case.world, case.world.history
    bound = [pod for pod in world.pods if pod.binding is not None]
    judged = [pod for pod in bound if case.is_judged(pod)]
    exempt = [pod for pod in bound if case.decides(pod) and not case.is_judged(pod)]
    owners = {claim.pod.uid for found in case.claims.values() for claim in found if claim.sure}
    return {
        "writes": len(history.lines),
        "pods bound": len(bound),
        "judged": len(judged),
        "exempt": len(exempt),
        "bound by others": len(bound) - len(judged) - len(exempt),
        "owners": len(owners),
        "reservations": sum(1 for life in world.lives if not life.entry.broken),
        "broken entries": sum(1 for life in world.lives if life.entry.broken),
        "gaps": len(history.gaps),
        "outages": len(history.outages),
    }


def _notes(history: History) -> list[str]:
    notes = [
        f"not seen: {gap.collection}, revisions {gap.since.revision} to {gap.until.revision}"
        for gap in history.gaps
    ]
    if history.manager is None:
        notes.append("no manager.jsonl: lost reservations and vanished edits are not judged")
    return notes
