"""Carries a plan out, move by move, by rules of its own: nothing of Reserver's judges here."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from hack.optimum.instances import Instance, Placing


class Move(NamedTuple):
    """A pod leaves one node for another; a pending one leaves none."""

    pod: str
    source: str
    target: str


def problems(found: Instance, moves: Iterable[Move], emptied: Iterable[str]) -> Iterator[str]:
    """Yield broken constraints: at its turn each pod has to fit, and has to be evictable.

    A pod still counts on its old node against the room of others until its turn; where it goes,
    neighbours are judged without it.
    """
    at = dict(found.pods)
    place = Placing(found, random.Random(0))  # noqa: S311 - draws nothing
    evicted: Counter[str] = Counter()
    for pod, source, target in moves:
        app, node = found.apps[at[pod][0]], at[pod][1]
        if node != source:
            yield f"{pod} is on {node}, not on {source}"
        if source:
            evicted[app.name] += 1
            if app.bare:
                yield f"{pod} may not be moved"
            if 0 <= app.allowed < evicted[app.name]:
                yield f"{pod}: the budget of {app.name} is spent"
        place.add(app.name, node, -1)
        yield from (f"{pod} to {target}: {why}" for why in place.refusals(app, target))
        place.add(app.name, target)
        at[pod] = (app.name, target)
    for name in emptied:
        left = [pod for pod, (_, node) in at.items() if node == name]
        if left:
            yield f"{name} is not empty: {left[0]} is there"
