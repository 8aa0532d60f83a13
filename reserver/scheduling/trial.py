"""What would be if some pods were on nodes: counted there for as long as a decision takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import count

from reserver.cluster.pod import Pod
from reserver.cluster.snapshot import Snapshot
from reserver.reservations.placement import Part

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
        snapshot.place(replace(pod, uid=uid, requests=requests), part.node)

    try:
        yield seat
    finally:
        for uid in seated:
            snapshot.displace(uid)


def without(pod: Pod, holding: Mapping[str, Mapping[str, int]], seat: Seat) -> None:
    """Count what is held by node as free, by a pod that takes less than nothing."""
    for node, amounts in holding.items():
        less = {resource: -amount for resource, amount in amounts.items()}
        seat(replace(pod, requests=less, labels={}), Part(node, 1))
