"""A full collection of garbage does not look at all that is known of the cluster each time."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import pytest

from reserver.base import gc_tuning
from reserver.base.gc_tuning import brief_collections, settle


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Start with an empty oldest generation, and a threshold of a thousand objects."""
    monkeypatch.setattr(gc_tuning, "FEW", 1_000)
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


class Ring:
    """Garbage that only a collection finds."""

    def __init__(self) -> None:
        self.itself = self


def grown_old(count: int) -> list[Ring]:
    rings = [Ring() for _ in range(count)]
    gc.collect(1)
    return rings


def is_old(ring: Ring) -> bool:
    return any(each is ring for each in gc.get_objects(generation=2))


async def test_no_full_collection_comes_by_itself() -> None:
    with brief_collections():
        before = gc.get_stats()[2]["collections"]
        assert len([[] for _ in range(200_000)]) == 200_000
        assert gc.get_stats()[2]["collections"] == before


def test_much_that_has_grown_old_is_looked_at_once() -> None:
    rings = grown_old(1_200)
    lost = grown_old(50)
    collected = gc.get_stats()[2]["collected"]
    assert is_old(rings[0])
    lost.clear()
    settle()
    assert gc.get_stats()[2]["collected"] - collected >= 50
    assert not is_old(rings[0])


def test_little_waits_until_there_is_more() -> None:
    rings = grown_old(10)
    settle()
    assert is_old(rings[0])


def test_what_came_all_at_once_holds_nobody_up() -> None:
    rings = grown_old(3_000)
    before = gc.get_stats()[2]["collections"]
    settle()
    assert gc.get_stats()[2]["collections"] == before
    assert not is_old(rings[0])


async def test_all_is_as_before_afterwards() -> None:
    before = gc.get_threshold()
    with brief_collections():
        grown_old(3_000)
        settle()
        assert gc.get_freeze_count() > 3_000
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0


def test_no_other_thread_fails_at_a_tuple_that_it_is_building(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gc_tuning, "FEW", 10**9)
    old = grown_old(50_000)
    faults: list[SystemError] = []
    over = threading.Event()

    def build() -> None:
        try:
            while not over.is_set():
                tuple(number for number in range(3_000))
        except SystemError as exc:
            faults.append(exc)

    builders = [threading.Thread(target=build) for _ in range(2)]
    for each in builders:
        each.start()
    for _ in range(100):
        gc.collect(1)  # Moves objects under construction to the oldest generation.
        settle()
    over.set()
    for each in builders:
        each.join()
    assert not faults
    assert is_old(old[0])
