"""Keys are worked on once each, never twice at once, and what fails comes again later."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from math import inf

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from reserver.base.pacer import Backoff, Pacer
from reserver.base.quarantine import Component
from reserver.k8s.work_queue import AWAY, LATER, Keys, WorkQueue
from tests.unit.k8s.clocks import ManualTime, worked_off
from tests.unit.k8s.fakes import NO_ANSWER, refused

KEYS = st.sampled_from(["a1", "a2", "b1", "b2", "c1"])
WHAT = st.sampled_from(["one", "another"])
AT_ONCE = 2


def group_of(key: str) -> str:
    return key[0]


class Handling(RuleBasedStateMachine):
    """Keys, and the expectations on them that follow from the steps alone."""

    most: int | None = None

    def __init__(self) -> None:
        super().__init__()
        backoff = Backoff(1.0, 8.0, chance=lambda: 1.0)
        self.keys = Keys(backoff, lambda: self.now, group_of, self.most)
        self.now = 0.0
        self.touched: set[str] = set()
        self.later: dict[str, float] = {}  # When each key has to be given, touched or not.
        self.given: list[str] = []

    def look(self) -> None:
        """Move the keys that are due to the touched ones."""
        due = {key for key, at in self.later.items() if at <= self.now}
        self.touched |= due
        self.later = {key: at for key, at in self.later.items() if key not in due}

    @rule(key=KEYS)
    def touch(self, key: str) -> None:
        self.keys.add(key)
        self.touched.add(key)

    @rule(key=KEYS, after_s=st.sampled_from([0.5, 1.0, 5.0]))
    def add(self, key: str, after_s: float) -> None:
        self.keys.add(key, after_s)
        self.later[key] = min(self.later.get(key, inf), self.now + after_s)

    @rule()
    def take(self) -> None:
        self.look()
        taken = self.keys.take(AT_ONCE)
        busy = {group_of(key) for key in self.given}
        free = {key for key in self.touched if group_of(key) not in busy}
        assert bool(taken) == bool(free and len(busy) < AT_ONCE)
        assert len(taken) == len(set(taken))
        due = {key for key in free if taken and group_of(key) == group_of(taken[0])}
        assert {*taken} <= due
        assert len(taken) == (len(due) if self.most is None else min(self.most, len(due)))
        self.given += taken
        self.touched -= {*taken}

    @precondition(lambda self: self.given)
    @rule(fails=st.booleans(), what=WHAT)
    def finish(self, what: str, *, fails: bool) -> None:
        key = self.given[0]
        if fails:
            self.look()
            self.keys.put_off(key, what)
            self.later[key] = self.now + self.rest_s(key, what)
            assert self.keys.rests(key, what)
        else:
            self.keys.succeeded(key)
            assert not self.keys.rests(key, what)
        self.keys.done(key)
        self.given = [each for each in self.given if group_of(each) != group_of(key)]

    def rest_s(self, key: str, what: str) -> float:
        """Return the seconds until an operation may be tried again."""
        begun = self.now
        try:
            for seconds in (1.0, 2.0, 4.0, 8.0):
                self.now = begun + seconds
                if not self.keys.rests(key, what):
                    return seconds
        finally:
            self.now = begun
        raise AssertionError

    @rule(key=KEYS)
    def discard(self, key: str) -> None:
        self.keys.discard(key)
        self.touched.discard(key)
        self.later.pop(key, None)

    @rule(seconds=st.sampled_from([0.5, 1.0, 4.0]))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds

    @invariant()
    def whoever_waits_is_woken_in_time(self) -> None:
        late = [at for at in self.later.values() if at > self.now]
        if late:
            assert self.keys.wait_s() <= min(late) - self.now


TestHandling = Handling.TestCase


class HandlingInParts(Handling):
    """Keys of which one of a group is given at a time."""

    most = 1


TestHandlingInParts = HandlingInParts.TestCase


@pytest.mark.parametrize("is_discarded", [False, True])
def test_a_key_that_is_put_off_for_years_again_and_again_is_kept_once(
    *, is_discarded: bool
) -> None:
    """Each status of a SchedPatch that ends in ten years once left an entry until then."""
    now = 0.0
    keys = Keys[str](LATER, lambda: now)
    keys.add("another", 2e8)
    for _ in range(100):
        keys.add("patch", 1e8)
        if is_discarded:
            keys.discard("patch")
            continue
        keys.add("patch", 0.5)
        now += 1.0
        assert keys.take_all() == ["patch"]
    assert len(keys._later) <= 4
    now = 2e8
    assert keys.take_all() == ["another"]


def test_the_rest_of_a_large_group_waits_behind_the_other_groups() -> None:
    keys = Keys(LATER, lambda: 0.0, group_of, most=2)
    for key in ("a1", "a2", "a3", "b1"):
        keys.add(key)
    given = []
    while taken := keys.take(1):
        given.append(taken)
        keys.done(taken[0])
    assert given == [["a1", "a2"], ["b1"], ["a3"]]


class Works:
    """Work that ends when a test allows it."""

    def __init__(self) -> None:
        self.time = ManualTime()
        self.queue: WorkQueue[str] = WorkQueue(
            "test", replace(LATER, chance=lambda: 1.0), time=self.time
        )
        self.began: list[str] = []
        self.gate = asyncio.Event()

    async def work(self, keys: list[str]) -> None:
        self.began += keys
        await self.gate.wait()


async def test_so_many_are_worked_on_at_once_and_what_is_touched_meanwhile_comes_again() -> None:
    works = Works()
    running = asyncio.create_task(works.queue.run(works.work, 2))
    for key in ("a", "b", "c", "a"):
        works.queue.add(key)
    await works.time.settle()
    assert works.began == ["a", "b"]
    works.queue.add("a")
    await works.time.settle()
    assert works.began == ["a", "b"]
    works.gate.set()
    await works.time.settle()
    assert works.began == ["a", "b", "c", "a"]
    assert works.queue.depth == 0
    running.cancel()


async def test_what_raises_comes_again_later_and_costs_no_other(faults: Counter[Component]) -> None:
    works = Works()
    works.gate.set()

    async def work(keys: list[str]) -> None:
        await works.work(keys)
        if keys == ["poison"]:
            raise ZeroDivisionError

    running = asyncio.create_task(works.queue.run(work))
    works.queue.add("poison")
    works.queue.add("a")
    await works.time.go_by(0.999)
    assert works.began == ["poison", "a"]
    await works.time.go_by(0.001)
    assert works.began == ["poison", "a", "poison"]
    running.cancel()
    assert faults.pop("pass") == 2


async def test_what_fails_comes_again_at_its_time_though_it_was_touched_before_that() -> None:
    works = Works()
    works.queue.add("a", 0.5)
    works.queue.failed("a", refused(403), "edit")
    works.queue.add("a")
    assert works.queue.take_all() == ["a"]
    assert works.queue.rests("a", "edit")
    works.time.now = 1.0
    assert works.queue.take_all() == ["a"]
    assert not works.queue.rests("a", "edit")


async def test_while_nobody_answers_one_asks_for_all_ever_later_until_somebody_does() -> None:
    works, asked = Works(), list[float]()
    answers = [NO_ANSWER, refused(429), refused(503), *[NO_ANSWER] * 5]

    async def work(keys: list[str]) -> None:
        asked.append(works.time.now)
        if answers:
            works.queue.failed(keys[0], answers.pop(0))
        else:
            works.queue.succeeded(keys[0])

    running = asyncio.create_task(works.queue.run(work))
    for number in range(5):
        works.queue.add(str(number))
    await works.time.go_by(60.0)
    gaps = [round(after - before, 6) for before, after in pairwise(asked)]
    assert gaps[:8] == [0.2, 0.4, 0.8, 1.6, 3.2, AWAY.last_s, AWAY.last_s, AWAY.last_s]
    assert set(gaps[8:]) == {0.0}
    assert len(asked) == 8 + 5
    running.cancel()


async def test_passes_take_all_there_is_and_rest_in_between(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rests: list[float] = []

    async def rest(_: Pacer, least_s: float) -> None:
        rests.append(least_s)
        works.queue.add("c")
        if len(rests) == 2:
            raise asyncio.CancelledError

    async def look(_: Pacer) -> None:
        works.began += works.queue.take_all()

    monkeypatch.setattr(Pacer, "rest", rest)
    works = Works()
    for key in ("a", "b", "a"):
        works.queue.add(key)
    with suppress(asyncio.CancelledError):
        await works.queue.passes(look, 0.5)
    assert works.began == ["a", "b", "c"]
    assert rests == [0.5, 0.5]


async def test_many_keys_are_given_in_the_order_in_which_they_came() -> None:
    works = Works()
    works.gate.set()
    for number in range(20_000):
        works.queue.add(str(number))
    await worked_off(works.queue.run(works.work, 4), works.queue)
    assert works.began == [str(number) for number in range(20_000)]
