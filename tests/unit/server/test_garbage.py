"""A full collection of garbage does not look at all that is known of the cluster each time."""

from __future__ import annotations

import gc

import pytest

from reserver.server import garbage
from reserver.server.garbage import brief_collections


def test_what_has_survived_a_full_collection_is_passed_over_by_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(garbage, "MOST", 1_000)
    with brief_collections():
        known: list[list[int]] = [[] for _ in range(10_000)]
        gc.collect()
        assert not any(each is known[0] for each in gc.get_objects(generation=2))
        assert len(gc.get_objects(generation=2)) < 1_000


def test_few_survivors_are_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage, "MOST", 10_000_000)
    before = gc.get_freeze_count()
    with brief_collections():
        gc.collect()
        assert gc.get_freeze_count() == before
