"""Whether a pod certainly would have fitted: everything that may have been in its way counts."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from hack.promises.amounts import Amounts, total
from hack.promises.case import Case
from hack.promises.history import Moment
from hack.promises.life import Life
from hack.promises.pods import Pod


def fits(
    case: Case,
    pod: Pod,
    node: str,
    moment: Moment,
    seat: Life | None = None,
    gone: Collection[Pod] = (),
) -> bool:
    """Return whether a pod fits on a node with all pods and holds that may be there.

    Args:
        case: the history.
        pod: the pod.
        node: the node.
        moment: the moment.
        seat: an entry with a slot for the pod there that does not name the pod.
        gone: pods that do not count.
    """
    world, revision = case.world, moment.revision
    state = pod.at(revision)
    offered = world.allocatable(node, moment.at, revision)
    if state is None or offered is None:
        return False
    used = total(
        [
            *_others(case, {each.uid for each in (pod, *gone)}, node, revision),
            *_holds(case, pod, node, moment, seat),
        ]
    )
    return all(
        offered.get(resource, 0) - used.get(resource, 0) >= wanted
        for resource, wanted in state.requests.items()
        if wanted
    )


def _others(case: Case, but: Collection[str], node: str, revision: int) -> Iterator[Amounts]:
    """Yield the requests of other pods, with pods that are nominated for the node."""
    for other in case.world.pods_near.get(node, ()):
        now = other.at(revision)
        if now is None or now.done or other.uid in but:
            continue
        if node in {now.node, now.nominated}:
            yield now.requests


def _holds(case: Case, pod: Pod, node: str, moment: Moment, seat: Life | None) -> Iterator[Amounts]:
    """Yield what entries may hold for others; also one that was written a moment ago."""
    for life in case.world.lives_on.get(node, ()):
        begins = life.entry.starts - case.rules.grace_s
        if life.stands(moment.revision) and begins <= moment.at < ended(case, life, moment.at):
            slots = life.most_on(node) - (life.names(pod) or life == seat)
            yield {name: amount * slots for name, amount in life.entry.resources.items()}


def ended(case: Case, life: Life, at: float) -> float:
    """Return when an entry certainly stopped holding, unix seconds; infinite if it did not.

    Args:
        case: what happened.
        life: the entry.
        at: slots that may have come back by then do not count as taken; unix seconds.
    """
    ends = [life.gone.at if life.gone else float("inf"), case.must_end(life)]
    sure = (claim for claim in case.claims.get(life, ()) if claim.sure)
    claims = sorted(c.moment.at for c in sure if c.back is None or c.back.at > at)
    if len(claims) >= life.entry.most_slots:
        ends.append(claims[life.entry.most_slots - 1])
    return min(ends)
