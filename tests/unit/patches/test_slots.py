"""The count of a patch: exact whoever hands out its slots, and whoever dies doing it."""

from collections import Counter
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reserver.patches.slots import LOW_STOCK, RETURN_AFTER_S, STOCK, PatchSlots, Record, Stock


class Status:
    """The status of a patch at the API server: a write of an older version is refused."""

    def __init__(self) -> None:
        self.record, self.revision = Record(), 1

    def write(self, slots: PatchSlots, revision: int, now: float, *, is_over: bool = False) -> bool:
        wanted = slots.wanted(now, is_over=is_over)
        if revision != self.revision:
            return False
        self.record, self.revision = wanted, self.revision + 1
        return True


def stocked(count: int, identity: str = "one", now: float = 0.0) -> tuple[PatchSlots, Status]:
    slots, status = PatchSlots(identity, count), Status()
    slots.recorded(status.record, status.revision, now, inherits=True)
    status.write(slots, status.revision, now)
    slots.recorded(status.record, status.revision, now, inherits=False)
    return slots, status


def take_all(slots: PatchSlots, now: float = 0.0) -> list[int]:
    taken = []
    while (slot := slots.take(now)) is not None:
        taken.append(slot)
    return taken


def test_no_slot_is_handed_out_before_it_is_recorded() -> None:
    slots = PatchSlots("one", 3)
    assert (slots.take(0.0), slots.may_have_more) == (None, True)


def test_each_recorded_slot_is_handed_out_once() -> None:
    slots, _ = stocked(17)
    assert take_all(slots) == list(range(17))
    assert not slots.may_have_more


def test_a_large_count_is_recorded_piece_by_piece() -> None:
    slots, status = stocked(200)
    assert len(take_all(slots)) == STOCK
    status.write(slots, status.revision, 0.0)
    slots.recorded(status.record, status.revision, 0.0, inherits=False)
    assert take_all(slots) == list(range(STOCK, 2 * STOCK))


def test_more_is_recorded_before_the_stock_is_empty() -> None:
    slots, _ = stocked(200)
    for _ in range(STOCK - LOW_STOCK):
        slots.take(0.0)
    assert len(slots.wanted(0.0, is_over=False).stocks[0].slots) == STOCK
    slots.take(0.0)
    assert len(slots.wanted(0.0, is_over=False).stocks[0].slots) == 2 * STOCK - LOW_STOCK + 1


def test_a_slot_whose_pod_has_not_appeared_comes_back() -> None:
    slots, _ = stocked(1)
    assert slots.take(10.0) == 0
    slots.lapse(10.0 + RETURN_AFTER_S - 0.1)
    assert slots.take(10.0 + RETURN_AFTER_S - 0.1) is None
    slots.lapse(10.0 + RETURN_AFTER_S)
    assert slots.take(10.0 + RETURN_AFTER_S) == 0


def test_a_slot_comes_back_though_the_clock_was_set_back() -> None:
    """It was out for as long as the clock was set back; its pod may come for the usual time."""
    slots, _ = stocked(1)
    assert slots.take(4000.0) == 0
    slots.lapse(400.0)
    assert slots.take(400.0) is None
    slots.lapse(400.0 + RETURN_AFTER_S)
    assert slots.take(400.0 + RETURN_AFTER_S) == 0


def test_a_successor_takes_over_though_the_clock_was_set_back() -> None:
    predecessor, status = stocked(1)
    predecessor.take(0.0)
    slots = successor_of(status, now=4000.0)
    slots.lapse(400.0)
    assert slots.next_at() == 400.0 + RETURN_AFTER_S


def test_a_slot_whose_pod_has_appeared_is_spent_for_good() -> None:
    slots, _ = stocked(1)
    slots.take(0.0)
    assert (slots.appeared(0), slots.appeared(0)) == (True, False)
    slots.lapse(10 * RETURN_AFTER_S)
    assert (slots.take(10 * RETURN_AFTER_S), slots.is_spent) == (None, True)
    assert slots.wanted(0.0, is_over=False) == Record(frozenset({0}))


def test_a_lower_count_counts_what_is_spent_or_handed_out_already() -> None:
    slots, _ = stocked(10)
    for slot in (7, 8, 9):
        slots.appeared(slot)
    slots.max_count = 4
    assert take_all(slots) == [0]


def test_a_higher_count_has_more_recorded() -> None:
    slots, status = stocked(2)
    take_all(slots)
    slots.max_count = 3
    assert slots.may_have_more
    status.write(slots, status.revision, 0.0)
    slots.recorded(status.record, status.revision, 0.0, inherits=False)
    assert take_all(slots) == [2]


def test_who_ends_gives_back_what_was_not_handed_out() -> None:
    slots, _ = stocked(5)
    slots.take(0.0)
    assert slots.wanted(0.0, is_over=True).stocks == (Stock("one/0", frozenset({0})),)


def successor_of(status: Status, now: float) -> PatchSlots:
    slots = PatchSlots("two", 5)
    slots.recorded(status.record, status.revision, now, inherits=True)
    status.write(slots, status.revision, now)
    slots.recorded(status.record, status.revision, now, inherits=False)
    return slots


def test_a_successor_revokes_at_once_and_takes_over_once_no_pod_can_come_of_it() -> None:
    predecessor, status = stocked(5)
    predecessor.take(0.0)
    slots = successor_of(status, now=100.0)
    assert status.record.stocks == (Stock("one/0", frozenset(range(5)), is_revoked=True),)
    predecessor.recorded(status.record, status.revision, 100.0, inherits=False)
    assert predecessor.take(100.0) is None
    assert slots.next_at() == 100.0 + RETURN_AFTER_S
    slots.appeared(0)  # The pod that the predecessor patched.
    for at in (100.0 + RETURN_AFTER_S - 1, 100.0 + RETURN_AFTER_S):
        status.write(slots, status.revision, at)
        slots.recorded(status.record, status.revision, at, inherits=False)
    status.write(slots, status.revision, 100.0 + RETURN_AFTER_S)
    slots.recorded(status.record, status.revision, 100.0 + RETURN_AFTER_S, inherits=False)
    assert take_all(slots, 100.0 + RETURN_AFTER_S) == [1, 2, 3, 4]


def test_a_successor_does_not_wait_for_what_is_recorded_for_nobody() -> None:
    first, status = stocked(5)
    first.take(0.0)
    status.write(first, status.revision, 0.0, is_over=True)
    assert take_all(successor_of(status, now=1.0)) == [1, 2, 3, 4]


def test_who_begins_beside_another_takes_nothing_from_it() -> None:
    _, status = stocked(5)
    beside = PatchSlots("three", 5)
    beside.recorded(Record(), 1, 0.0, inherits=True)  # Before the other one came.
    beside.recorded(status.record, status.revision, 0.0, inherits=False)
    assert beside.wanted(1e9, is_over=False) == status.record


def test_an_older_status_than_was_seen_changes_nothing_but_what_is_spent() -> None:
    slots, status = stocked(3)
    slots.recorded(Record(frozenset({2})), status.revision - 1, 0.0, inherits=False)
    assert take_all(slots) == [0, 1]


COUNT = 15


class Processes:
    """Processes that begin, end and die, pods that are created late, or never.

    A pod is created within `RETURN_AFTER_S` - 10 of its answer, if at all. Every process sees each
    pod and each status 5 seconds later at most.
    """

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.status, self.now = Status(), 0.0
        self.processes: dict[str, tuple[PatchSlots, int]] = {}
        self.born = 0
        self.coming: list[tuple[int, float]] = []
        self.pods: Counter[int] = Counter()

    def step(self) -> None:
        weights: dict[Callable[[], None], float] = {
            self.begin: 2,
            self.end: 0.5,
            self.write: 6,
            self.answer: 6,
            self.wait: 6,
        }
        (act,) = self.random.choices(list(weights), list(weights.values()))
        if self.processes or act in {self.begin, self.wait}:
            act()

    def begin(self) -> None:
        if len(self.processes) < 2:
            self.born += 1
            slots = PatchSlots(f"p{self.born}", COUNT)
            slots.recorded(self.status.record, self.status.revision, self.now, inherits=True)
            self.processes[f"p{self.born}"] = slots, self.status.revision
            self.look(f"p{self.born}")

    def end(self) -> None:
        slots, revision = self.processes.pop(self.one())
        if self.random.random() < 0.5:
            self.status.write(slots, revision, self.now, is_over=True)

    def write(self) -> None:
        name = self.one()
        slots, revision = self.processes[name]
        self.status.write(slots, revision, self.now)
        if self.random.random() < 0.8:
            self.look(name)

    def answer(self) -> None:
        slots, _ = self.processes[self.one()]
        slots.lapse(self.now)
        slot = slots.take(self.now)
        if slot is not None and self.random.random() < 0.7:
            created_at = self.now + self.random.uniform(0, RETURN_AFTER_S - 10)
            self.coming.append((slot, created_at))

    def wait(self) -> None:
        for _ in range(self.random.choice([1, 3, 10, 50])):
            self.now += 1
            for pod in [pod for pod in self.coming if pod[1] <= self.now]:
                self.coming.remove(pod)
                self.pods[pod[0]] += 1
            if self.now % 5 == 0:
                for name in self.processes:
                    self.look(name)

    def one(self) -> str:
        return self.random.choice(sorted(self.processes))

    def look(self, name: str) -> None:
        slots, _ = self.processes[name]
        for slot in self.pods:
            slots.appeared(slot)
        slots.recorded(self.status.record, self.status.revision, self.now, inherits=False)
        self.processes[name] = slots, self.status.revision


@pytest.mark.parametrize("seed", range(40))
def test_no_slot_has_two_pods_whoever_hands_it_out_and_whoever_dies(seed: int) -> None:
    world = Processes(seed)
    for _ in range(400):
        world.step()
        promised = Counter(slot for slot, _ in world.coming) + world.pods
        assert max(promised.values(), default=0) <= 1, world.now
        assert all(0 <= slot < COUNT for slot in promised)


@given(st.integers(1, 200), st.integers(0, 300))
def test_whatever_is_asked_no_more_is_given_than_the_count(count: int, asked: int) -> None:
    slots, status = stocked(count)
    given_out = 0
    for _ in range(asked):
        if slots.take(0.0) is not None:
            given_out += 1
        elif slots.may_have_more:
            status.write(slots, status.revision, 0.0)
            slots.recorded(status.record, status.revision, 0.0, inherits=False)
    assert given_out <= count
