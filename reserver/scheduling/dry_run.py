"""Decides whether new reservations would be backed now, and their places.

Unlike a pod's fit, which compares only held resources, this compares all requested amounts: an
owner is promised its whole slot.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from reserver.cluster.node import NODES
from reserver.cluster.pod import Pod
from reserver.cluster.quantity import show
from reserver.cluster.snapshot import Snapshot
from reserver.reservations.enums import Phase
from reserver.reservations.placement import Part
from reserver.reservations.reservation import Reservation
from reserver.scheduling.placement import Aside, placing, slot_pod
from reserver.scheduling.request_arrays import ByNode
from reserver.scheduling.slot_nodes import vacant
from reserver.scheduling.state import State
from reserver.scheduling.what_if import Seat, trial, without

_TRIES = 3
_CHANGES = "others have taken the room during the search; try again"


class Lack(NamedTuple):
    """The reason for which a reservation would not be backed.

    Attributes:
        at: the index of the reservation.
        message: the reason in words.
        never: it would not even fit next to the reservations before it if its node were empty or,
            without a named node, if all nodes were.
    """

    at: int
    message: str
    never: bool


class DryRunVerdict(NamedTuple):
    """The verdict on a set of reservations.

    Attributes:
        lacks: the reservations that would not be backed; empty if all would be.
        reservations: all reservations in their order, with their chosen places.
    """

    lacks: tuple[Lack, ...]
    reservations: tuple[Reservation, ...]


def judge_set(
    reservations: Sequence[Reservation],
    state: State,
    clock: Callable[[], float],
    instead: Reservation | None = None,
) -> Generator[None, None, DryRunVerdict]:
    """Judge whether new reservations would all be backed together, and find their places.

    Other work may come between the steps. The room is checked again in the last step, next to all
    holds at that time; if others have taken some of it, everything is judged again.

    Args:
        reservations: the new reservations.
        clock: unix seconds, read in each step.
        instead: the reservation that they replace.
    """
    for _ in range(_TRIES):
        yield from state.ledger.advancing(clock())
        verdict, taken = yield from _judged(reservations, state, instead)
        state.ledger.advance(clock(), most=None)
        with _without(instead, state):
            if verdict.lacks or _have_room(taken, verdict.reservations, state.snapshot):
                return verdict
        yield
    return DryRunVerdict((Lack(0, _CHANGES, never=False),), tuple(reservations))


def _judged(
    reservations: Sequence[Reservation], state: State, instead: Reservation | None
) -> Generator[None, None, tuple[DryRunVerdict, ByNode]]:
    """Place a set in a fork of the state, and sum its amounts on each node.

    Room is judged by the amounts at the beginning. Reservations with pod affinity or spread come
    last: they are tried among the pods of each step.
    """
    with _without(instead, state):
        tried = state.fork()
    by_index: dict[int, tuple[Reservation, Lack | None]] = {}
    taken: dict[str, dict[str, int]] = {}
    found: list[Reservation] = []
    for index in _in_turn(reservations):
        one = reservations[index]
        if _is_about_neighbours(one):
            aside = partial(_among, found, state, instead)
            one, lack = by_index[index] = yield from _judge(index, one, state, taken, aside)
        else:
            one, lack = by_index[index] = yield from _judge(index, one, tried, taken)
        if lack is None:
            found.append(one)
            _seat(one, partial(_take, tried.snapshot), taken)
        yield
    judged = [by_index[index] for index in range(len(reservations))]
    lacks = tuple(lack for _, lack in judged if lack is not None)
    return DryRunVerdict(lacks, tuple(one for one, _ in judged)), taken


@contextmanager
def _among(
    found: Iterable[Reservation], state: State, instead: Reservation | None
) -> Iterator[None]:
    """Count placed reservations until the block ends, and not the one that they replace."""
    with _without(instead, state), trial(state.snapshot, "set") as seat:
        for one in found:
            _seat(one, seat, {})
        yield


def _have_room(taken: ByNode, placed: Iterable[Reservation], snapshot: Snapshot) -> bool:
    """Return whether each node still has the room of the placed reservations."""
    for each in placed:
        rows = snapshot.rows([part.node for part in each.placed]) if each.is_whole else ()
        if len(rows) and not vacant(each.rules, snapshot)[rows].all():
            return False
    for node, amounts in taken.items():
        row = snapshot.row(node)
        if row is None or not snapshot.has_node(node) or node in snapshot.unreadable_nodes:
            return False
        if NODES in amounts:
            continue
        for name, amount in amounts.items():
            offered, requested, held, _ = snapshot.amounts(node, name)
            if amount > offered - requested - held:
                return False
    return True


def _in_turn(reservations: Sequence[Reservation]) -> list[int]:
    """Return the order of judging: first with a named node, last with pod affinity or spread."""

    def turn(index: int) -> tuple[bool, bool]:
        return _is_about_neighbours(reservations[index]), not reservations[index].node

    return sorted(range(len(reservations)), key=turn)


def _is_about_neighbours(reservation: Reservation) -> bool:
    return reservation.placement.constraints.are_about_neighbours


def _without(instead: Reservation | None, state: State) -> AbstractContextManager[None]:
    return without(instead.ref, state) if instead else nullcontext()


def _take(snapshot: Snapshot, pod: Pod, part: Part) -> None:
    """Take the requests of a part's slots, without counting pods as neighbours."""
    snapshot.take(part.node, {name: n * part.slots for name, n in pod.requests.items()})


def place_now(
    reservation: Reservation, state: State, clock: Callable[[], float]
) -> Generator[None, None, tuple[Reservation, str]]:
    """Find the place of a reservation that holds now, or why it has none.

    A reservation that names its node, or starts later, is unchanged. `clock` gives unix seconds.
    """
    yield from state.ledger.advancing(clock())
    if reservation.node or reservation.phase(0, clock()) is not Phase.ACTIVE:
        return reservation, ""
    found = yield from placing(reservation, reservation.slots, state)
    return replace(reservation, placed=found.parts), found.why


def _judge(
    index: int, reservation: Reservation, state: State, taken: ByNode, aside: Aside = nullcontext
) -> Generator[None, None, tuple[Reservation, Lack | None]]:
    if reservation.node:
        return reservation, _lack(index, reservation, state, taken.get(reservation.node, {}))
    found = yield from placing(reservation, reservation.slots, state, aside=aside)
    if not found.parts:
        return reservation, Lack(index, found.why, found.never)
    return replace(reservation, placed=found.parts), None


def _seat(reservation: Reservation, seat: Seat, taken: dict[str, dict[str, int]]) -> None:
    """Count a reservation against the next ones."""
    pod = slot_pod(reservation)
    for part in reservation.parts:
        so_far = taken.setdefault(part.node, {})
        for name, amount in reservation.resources.items():
            so_far[name] = so_far.get(name, 0) + amount * part.slots
        if pod.constraints.are_about_neighbours:  # The number of pods matters.
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
    if snapshot.has_unreadable[row]:
        why = f"the free room on {node} is unknown; see Reserver's log"
        return Lack(index, why, never=False)
    lacking, impossible = [], []
    for name, amount in sorted(reservation.resources.items()):
        wanted = amount * reservation.slots
        offered, requested, held, _ = snapshot.amounts(node, name)
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
