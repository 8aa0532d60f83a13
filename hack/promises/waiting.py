"""Do refusals end with the holds that they name?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from hack.promises.case import Case
from hack.promises.history import Moment
from hack.promises.life import ENDLESS
from hack.promises.pods import Pod
from hack.promises.report import Kind, Violation
from hack.promises.room import ended, fits

_NAMED = re.compile(r"held by reservation ([^\s,]+)")


@dataclass(frozen=True)
class Wait:
    """A time in which a reservation kept a pod from being placed, by the pod's condition.

    Attributes:
        pod: the pod.
        ref: the reservation's ref, as text.
        said: the moments at which kube-scheduler changed the condition's message.
        end: unix seconds at which the message no longer named the reservation.
    """

    pod: Pod
    ref: str
    said: tuple[Moment, ...]
    end: float


def stale_refusals(case: Case) -> Iterator[Violation]:
    """Yield pods that were refused, or kept waiting, by a hold that was over."""
    for pod in case.world.pods:
        if pod.scheduler not in case.rules.schedulers:
            continue
        for wait in _waits(pod, case.world.history.end):
            yield from _said_too_late(case, wait)
            yield from _waited_too_long(case, wait)


def _waits(pod: Pod, end: float) -> Iterator[Wait]:
    said: dict[str, list[Moment]] = {}
    before = ""
    for state in pod.states:
        named = set() if state.node else _named(state.refusal)
        for ref in said.keys() - named:
            yield Wait(pod, ref, tuple(said.pop(ref)), state.moment.at)
        for ref in named:
            moments = said.setdefault(ref, [])
            if state.refusal != before:
                moments.append(state.moment)
        before = state.refusal
    for ref, moments in said.items():
        yield Wait(pod, ref, tuple(moments), pod.gone.at if pod.gone else end)


def _named(refusal: str) -> set[str]:
    return {ref.rstrip(".") for ref in _NAMED.findall(refusal)}


def _said_too_late(case: Case, wait: Wait) -> Iterator[Violation]:
    """Yield the refusals that were decided when the hold was over."""
    for moment in wait.said:
        lives = [
            life
            for life in case.world.lives_at.get(wait.ref, ())
            if life.written.revision <= moment.revision and life.entry.starts <= moment.at
        ]
        over = max((ended(case, life, moment.at) for life in lives), default=float("inf"))
        # The refusal took its time to be written, as the end of the hold did to be seen.
        if over < case.timing.earliest(moment.at) - case.rules.grace_s:
            late = {"seconds": round(moment.at - over, 1)}
            text = "refused because of a reservation that was over"
            yield _stale(wait, moment, lives[-1].node, late, text)


def _waited_too_long(case: Case, wait: Wait) -> Iterator[Violation]:
    """Yield the wait if the hold was over and there was room for longer than the patience."""
    known = case.world.lives_at.get(wait.ref, ())
    lives = [x for x in known if max(x.written.at, x.entry.starts) <= wait.end]
    if not lives or not wait.said or not wait.pod.only_capacity:
        return
    away = (*case.world.history.outages, *case.rules.pauses)
    back = [each.until for each in away if each.since <= wait.end]
    start = max([wait.said[0].at, *back, *(ended(case, life, wait.end) for life in lives)])
    node = lives[-1].node
    if wait.end - start > case.rules.patience_s and _fits(case, wait.pod, node, start, wait.end):
        waited = {"seconds": round(wait.end - start, 1)}
        text = "kept waiting though the hold was over and there was room"
        yield _stale(wait, wait.said[-1], node, waited, text)


def _fits(case: Case, pod: Pod, node: str, start: float, end: float) -> bool:
    """Return whether a pod certainly would have fitted on a node at every moment of a time."""
    world, history = case.world, case.world.history
    first, last = history.revision_at(start), history.revision_at(end)
    if any(life.stands(first) for life in world.owned.get(pod.uid, ())):
        return False  # It waits for a seat of its own.
    before = pod.states[0].moment.at
    rests = [repr(state.rest) for state in world.node_states(node, before, last)]
    if len(set(rests)) != 1:
        return False  # kube-scheduler may have refused the node for another reason by then.
    writes = (m for m in _writes_about(case, node) if first < m.revision <= last)
    moments = [Moment(first, start), *(Moment(m.revision, max(start, m.at)) for m in writes)]
    begin = {life.entry.starts for life in world.lives_on.get(node, ())}
    moments += [Moment(history.revision_at(at), at) for at in begin if start < at <= end]
    return all(fits(case, pod, node, moment) for moment in moments)


def _writes_about(case: Case, node: str) -> Iterator[Moment]:
    """Yield the moments at which the free room of a node may have changed."""
    for state in case.world.node_states(node, 0.0, ENDLESS):
        yield state.moment
    for pod in case.world.pods_near.get(node, ()):
        yield from (state.moment for state in pod.states)
    for life in case.world.lives_on.get(node, ()):
        yield life.written


def _stale(wait: Wait, moment: Moment, node: str, sums: dict[str, float], text: str) -> Violation:
    return Violation(
        kind=Kind.STALE_REFUSAL,
        revision=moment.revision,
        at=moment.at,
        node=node,
        pod=wait.pod.name,
        entry=wait.ref,
        sums=sums,
        text=text,
    )
