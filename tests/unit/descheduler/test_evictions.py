"""What several runs of upstream say about one of ours."""

from __future__ import annotations

import json
import random

import pytest

from hack.descheduler import clusters, policies
from hack.descheduler.evictions import range_of
from reserver.wire.rebalance.policyform import read


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


def test_pairs_are_drawn_from_the_seed_alone_and_their_policies_are_valid() -> None:
    def drawn() -> list[str]:
        draw = random.Random(7)
        pairs = [(policies.policy(draw), clusters.cluster(draw, 1e9)) for _ in range(50)]
        for policy, _ in pairs:
            assert not read(json.dumps(policy).encode(), clusters.CLASSES.get).problems
        return [json.dumps(pair) for pair in pairs]

    assert drawn() == drawn()
