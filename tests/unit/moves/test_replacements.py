"""A pod is the replacement of one move, however many other namespaces have."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reserver.cluster.pod import PodName
from reserver.moves import index
from reserver.moves.index import MoveIndex

FIRST, SECOND = PodName("shop", "m-1"), PodName("shop", "m-2")


@pytest.fixture
def moves(monkeypatch: pytest.MonkeyPatch) -> MoveIndex:
    monkeypatch.setattr(index, "_MOST_REPLACEMENTS", 64)
    return MoveIndex(lambda _: None)


@pytest.mark.parametrize("number", [1, 63, 64, 65, 1_000])
@pytest.mark.parametrize("spaces", [1, 3])
def test_replacements_of_others_push_none_out(moves: MoveIndex, number: int, spaces: int) -> None:
    for n in range(8):
        moves.take(f"shop-{n}", FIRST)
    for n in range(number):
        moves.take(f"evil-{n}", PodName(f"evil-{n % spaces}", f"m-{n}"))
    assert all(moves.may_take(f"shop-{n}", FIRST) for n in range(8))
    assert not any(moves.may_take(f"shop-{n}", SECOND) for n in range(8))
    assert not moves.may_take(f"evil-{number - 1}", SECOND)
    assert len(moves._replacements) <= 64


def test_who_fills_the_memory_forgets_its_own_but_for_those_in_use(moves: MoveIndex) -> None:
    for n in range(1_000):
        moves.take(f"shop-{n}", FIRST)
        moves.take("in use", FIRST)
    assert moves.may_take("shop-0", SECOND)
    assert not moves.may_take("in use", SECOND)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["m", "n"])), max_size=20))
def test_the_first_that_takes_a_pod_keeps_it(taken: list[tuple[str, str]]) -> None:
    moves, first = MoveIndex(lambda _: None), dict[str, PodName]()
    for uid, name in taken:
        moves.take(uid, PodName("shop", name))
        first.setdefault(uid, PodName("shop", name))
    for uid in "abc":
        for name in ("m", "n"):
            taker = PodName("shop", name)
            assert moves.may_take(uid, taker) is (first.get(uid, taker) == taker)
