"""Why a node that backs a reservation takes no pods now."""

from __future__ import annotations

from reserver.cluster.constraints import Taint
from reserver.cluster.topology import CORDON, REMOVING

NODE_CORDONED, NODE_LEAVING, NODE_TAINTED = "NodeCordoned", "NodeLeaving", "NodeTainted"
"""The reasons of a reservation that is backed by a node which takes no pods now."""


def out_of_reach(node: str, taint: Taint) -> tuple[str, str]:
    """Return why a node takes no pods now, in one word and as a message."""
    then = "or release it to reserve elsewhere"
    if taint == CORDON:
        waits = "owners that do not tolerate that wait until it is uncordoned"
        return NODE_CORDONED, f"{node} is cordoned: {waits}, {then}"
    named = f"it has the taint {taint.key}:{taint.effect}"
    if taint.key in REMOVING:
        return NODE_LEAVING, f"{node} is being removed by an autoscaler ({named}), {then}"
    waits = "owners that do not tolerate it wait until it is gone"
    return NODE_TAINTED, f"{node} sends pods away ({named}): {waits}, {then}"
