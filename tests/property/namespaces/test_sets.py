"""Sets of Reservations: independent of another namespace with equal names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reserver.reservations.reservation import Ref
from reserver.stores.object.codec import ABANDONED, SET_LABEL, UNFINISHED_ANNOTATION, ObjectMetadata
from reserver.stores.object.entries import Sets
from tests.property.namespaces.histories import HERE, same, spaces

# Sets of Reservations.

set_events = st.tuples(
    spaces,
    st.tuples(
        st.sampled_from(["put", "drop", "doom", "abandon", "forget"]),
        st.sampled_from(["r-0", "r-1", "r-2"]),
        st.sampled_from(["", "2", ABANDONED]),
    ),
)


@given(st.lists(set_events, max_size=20))
def test_a_set_is_finished_or_taken_back_as_if_no_other_namespace_had_one_of_its_id(
    history: list[tuple[str, tuple[str, str, str]]],
) -> None:
    def seen(played: Sequence[tuple[str, tuple[str, str, str]]]) -> Any:
        touched: list[Ref] = []
        sets = Sets(touched.append)
        for space, (what, name, said) in played:
            metadata = ObjectMetadata(
                name=name,
                namespace=space,
                labels={SET_LABEL: "one"},
                annotations={UNFINISHED_ANNOTATION: said} if said else None,
            )
            if what == "put":
                sets.put(Ref.of_object(space, name), metadata)
            elif what == "drop":
                sets.drop(Ref.of_object(space, name))
            else:
                getattr(sets, what)(metadata.set_id)
        mine = f"{HERE}/one"
        return (
            [ref for ref in touched if ref.namespace == HERE],
            (sets.has(mine), sets.is_doomed(mine), sets.is_abandoned(mine)),
        )

    same(history, seen)
