"""The holds that rank below an owner's seats are the same by sum and by cache."""

from __future__ import annotations

from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from reserver.cluster.snapshot import Snapshot
from reserver.reservations import node_holds
from reserver.reservations.ledger import Ledger
from reserver.reservations.reservation import Written
from tests.builders import NOW, amounts, node, reservation

Hold = tuple[int, int, int | None, int]
"""When it was written first and last at most, above which priority it yields, and its CPUs."""

holds = st.tuples(
    st.integers(0, 9), st.integers(0, 5), st.sampled_from((None, 0, 5)), st.integers(1, 4)
)


@given(
    written=st.lists(holds, min_size=1, max_size=12),
    own=st.sets(st.integers(0, 11), min_size=1, max_size=4),
    dropped=st.sets(st.integers(0, 11), max_size=4),
    cpu=st.integers(1, 9),
)
def test_many_holds_are_behind_as_much_as_few(
    written: list[Hold], own: set[int], dropped: set[int], cpu: int
) -> None:
    ledger = Ledger(Snapshot())
    ledger.advance(NOW)
    ledger._snapshot.set_node(node("worker-1", cpu="4"))
    made = [reservation(f"r-{n}", cpu=str(h[3]), yields_above=h[2]) for n, h in enumerate(written)]
    for one, (first, more, *_) in zip(made, written, strict=True):
        ledger.put(one, Written(first, first + more))
    seats = [one for n, one in enumerate(made) if n in own]
    request = amounts({"cpu": str(cpu), "pods": "1"})

    def told(few: int) -> dict[str, int]:
        with patch.object(node_holds, "_FEW", few):
            return ledger.later("worker-1", seats, request)

    assert told(0) == told(100)
    for number in dropped - own:
        if number < len(made):
            ledger.drop(made[number].ref)
    assert told(0) == told(100)
