"""When entries are released because no pod has used them for so long."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from hack.promises.life import Life
from hack.promises.pods import Pod
from hack.promises.slots import Claim
from hack.promises.timing import Rules
from hack.promises.world import World


class Release(NamedTuple):
    """When an entry is released as idle, unix seconds; infinite for never.

    Attributes:
        earliest: not before this.
        latest: by then certainly.
    """

    earliest: float
    latest: float


NEVER = Release(math.inf, math.inf)


def releases(
    world: World, claims: Mapping[Life, tuple[Claim, ...]], rules: Rules
) -> Mapping[Life, Release]:
    """Return when each entry that may be released as idle is."""
    return {
        life: Release(
            _earliest(life, world.lives_called[life.name], claims.get(life, ()), rules),
            _latest(life, claims.get(life, ()), rules),
        )
        for life in world.lives
        if life.entry.release_if_idle
    }


def _earliest(life: Life, copies: Iterable[Life], claims: Iterable[Claim], rules: Rules) -> float:
    """Return when it may have been released: only a use that is sure keeps it."""
    wait = life.entry.release_if_idle - rules.grace_s
    since = max(min(each.written.at for each in copies), life.entry.starts)
    for claim in sorted((each for each in claims if each.sure), key=lambda each: each.moment):
        if claim.moment.at > since + wait:
            break
        since = max(since, _end(claim.pod))
    return since + wait


def _latest(life: Life, claims: Iterable[Claim], rules: Rules) -> float:
    """Return when it certainly was released: any use that may have been keeps it.

    So does a place that came late, and a Reserver that ended before it could record the moment.
    """
    uses = (claim.pod.gone_by.at if claim.pod.gone_by else _end(claim.pod) for claim in claims)
    places = (moment.at for moment, _ in life.moves)
    since = max(life.written.at, life.entry.starts, *uses, *places)
    restarts = (end + rules.past_s for end in rules.ends if end <= since + rules.recorded_s)
    return max([since, *restarts]) + life.entry.release_if_idle + rules.grace_s


def _end(pod: Pod) -> float:
    """Return when a pod ended, at the earliest."""
    return min((each.at for each in (pod.gone, pod.done) if each), default=math.inf)
