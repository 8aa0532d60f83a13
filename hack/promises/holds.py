"""Was held capacity given away, and did owners land on their seats?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hack.promises.amounts import total
from hack.promises.case import Case
from hack.promises.history import Moment
from hack.promises.report import Kind, Violation
from hack.promises.room import fits
from hack.promises.world import Binding, Life, Pod


def given_away(case: Case) -> Iterator[Violation]:
    """Yield the bindings that took what a reservation of others held."""
    for pod in case.world.pods:
        if pod.binding is not None and case.is_judged(pod):
            yield from _taken_by(case, pod, pod.binding)


def _taken_by(case: Case, pod: Pod, binding: Binding) -> Iterator[Violation]:
    span = case.span(binding)
    state = pod.at(binding.moment.revision) or pod.states[-1]
    held = case.held(binding.node, span, pod)
    offered = case.world.allocatable(binding.node, span.since, span.revision)
    if not held or offered is None:
        return
    taken = case.taken(binding.node, span, pod)
    seats = [seat for seat in case.seats(pod, span) if binding.node in seat.nodes]
    slot = total(seat.entry.resources for seat in seats)
    for resource, wanted in state.requests.items():
        # On its seat an owner stands before what was written onto the node after it.
        later = _later(case, held, seats) if 0 < wanted <= slot.get(resource, 0) else set()
        all_held = total(held[place] for place in held.keys() - later)
        free = offered.get(resource, 0) - taken.get(resource, 0) - all_held.get(resource, 0)
        if wanted > 0 and all_held.get(resource, 0) > 0 and free < wanted:
            yield Violation(
                kind=Kind.GIVEN_AWAY,
                revision=span.revision,
                at=binding.moment.at,
                node=binding.node,
                pod=pod.name,
                entry=" ".join(place for place in held if held[place].get(resource)),
                sums={
                    "resource": resource,
                    "allocatable": offered.get(resource, 0),
                    "taken": taken.get(resource, 0),
                    "held": all_held[resource],
                    "requested": wanted,
                },
                text="bound into capacity that is held for others",
            )


def _later(case: Case, places: Iterable[str], seats: Iterable[Life]) -> set[str]:
    """Return the places that may have been written, or may have started to hold, after seats."""
    lives_at = case.world.lives_at
    first = min(lives_at[str(seat.place)][0].written.revision for seat in seats)
    return {
        place
        for place in places
        if _turn(lives_at[place][-1]) > first or lives_at[place][-1].entry.starts > 0
    }


def _turn(life: Life) -> int:
    """Return the revision at which an entry took its turn where it holds."""
    return life.moves[-1][0].revision if life.moves else life.written.revision


def off_seat(case: Case) -> Iterator[tuple[bool, Violation]]:
    """Yield owners that landed beside their only seat, and whether its policy forbids that."""
    for pod in case.world.pods:
        if pod.binding is None or not case.is_judged(pod):
            continue
        span = case.span(pod.binding)
        seats = case.seats(pod, span)
        if len(seats) != 1 or pod.binding.node in seats[0].nodes:
            continue
        nodes = sorted(n for n in seats[0].nodes if case.is_placed(seats[0], n, span))
        if nodes:
            yield from _judge_seat(case, pod, pod.binding, seats[0], nodes[0])


def _judge_seat(
    case: Case, pod: Pod, binding: Binding, seat: Life, node: str
) -> Iterator[tuple[bool, Violation]]:
    forbidden = seat.entry.require
    before = Moment(binding.moment.revision - 1, binding.moment.at)
    if not forbidden and not fits(case, pod, node, before):
        return
    yield (
        forbidden,
        Violation(
            kind=Kind.OFF_SEAT,
            revision=binding.moment.revision,
            at=binding.moment.at,
            node=binding.node,
            pod=pod.name,
            entry=str(seat.place),
            sums={"seat": node},
            text="its policy is Require" if forbidden else "its seat had room for it",
        ),
    )
