"""Whether Reserver takes and refuses the policy files that upstream takes and refuses."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from hack.descheduler import policies
from hack.descheduler.clusters import CLASSES, priority_class
from hack.descheduler.oracle import Oracle
from reserver.rebalance.policy_reader import read


@dataclass
class Files:
    """The compared policy files, and their differences.

    Attributes:
        asked: compared files.
        refused: files that both refuse.
        quirks: files that upstream takes and Reserver refuses for a quirk of YAML or JSON.
        differences: files that only one of the two refuses for any other reason.
    """

    asked: int = 0
    refused: int = 0
    quirks: int = 0
    differences: list[str] = field(default_factory=list)


def compare(oracle: Oracle, draw: random.Random, number: int) -> Files:
    """Ask both about random files, some of them broken."""
    classes = [priority_class(name, value) for name, value in CLASSES.items()]
    found = Files()
    for _ in range(number):
        text = policies.file(draw)
        found.asked += 1
        theirs = oracle.ask(text, classes).error
        ours = read(text.encode(), CLASSES.get).problems
        found.refused += bool(theirs and ours)
        if policies.has_quirk(text):
            found.quirks += not theirs and bool(ours)
            if not ours:
                found.differences.append(f"ours: a quirk is accepted\n{text}")
        elif bool(theirs) != bool(ours):
            said = "; ".join(map(str, ours)) or "accepted"
            found.differences.append(f"upstream: {theirs or 'accepted'}\nours: {said}\n{text}")
    return found
