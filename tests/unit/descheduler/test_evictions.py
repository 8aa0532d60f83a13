"""The comparison of one plan with several runs of upstream."""

from __future__ import annotations

import pytest

from hack.descheduler.evictions import range_of


@pytest.mark.parametrize(
    ("evicted", "is_within"),
    [
        ({"a", "b"}, True),
        ({"a", "c"}, True),
        ({"b", "c"}, False),  # All runs evict a.
        ({"a", "d"}, False),  # No run evicts d.
        ({"a"}, False),  # Each run evicts two or three.
        ({"a", "b", "c"}, True),
    ],
)
def test_what_always_goes_must_go_and_what_never_goes_may_not(
    evicted: set[str],
    is_within: bool,  # noqa: FBT001 - a column of the table
) -> None:
    found = range_of([["a", "b"], ["c", "a"], ["a", "b", "c"]])
    assert found.has(frozenset(evicted)) is is_within


def test_a_run_that_evicts_nothing_counts() -> None:
    found = range_of([["a"], []])
    assert (found.must, found.may) == (frozenset(), frozenset("a"))
    assert found.has(frozenset())
