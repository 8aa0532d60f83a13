"""For which reservations autoscalers make room, and from which nodes their pods are kept."""

from __future__ import annotations

import dataclasses

import pytest

from reserver.cluster.node import HOSTNAME
from reserver.scheduling.buffers import MOST_NODES, KeptOutNodes, Need, buffer, need
from reserver.scheduling.state import State
from tests.builders import NOW, node, parts, pod, reservation, state_of

WAITS = reservation("waits", node="", cpu="3", slots=2)


def shunned(state: State, key: str = "waits") -> tuple[str, ...]:
    wanted = buffer(reservation(key).ref, state, KeptOutNodes())
    assert wanted is not None
    return wanted.shunned


def test_a_reservation_needs_room_for_the_slots_that_have_no_place() -> None:
    state = state_of(node("a", cpu="4"), WAITS)
    assert need(WAITS.ref, state) is Need.ROOM
    wanted = buffer(WAITS.ref, state, KeptOutNodes())
    assert wanted is not None
    assert (wanted.replicas, wanted.shunned) == (2, ())
    state.ledger.place(WAITS.ref, parts({"a": 1}))
    wanted = buffer(WAITS.ref, state, KeptOutNodes())
    assert wanted is not None
    assert wanted.replicas == 1


@pytest.mark.parametrize(
    "settled",
    [
        dataclasses.replace(WAITS, node="a"),
        dataclasses.replace(WAITS, node="unknown"),
        dataclasses.replace(WAITS, starts_at=NOW + 60),
        dataclasses.replace(WAITS, expires_at=NOW - 60),
        dataclasses.replace(WAITS, is_seat=True),
        None,
    ],
    ids=["has its place", "no such node", "not yet", "no more", "seat of a move", "unknown"],
)
def test_other_reservations_need_no_room(settled: object) -> None:
    there = [settled] if settled is not None else []
    state = state_of(dataclasses.replace(node("a", cpu="8"), is_kept=True), *there)  # type: ignore[arg-type]  # a reservation
    assert need(WAITS.ref, state) is Need.NOTHING


def test_a_place_on_a_node_that_is_not_kept_yet_has_the_buffer_wait() -> None:
    state = state_of(node("a", cpu="8"), WAITS)
    state.ledger.place(WAITS.ref, parts({"a": 2}))
    assert need(WAITS.ref, state) is Need.PATIENCE
    assert buffer(WAITS.ref, state, KeptOutNodes()) is None
    state.node_seen(dataclasses.replace(node("a", cpu="8"), is_kept=True))
    assert need(WAITS.ref, state) is Need.NOTHING


def test_pods_are_kept_from_nodes_where_only_holds_keep_slots_out() -> None:
    held = [reservation(f"on-{name}", node=name, cpu="4") for name in ("a", "b", "c", "d")]
    state = state_of(
        node("a", cpu="4", labels={HOSTNAME: "host-of-a"}),  # Looks free.
        node("b", cpu="8"),  # Looks as if two fitted, and one does.
        node("c", cpu="4"),  # Is full by its pod already.
        node("d", cpu="40"),  # Looks as if thirteen fitted, and twelve do.
        node("e", cpu="2"),  # Is free and too small.
        pod("resident", node="c", cpu="3"),
        *held,
        WAITS,
    )
    assert shunned(state) == ("b", "d", "host-of-a")


def test_what_no_node_offers_fits_nowhere_however_little_is_held() -> None:
    state = state_of(
        node("a", cpu="4"),
        reservation("held", node="a", cpu="1"),
        reservation("waits", node="", cpu="4", gpu="1"),
    )
    assert shunned(state) == ()


def test_nodes_are_named_up_to_a_bound() -> None:
    names = [f"n{number:04}" for number in range(MOST_NODES + 1)]
    held = [reservation(f"on-{name}", node=name, cpu="4") for name in names]
    state = state_of(*(node(name, cpu="4") for name in names), *held, WAITS)
    assert shunned(state) == tuple(names[:MOST_NODES])


def test_what_is_judged_once_serves_all_that_ask_for_the_same() -> None:
    other = reservation("other", node="", cpu="3")
    state = state_of(node("a", cpu="4"), reservation("held", node="a", cpu="2"), WAITS, other)
    allowed_nodes = KeptOutNodes()
    found = [buffer(each.ref, state, allowed_nodes) for each in (WAITS, other)]
    assert [each.shunned for each in found if each] == [("a",), ("a",)]
    assert len(allowed_nodes.known) == 1
