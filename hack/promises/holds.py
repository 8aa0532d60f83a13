"""Was held capacity given away, and did owners land on their seats?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hack.promises.amounts import total
from hack.promises.case import Case
from hack.promises.history import Moment
from hack.promises.life import Life
from hack.promises.pods import Binding, Pod
from hack.promises.recalls import is_in_the_way
from hack.promises.report import Kind, Violation
from hack.promises.room import fits
from hack.promises.timing import Span


def given_away(case: Case) -> Iterator[Violation]:
    """Yield the bindings that took room of another owner's reservation."""
    for pod in case.world.pods:
        if pod.binding is not None and case.is_judged(pod):
            yield from _taken_by(case, pod, pod.binding)


def _taken_by(case: Case, pod: Pod, binding: Binding) -> Iterator[Violation]:
    span = case.timing.span(binding)
    state = pod.at(binding.moment.revision) or pod.states[-1]
    held = case.held(binding.node, span, pod)
    offered = case.world.allocatable(binding.node, span.since, span.revision)
    if not held or offered is None:
        return
    taken = case.taken(binding.node, span, pod)
    seats = list(_seats_on(case, pod, binding.node, span))
    slot = total(seat.entry.resources for seat in seats)
    for resource, wanted in state.requests.items():
        # On its seat an owner stands before what was written onto the node after it.
        later = _behind(case, held, seats) if 0 < wanted <= slot.get(resource, 0) else set()
        all_held = total(held[ref] for ref in held.keys() - later)
        free = offered.get(resource, 0) - taken.get(resource, 0) - all_held.get(resource, 0)
        if wanted > 0 and all_held.get(resource, 0) > 0 and free < wanted:
            yield Violation(
                kind=Kind.GIVEN_AWAY,
                revision=span.revision,
                at=binding.moment.at,
                node=binding.node,
                pod=pod.name,
                entry=" ".join(ref for ref in held if held[ref].get(resource)),
                sums={
                    "resource": resource,
                    "allocatable": offered.get(resource, 0),
                    "taken": taken.get(resource, 0),
                    "held": all_held[resource],
                    "requested": wanted,
                },
                text="bound into capacity that is held for others",
            )


def _seats_on(case: Case, pod: Pod, node: str, span: Span) -> Iterator[Life]:
    """Yield the entries of a pod's slots on a node: entries that name it or that it claims."""
    yield from (seat for seat in case.seats(pod, span) if node in seat.nodes)
    for life in case.matches(pod, span):
        if life.name in pod.claims and node in life.nodes:
            yield life


def _behind(case: Case, names: Iterable[str], seats: Iterable[Life]) -> set[str]:
    """Return the entries that may rank below the seats: written or started later, or yielding."""
    called = case.world.lives_called
    first = min(called[seat.name][0].written.revision for seat in seats)
    are_firm = all(seat.entry.yields_above is None for seat in seats)
    behind = set()
    for name in names:
        life = called[name][-1]
        is_firm = life.entry.yields_above is None
        if is_firm is not are_firm:
            is_behind = are_firm
        else:
            is_behind = _turn(life) > first or life.entry.starts > 0
        if is_behind:
            behind.add(name)
    return behind


def _turn(life: Life) -> int:
    """Return the revision at which an entry took its turn where it holds."""
    return life.moves[-1][0].revision if life.moves else life.written.revision


def off_seat(case: Case) -> Iterator[tuple[bool, Violation]]:
    """Yield owners that landed off their only seat, and whether its policy forbids that."""
    for pod in case.world.pods:
        if pod.binding is None or not case.is_judged(pod):
            continue
        span = case.timing.span(pod.binding)
        seats = case.seats(pod, span)
        if len(seats) == 1 and pod.binding.node not in seats[0].nodes:
            nodes = sorted(n for n in seats[0].nodes if case.is_placed(seats[0], n, span))
            if nodes:
                require = seats[0].entry.require
                yield from _judge_seat(case, pod, seats[0], nodes[0], forbidden=require)
        yield from _off_offers(case, pod, pod.binding, span)


def _off_offers(
    case: Case, pod: Pod, binding: Binding, span: Span
) -> Iterator[tuple[bool, Violation]]:
    """Judge a pod that landed where nothing that it matches can have had a slot."""
    matching = case.matches(pod, span)
    # What it claims was placed there, though that may never have been written.
    if any(binding.node in life.nodes or life.name in pod.claims for life in matching):
        return
    # On each node it is offered one: which of several cannot be told. It has to wait for a place
    # only while it is offered nothing else.
    on_node = {"": [life.entry.require for life in matching]}
    for life in matching:
        for node in life.nodes:
            on_node.setdefault(node, []).append(life.entry.require)
    offers = list(case.offers(pod, span))
    strict = [offer for offer in offers if all(on_node[offer[1]])]
    for life, node in (strict or offers)[:1]:
        yield from _judge_seat(case, pod, life, node, forbidden=bool(strict))


def _judge_seat(
    case: Case, pod: Pod, seat: Life, node: str, *, forbidden: bool
) -> Iterator[tuple[bool, Violation]]:
    assert pod.binding is not None  # noqa: S101 - for mypy
    moment = pod.binding.moment
    before = Moment(moment.revision - 1, moment.at)
    is_kept_out = not forbidden and is_in_the_way(case, pod, node, before, seat)
    if not (forbidden or is_kept_out) and not fits(case, pod, node, before, seat):
        return
    texts = ("others borrow its seat", "its policy is Require", "its seat had room for it")
    yield (
        forbidden or is_kept_out,
        Violation(
            kind=Kind.KEPT_OUT if is_kept_out else Kind.OFF_SEAT,
            revision=moment.revision,
            at=moment.at,
            node=pod.binding.node,
            pod=pod.name,
            entry=str(seat.ref),
            sums={"seat": node},
            text=texts[0 if is_kept_out else 1 if forbidden else 2],
        ),
    )
