"""The claims of slots, and the times at which slots were free again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hack.promises.history import Moment
from hack.promises.life import Life
from hack.promises.pods import Pod
from hack.promises.timing import Span, Timing
from hack.promises.world import World


@dataclass(frozen=True)
class Claim:
    """A slot that a pod took.

    Attributes:
        pod: which.
        moment: when.
        sure: nothing else can be meant; otherwise Reserver may have seen it so or so.
        back: when the slot may have come back at the earliest; None for never.
        back_by: when it certainly had.
    """

    pod: Pod
    moment: Moment
    sure: bool
    back: Moment | None = None
    back_by: Moment | None = None

    def is_after(self, revision: int) -> bool:
        """Return whether the pod's binding certainly was written after a revision."""
        binding = self.pod.binding
        if binding is None:
            return False
        return (binding.after if binding.late else binding.moment).revision > revision


def claims(world: World, timing: Timing) -> Mapping[Life, tuple[Claim, ...]]:
    """Return who took slots of each entry, or may have."""
    found: dict[Life, list[Claim]] = {}
    for pod in world.pods:
        for life, moment, sure in _claimed(pod, world, timing):
            ends = (pod.gone, pod.gone_by) if life.entry.reusable else (None, None)
            back, back_by = (_first(end, pod.done if life.entry.reusable else None) for end in ends)
            found.setdefault(life, []).append(Claim(pod, moment, sure, back, back_by))
    return {life: tuple(claims) for life, claims in found.items()}


def _first(*moments: Moment | None) -> Moment | None:
    return min((moment for moment in moments if moment), default=None)


def _claimed(pod: Pod, world: World, timing: Timing) -> Iterator[tuple[Life, Moment, bool]]:
    """Yield the entries that a pod claimed, each with its time and certainty."""
    lives = world.owned.get(pod.uid, ())
    if pod.binding is None:
        if pod.states[0].node:  # Bound before the recording began.
            yield from ((x, pod.states[0].moment, False) for x in lives if x.name in pod.claims)
        return
    span, moment = timing.span(pod.binding), pod.binding.moment
    claimed: list[Life] = []
    for life in lives:
        # It ends those that name it wherever it lands; of the others it takes what it says, there.
        if not (life.names(pod) or (life.name in pod.claims and _is_there(life, pod, world, span))):
            continue
        if life.entry.series and life.entry.starts > span.until:
            continue  # It came for the occurrence before.
        stood = life.written.at <= span.until and not _went_before(life, span)
        again = any((c.ref, c.entry) == (life.ref, life.entry) for c in claimed)
        if again and (pod.gone is None or pod.gone.at >= life.written.at):
            # The same reservation, written again while its claim stands on the pod.
            yield life, max(moment, life.written), False
        elif stood:
            claimed.append(life)
            yield life, moment, _is_sure(life, pod, world, span)


def _went_before(life: Life, span: Span) -> bool:
    """Return whether an entry was gone before a pod was bound.

    The watch of pods may come seconds after the watch of ConfigMaps: what went with a later
    revision stood.
    """
    gone = life.gone
    return gone is not None and gone.revision < span.revision and gone.at < span.since


def _is_there(life: Life, pod: Pod, world: World, span: Span) -> bool:
    """Return whether an entry may have had a slot where a pod was bound."""
    assert pod.binding is not None  # noqa: S101 - for mypy
    # Where its node went it may have been moved, which may never have been written.
    return life.may_be_on(pod.binding.node, span.since, span.revision) or not (
        life.entry.node or all(world.stood(node, life.written.at) for node in life.nodes)
    )


def _is_sure(life: Life, pod: Pod, world: World, span: Span) -> bool:
    """Return whether a pod says that it claimed an entry, and can have meant no other."""
    if life.name not in pod.claims or not life.is_of(pod):
        return False
    assert pod.binding is not None  # noqa: S101 - for mypy
    if not life.names(pod) and pod.binding.node not in life.nodes:
        return False  # It was without a place just before; who says that it was here may forge.
    if life.entry.series and life.entry.starts > span.since:
        return False
    lives = world.lives_called[life.name]
    return [x for x in lives if x.touches(span.since, span.revision)] == [life]
