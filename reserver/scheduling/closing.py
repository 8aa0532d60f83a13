"""Why the node of a seat does not let the pod in that it is for, and whether that may pass."""

from __future__ import annotations

from typing import NamedTuple

from reserver.cluster.constraints import Taint
from reserver.cluster.pod import Pod
from reserver.cluster.snapshot import Snapshot
from reserver.cluster.topology import CORDON, passes
from reserver.scheduling.fit import constraint_refusals
from reserver.scheduling.node_rules import untolerated
from reserver.scheduling.reasons import TAINTED, UNSCHEDULABLE


class Closed(NamedTuple):
    """Why a node does not let a pod in, whatever room it has.

    Attributes:
        why: for people; empty if it does.
        passes: it may pass by itself: the node is cordoned, or not ready.
    """

    why: str = ""
    passes: bool = False


OPEN = Closed()


def closed(pod: Pod, node: str, snapshot: Snapshot) -> Closed:
    """Return why a node does not let a pod in; nothing where a cordon was lifted a moment ago."""
    row = snapshot.row(node)
    if row is None or not snapshot.exists[row]:
        return Closed(f"there is no node {node}")
    reasons = [reason for reason, rows in constraint_refusals(pod, snapshot) if rows[row]]
    if not reasons or snapshot.topology.is_reopening(row):
        return OPEN
    others = [each.message for each in reasons if each not in {UNSCHEDULABLE, TAINTED}]
    taints = untolerated(pod, snapshot, row)
    said = "; ".join([*map(_shown, taints), *dict.fromkeys(others)])
    return Closed(
        f"{node} does not let the pod in: {said}", not others and all(map(passes, taints))
    )


def _shown(taint: Taint) -> str:
    if taint == CORDON:
        return "it is cordoned"
    return f"it has the taint {taint.key}:{taint.effect}"
