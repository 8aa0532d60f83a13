"""What is said of a reservation that is over."""

import pytest

from reserver.reservations.ending import Ending
from reserver.reservations.terms import Phase
from tests.builders import name, ref


@pytest.mark.parametrize(
    ("phase", "claimed", "pods", "said"),
    [
        (Phase.CLAIMED, 3, ["a", "b", "c"], "claimed by shop/a, shop/b, shop/c"),
        (
            Phase.CLAIMED,
            3,
            ["a", "b", "c", "d", "e"],
            "claimed by shop/a, shop/b, shop/c and 2 more",
        ),
        (Phase.CLAIMED, 3, [], "claimed"),
        (Phase.EXPIRED, 0, [], "expired unclaimed"),
        (Phase.EXPIRED, 1, ["a"], "expired with 1 of 3 slots claimed, by shop/a"),
        (Phase.EXPIRED, 1, [], "expired with 1 of 3 slots claimed"),
    ],
)
def test_an_ending_says_who_claimed_it(
    phase: Phase, claimed: int, pods: list[str], said: str
) -> None:
    assert str(Ending(ref("r"), phase, claimed, 3, tuple(map(name, pods)))) == said
