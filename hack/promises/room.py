"""Whether a pod certainly would have fitted: everything that may have been in its way counts."""

from __future__ import annotations

from collections.abc import Iterator

from hack.promises.amounts import Amounts, total
from hack.promises.case import Case
from hack.promises.history import Moment
from hack.promises.world import Life, Pod


def fits(case: Case, pod: Pod, node: str, moment: Moment) -> bool:
    """Return whether a pod fits on a node beside all that may be there or may be held."""
    world, revision = case.world, moment.revision
    state = pod.at(revision)
    offered = world.allocatable(node, moment.at, revision)
    if state is None or offered is None:
        return False
    used = total([*_others(case, pod, node, revision), *_holds(case, pod, node, moment)])
    return all(
        offered.get(resource, 0) - used.get(resource, 0) >= wanted
        for resource, wanted in state.requests.items()
        if wanted
    )


def _others(case: Case, pod: Pod, node: str, revision: int) -> Iterator[Amounts]:
    """Yield what other pods take, those that are only nominated for the node among them."""
    for other in case.world.pods_near.get(node, ()):
        now = other.at(revision)
        if now is None or now.done or other.uid == pod.uid:
            continue
        if node in {now.node, now.nominated}:
            yield now.requests


def _holds(case: Case, pod: Pod, node: str, moment: Moment) -> Iterator[Amounts]:
    """Yield what entries may hold for others; also one that was written a moment ago."""
    for life in case.world.lives_on.get(node, ()):
        if life.stands(moment.revision) and ended(case, life) > moment.at:
            slots = life.most_on(node) - (pod.name in life.entry.owners)
            yield {name: amount * slots for name, amount in life.entry.resources.items()}


def ended(case: Case, life: Life) -> float:
    """Return when an entry certainly stopped holding, unix seconds; infinite if it did not."""
    ends = [life.gone.at if life.gone else float("inf")]
    if life.expires is not None:
        ends.append(life.expires)
    claims = sorted(c.moment.at for c in case.claims.get(life, ()) if c.sure)
    if len(claims) >= life.entry.slots:
        ends.append(claims[life.entry.slots - 1])
    return min(ends)
