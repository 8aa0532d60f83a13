"""Whether Reserver takes and refuses the policy files that upstream takes and refuses."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from hack.descheduler import policies
from hack.descheduler.clusters import CLASSES, priority_class
from hack.descheduler.oracle import Oracle
from reserver.wire.rebalance.policyform import read


@dataclass
class Files:
    """What was asked, and what there is no agreement on.

    Attributes:
        asked: files.
        refused: of them those that both refuse.
        differences: what only one of the two refuses.
    """

    asked: int = 0
    refused: int = 0
    differences: list[str] = field(default_factory=list)


def compare(oracle: Oracle, draw: random.Random, number: int) -> Files:
    """Ask both about random files, some of them broken."""
    classes = [priority_class(name, value) for name, value in CLASSES.items()]
    found = Files()
    for _ in range(number):
        text = policies.file(draw)
        theirs = oracle.ask(text, classes).error
        ours = read(text.encode(), CLASSES.get).problems
        found.asked += 1
        found.refused += bool(theirs and ours)
        if bool(theirs) != bool(ours):
            said = "; ".join(map(str, ours)) or "accepted"
            found.differences.append(f"upstream: {theirs or 'accepted'}\nours: {said}\n{text}")
    return found
