"""The limit on all moves holds, and no namespace keeps the others from it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reserver.moves.limits import STALLED_S, MoveLimits, is_stalled
from reserver.moves.phases import MovePhase
from tests.unit.moves.build import NOW
from tests.unit.moves.test_groups import contender, greedy, ruled

TEN = MoveLimits(per_node=None, globally=10)
FULL = "moves in all are under way, and the limit is 10"


@pytest.mark.parametrize(
    ("at", "may"),
    [
        (NOW, False),
        (NOW + STALLED_S - 1, False),
        (NOW + STALLED_S, True),
        (NOW + 86_400, True),
        (NOW - 3_600, True),  # The clock was set back.
    ],
)
def test_replacements_that_do_not_come_keep_the_limit_from_others_for_two_minutes_only(
    at: float, *, may: bool
) -> None:
    landing = greedy(10, MovePhase.LANDING, evicted_at=NOW)
    asks = contender("web", MovePhase.EVICTING), contender("more", MovePhase.EVICTING, "evil")
    rulings = ruled(*landing, *asks, limits=TEN, at=at)
    assert rulings["shop/web"].turn.may_evict is may
    assert rulings["shop/web"].turn.why == ("" if may else f"10 {FULL}")
    # Its own namespace is bounded as before.
    assert rulings["evil/more"].turn.why.endswith(FULL)


@pytest.mark.parametrize("stalled", range(12))
def test_what_has_stalled_counts_in_its_own_namespace(stalled: int) -> None:
    landing = greedy(stalled, MovePhase.LANDING, evicted_at=NOW - STALLED_S)
    more = [
        replace(each, move=replace(each.move, name=each.move.name._replace(name=f"more-{n}")))
        for n, each in enumerate(greedy(12, MovePhase.EVICTING))
    ]
    begun = ruled(*landing, *more, limits=TEN)
    assert sum(begun[f"evil/more-{n}"].turn.may_evict for n in range(12)) == max(0, 10 - stalled)
    others = [contender(f"w{n}", MovePhase.EVICTING) for n in range(12)]
    begun = ruled(*landing, *others, limits=TEN)
    assert sum(begun[f"shop/w{n}"].turn.may_evict for n in range(12)) == 10


@pytest.mark.parametrize(("landing", "expected"), [(0, 5), (4, 5), (5, 5), (9, 1), (10, 0)])
def test_what_lands_goes_to_who_has_least(landing: int, expected: int) -> None:
    """Whoever has used the limit alone leaves each part that it gives back."""
    holds = greedy(landing, MovePhase.LANDING, evicted_at=NOW)
    more = [contender(f"x{n}", MovePhase.EVICTING, "evil") for n in range(99)]
    asks = [contender(f"w{n}", MovePhase.EVICTING) for n in range(99)]
    begun = ruled(*holds, *more, *asks, limits=TEN)
    assert sum(begun[f"shop/w{n}"].turn.may_evict for n in range(99)) == expected


under_way = st.tuples(
    st.sampled_from("abc"),
    st.sampled_from([MovePhase.EVICTING, MovePhase.LANDING]),
    st.sampled_from([NOW - 500, NOW - STALLED_S, NOW - 5, NOW]),
)


@given(st.lists(under_way, max_size=16), st.integers(1, 6))
def test_the_limit_on_all_moves_holds_for_those_in_time(
    drawn: list[tuple[str, MovePhase, float]], most: int
) -> None:
    moves = [
        contender(f"m{n}", phase, space, evicted_at=at if phase is MovePhase.LANDING else None)
        for n, (space, phase, at) in enumerate(drawn)
    ]
    begun = ruled(*moves, limits=MoveLimits(per_node=None, globally=most))
    had = [each for each in moves if each.move.status.phase is MovePhase.LANDING]
    in_time = sum(not is_stalled(each.move, NOW) for each in had)
    new = [each.move.name for each in moves if each.move.status.phase is MovePhase.EVICTING]
    began = [name.namespace for name in new if begun[str(name)].turn.may_evict]
    assert not began or in_time + len(began) <= most
    for space in "abc":
        own = sum(each.move.name.namespace == space for each in had)
        if space in began:
            assert own + began.count(space) <= most
    if not had:  # One who is alone has all of it.
        assert len(began) == min(most, len(new))
