"""Which nodes may be held whole: nobody but owners has anything of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from reserver.cluster.categorical import Bools
from reserver.cluster.pod import NO_CONTROLLER, Pod
from reserver.cluster.snapshot import Snapshot
from reserver.reservations.owner import NOBODY, OwnerRule
from reserver.scheduling.explain import reasons_against
from reserver.scheduling.reasons import HELD, OCCUPIED
from reserver.scheduling.state import State

MOST_ASKED = 4_000
"""So many pods are asked in one step who controls them; others count as strangers."""


def vacant(rules: Sequence[OwnerRule], snapshot: Snapshot) -> Bools:
    """Return, for each row, whether the whole node may be held for the owners that match rules.

    As long as something there cannot be read, nobody knows.
    """
    found: Bools = snapshot.exists & ~snapshot.guarded & ~snapshot.has_unreadable
    found &= ~strangers(rules, snapshot)
    return found & ~snapshot.marked(snapshot.rows(tuple(snapshot.spoken_for)))


def strangers(rules: Sequence[OwnerRule], snapshot: Snapshot) -> Bools:
    """Return, for each row, whether a guest is there that no rule matches."""
    residents = snapshot.residents
    guests = residents.guests
    alike = np.zeros_like(guests)
    for rule in rules:
        alike |= residents.matching((rule.namespace,), rule.selector)
    found = snapshot.marked(residents.rows[guests & ~alike])
    if all(
        (rule.pod, rule.controller, rule.replaces) == ("", NO_CONTROLLER, NOBODY) for rule in rules
    ):
        return found
    rest = np.flatnonzero(guests & alike)
    rest = rest[~found[residents.rows[rest]]]
    asked, unasked = rest[:MOST_ASKED], rest[MOST_ASKED:]
    pods = (snapshot.counted(residents.uids[slot]) for slot in asked)
    strange = [
        slot
        for slot, pod in zip(asked, pods, strict=True)
        if pod is None or not any(rule.matches(pod.pod) for rule in rules)
    ]
    return found | snapshot.marked(residents.rows[[*strange, *unasked]])


def refusals(rules: Sequence[OwnerRule], pod: Pod, state: State) -> dict[str, Bools]:
    """Return each reason why a node is not held whole for owners, with the rows of such nodes.

    Args:
        rules: of the owners.
        pod: what such a slot is judged as.
    """
    snapshot = state.snapshot
    found = reasons_against(replace(pod, requests={}), state, ())
    found[HELD.message] = snapshot.exists & snapshot.guarded
    return found | {OCCUPIED.message: snapshot.exists & strangers(rules, snapshot)}
