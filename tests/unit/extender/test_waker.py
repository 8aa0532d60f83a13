"""Waiting pods are woken pass by pass, and no pass keeps calls waiting."""

from __future__ import annotations

import asyncio
import dataclasses
from itertools import count

import pytest

from reserver.base.pacer import Pacer
from reserver.cluster.pod import Pod
from reserver.extender.requeue import Requeue
from reserver.extender.waker import Waker
from reserver.scheduling.state import State
from reserver.scheduling.verdicts import Effect, Nominate
from reserver.scheduling.wake import Wake
from tests.builders import NOW, node, pod, ref, reservation, state_of
from tests.listening import Recorded
from tests.turns import turns


class Sends(Requeue):
    """Records effects instead of sending them."""

    def __init__(self) -> None:
        self.sent: list[Effect] = []
        self.under_way: set[str] = set()
        self.lately: list[str] = []
        self.has_sent = asyncio.Event()

    def is_under_way(self, pod_uid: str) -> bool:
        return pod_uid in self.under_way

    def judged_lately(self) -> list[str]:
        return self.lately

    def send(self, effect: Effect) -> None:
        self.sent.append(effect)
        self.has_sent.set()


def _waiting(*pods: Pod, nodes: int = 2) -> State:
    names = [f"worker-{number}" for number in range(nodes)]
    holds = [reservation(f"r{n}", node=name, cpu="4") for n, name in enumerate(names)]
    state = state_of(*(node(name, cpu="4") for name in names), *holds)
    for asking in pods:
        state.pod_seen(asking)
        state.judged(asking, names, waits=True)
    return state


def _free(state: State, waker: Waker, *numbers: int) -> None:
    for number in numbers:
        state.ledger.drop(ref(f"r{number}"))
        waker.on_capacity_freed(f"worker-{number}")


def _pacer(seconds_a_look: float = 0.0) -> Pacer:
    """Return a pacer whose clock advances by so many seconds per reading."""
    return Pacer(0.002, (number * seconds_a_look for number in count()).__next__)


def _waker(sends: Requeue) -> Waker:
    return Waker(sends, lambda: NOW)


async def test_calls_get_their_turn_while_ten_thousand_wait() -> None:
    sends = Sends()
    waker = _waker(sends)
    state = _waiting(*(pod(f"p{number}", cpu="8") for number in range(10_000)))
    _free(state, waker, 0)
    async with turns() as turn:
        # A pod takes 0.1 ms to look at: they take a second, in turns of one millisecond.
        await waker.look(state, _pacer(0.0001))
        calls = turn()
    assert calls > 10_000 * 0.0001 / 0.001 / 2


async def test_who_asks_for_what_was_found_not_to_fit_is_not_compared_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared = 0
    wanted = Wake.judge.__globals__["request_columns"]

    def counting(*arguments: object) -> object:
        nonlocal compared
        compared += 1
        return wanted(*arguments)

    monkeypatch.setitem(Wake.judge.__globals__, "request_columns", counting)
    waker = _waker(Sends())
    state = _waiting(*(pod(f"p{number}", cpu="8") for number in range(1_000)))
    _free(state, waker, 0)
    await waker.look(state, _pacer())
    assert compared == 1


async def test_the_most_important_is_sent_first_however_late_it_came() -> None:
    sends = Sends()
    waker = _waker(sends)
    late = dataclasses.replace(pod("late", cpu="3"), priority=7)
    state = _waiting(*(pod(f"p{number}", cpu="3") for number in range(100)), late)
    _free(state, waker, 0)
    await waker.look(state, _pacer(0.01))
    assert sends.sent == [Nominate(late, "worker-0")]


async def test_what_is_freed_while_a_pass_goes_on_is_handed_out_by_the_next() -> None:
    sends = Sends()
    waker = _waker(sends)
    first, second = pod("first", cpu="3"), pod("second", cpu="3")
    state = _waiting(first, second)
    _free(state, waker, 0)
    looking = asyncio.create_task(waker.look(state, _pacer(0.01)))
    await asyncio.sleep(0)  # The look has given way for the first time.
    assert not looking.done()
    _free(state, waker, 1)
    await looking
    sends.under_way.add(first.uid)
    await waker.look(state, _pacer(0.01))
    assert sends.sent == [Nominate(first, "worker-0"), Nominate(second, "worker-1")]


async def test_who_was_refused_before_this_process_began_is_sent_back_if_it_fits_by_now() -> None:
    sends, free = Sends(), node("free", cpu="4")
    refused = dataclasses.replace(pod("refused", cpu="4"), is_refused=True)
    too_large = dataclasses.replace(pod("too-large", cpu="5"), is_refused=True)
    state = state_of(free, refused, too_large, pod("never-asked-for", cpu="4"))
    running = asyncio.create_task(_waker(sends).run(state))
    async with asyncio.timeout(20):
        await sends.has_sent.wait()
    running.cancel()
    assert sends.sent == [Nominate(refused, "free")]


async def test_a_refusal_that_shows_late_has_its_pod_sent_to_the_seat_that_came_meanwhile() -> None:
    heard = Recorded()
    state = State(heard)
    state.node_seen(node("worker-1", cpu="4"))
    state.ledger.put(reservation("r", owners=["late"], cpu="2"))
    state.is_complete = True
    late = pod("late", cpu="2")
    state.pod_seen(late)
    assert (heard.freed, dict(state.waiting)) == ([], {})
    state.pod_seen(dataclasses.replace(late, is_refused=True, revision=2))
    assert (heard.freed, [*state.waiting]) == (["worker-1"], [late.uid])


async def test_nodes_that_change_while_nobody_waits_are_not_remembered() -> None:
    """The names of deleted nodes were once kept until a pod waited."""
    waker = _waker(Sends())
    running = asyncio.create_task(waker.run(_waiting()))
    for number in range(1_000):
        waker.on_node_changed(f"gone-{number}")
    for _ in range(100):
        await asyncio.sleep(0)
    running.cancel()
    assert not waker._changed
