"""Trials: pods are counted on nodes for as long as a decision takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count

from reserver.cluster.pod import Pod
from reserver.cluster.snapshot import Snapshot
from reserver.reservations.placement import Part
from reserver.reservations.reservation import Ref
from reserver.scheduling.state import State

Seat = Callable[[Pod, Part], None]
"""Counts as many pods like this as there are slots of a part."""


@contextmanager
def trial(snapshot: Snapshot, name: str) -> Iterator[Seat]:
    """Let pods be counted on nodes until the block ends, as if they were bound there.

    Nobody else sees it: there may be no ``await`` in the block.

    Args:
        snapshot: where they are counted; as it was when the block ends.
        name: another one for each of several trials, one within the other.
    """
    seated: list[str] = []
    numbers = count()

    def seat(pod: Pod, part: Part) -> None:
        uid = f"{name}-{next(numbers)}"
        seated.append(uid)
        requests = {resource: amount * part.slots for resource, amount in pod.requests.items()}
        snapshot.count(replace(pod, uid=uid, requests=requests), part.node)

    try:
        yield seat
    finally:
        for uid in seated:
            snapshot.uncount(uid)


@contextmanager
def without(ref: Ref, state: State) -> Iterator[None]:
    """Count what a reservation holds as free until the block ends; as `trial` does."""
    snapshot, ledger = state.snapshot, state.ledger
    holding = ledger.holding(ref)
    for node, amounts in holding.items():
        left = {name: n - amounts.get(name, 0) for name, n in ledger.held_on(node).items()}
        snapshot.set_held(node, {name: n for name, n in left.items() if n})
    try:
        yield
    finally:
        for node in holding:
            snapshot.set_held(node, dict(ledger.held_on(node)))
