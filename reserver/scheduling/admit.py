"""Whether reservations that are yet to be written would be backed now, and where.

Unlike a pod's fit, which only compares what is held for others, this compares all that is asked
for: an owner is promised its whole slot.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from reserver.cluster.pod import Pod
from reserver.cluster.quantity import show
from reserver.cluster.snapshot import Snapshot
from reserver.reservations.placement import Part
from reserver.reservations.reservation import Reservation
from reserver.reservations.terms import Phase
from reserver.scheduling.placement import place, slot_pod
from reserver.scheduling.state import State
from reserver.scheduling.trial import Seat, trial, without


class Lack(NamedTuple):
    """Why a reservation would not be backed.

    Attributes:
        at: which one it is.
        message: what is missing.
        never: it would not fit if the node were empty but for those before it, or without a node of
            its own, if all were.
    """

    at: int
    message: str
    never: bool


class Verdict(NamedTuple):
    """The verdict on a set of reservations.

    Attributes:
        lacks: those that would not be backed; none if all would be.
        reservations: all of them, in their order; those that name no node as they are placed.
    """

    lacks: tuple[Lack, ...]
    reservations: tuple[Reservation, ...]


def judge_set(
    reservations: Sequence[Reservation],
    state: State,
    now: float,
    instead: Reservation | None = None,
) -> Generator[None, None, Verdict]:
    """Find which of these would be backed together at `now`, and where.

    Other work may come between the steps: room is judged by the amounts of the beginning. Those
    that are about their neighbours come last, in one step: they are tried among the pods there.

    Args:
        reservations: what is to be written.
        state: the cluster.
        now: unix seconds.
        instead: the reservation that goes when these come.
    """
    yield from state.ledger.advancing(now)
    with _without(instead, state):
        tried = state.fork()
    by_index: dict[int, tuple[Reservation, Lack | None]] = {}
    taken: dict[str, dict[str, int]] = {}

    def judge(index: int, state: State, seat: Seat) -> None:
        one, lack = by_index[index] = _judge(index, reservations[index], state, taken)
        if lack is None:
            _seat(one, seat, taken)

    neighbours = []
    for index in _in_turn(reservations):
        if reservations[index].placement.constraints.are_about_neighbours:
            neighbours.append(index)
        else:
            judge(index, tried, partial(_take, tried.snapshot))
            yield
    if neighbours:
        with _without(instead, state), trial(state.snapshot, "set") as seat:
            for one, lack in by_index.values():
                if lack is None:
                    _seat(one, seat, {})
            for index in neighbours:
                judge(index, state, seat)
    judged = [by_index[index] for index in range(len(reservations))]
    lacks = tuple(lack for _, lack in judged if lack is not None)
    return Verdict(lacks, tuple(one for one, _ in judged))


def _in_turn(reservations: Sequence[Reservation]) -> list[int]:
    """Return the order to judge in: reservations that name their node come first."""
    return sorted(range(len(reservations)), key=lambda index: not reservations[index].node)


def _without(instead: Reservation | None, state: State) -> AbstractContextManager[None]:
    return without(instead.ref, state) if instead else nullcontext()


def _take(snapshot: Snapshot, pod: Pod, part: Part) -> None:
    """Count a pod like this for each slot of a part, as nobody's neighbour."""
    snapshot.take(part.node, {name: n * part.slots for name, n in pod.requests.items()})


def place_now(reservation: Reservation, state: State, now: float) -> tuple[Reservation, str]:
    """Return a reservation as it is placed at `now`, if it holds then; else why it has no place.

    One that names its node, or is to start later, is what it was.
    """
    state.ledger.advance(now, most=None)
    if reservation.node or reservation.phase(0, now) is not Phase.ACTIVE:
        return reservation, ""
    outcome = place(reservation, reservation.slots, state)
    return replace(reservation, placed=outcome.parts), outcome.why


def _judge(
    index: int, reservation: Reservation, state: State, taken: Mapping[str, Mapping[str, int]]
) -> tuple[Reservation, Lack | None]:
    if reservation.node:
        return reservation, _lack(index, reservation, state, taken.get(reservation.node, {}))
    outcome = place(reservation, reservation.slots, state)
    if not outcome.parts:
        return reservation, Lack(index, outcome.why, outcome.never)
    return replace(reservation, placed=outcome.parts), None


def _seat(reservation: Reservation, seat: Seat, taken: dict[str, dict[str, int]]) -> None:
    """Count a reservation against those after it."""
    pod = slot_pod(reservation)
    for part in reservation.parts:
        so_far = taken.setdefault(part.node, {})
        for name, amount in reservation.resources.items():
            so_far[name] = so_far.get(name, 0) + amount * part.slots
        if pod.constraints.are_about_neighbours:  # Then it matters how many there are.
            for _ in range(part.slots):
                seat(pod, part._replace(slots=1))
        else:
            seat(pod, part)


def _lack(
    index: int, reservation: Reservation, state: State, taken: Mapping[str, int]
) -> Lack | None:
    snapshot, node = state.snapshot, reservation.node
    row = snapshot.row(node)
    if row is None or not snapshot.exists[row]:
        return Lack(index, f"node {node!r} does not exist", never=True)
    if snapshot.in_doubt[row]:
        why = f"what is free on {node} is unknown; see reserver's log"
        return Lack(index, why, never=False)
    lacking, impossible = [], []
    for name, amount in sorted(reservation.resources.items()):
        wanted = amount * reservation.slots
        offered, requested, held = snapshot.amounts(node, name)
        free = offered - requested - held
        if wanted > free:
            lacking.append(_of(name, max(free, 0), wanted))
        if wanted + taken.get(name, 0) > offered:
            impossible.append(_of(name, offered, wanted + taken.get(name, 0)))
    if impossible:
        return Lack(index, f"{node} offers too little {', '.join(impossible)}", never=True)
    if lacking:
        return Lack(index, f"{node} has too little {', '.join(lacking)} free", never=False)
    return None


def _of(resource: str, there: int, wanted: int) -> str:
    return f"{resource} ({show(resource, there)} of {show(resource, wanted)})"
