"""When bindings fail, a reservation holds again only room that was held, or taken by their pods."""

from dataclasses import replace
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from reserver.reservations.placement import Parts, clipped
from reserver.reservations.reservation import Reservation, Written
from tests.builders import held, node, pod, state_of
from tests.property.test_placed_ledger import PODS, WORKERS, parts, reservations


class Bind(NamedTuple):
    """The binding of an owner, in flight or written."""

    owner: str
    on: str
    is_written: bool


class Place(NamedTuple):
    """A place that this process, or another one, has chosen."""

    parts: Parts
    is_written: bool


binds = st.builds(Bind, st.sampled_from(PODS), st.sampled_from(WORKERS), st.booleans())
steps = st.lists(
    binds | st.builds(Place, parts, st.booleans()),
    max_size=6,
    unique_by=lambda step: step.owner if isinstance(step, Bind) else step,
)


@given(reservations(), steps)
def test_room_that_is_held_again_was_not_free(
    drawn: Reservation, steps: list[Bind | Place]
) -> None:
    state = state_of(*(node(worker, cpu="64") for worker in WORKERS))
    ledger, wanted = state.ledger, replace(drawn, expires_at=None)
    ledger.put(wanted, Written(1, 1))
    for revision, step in enumerate(steps, start=2):
        if isinstance(step, Bind):
            owner = pod(step.owner, node=step.on)
            ledger.claim(wanted.identity, owner, written=step.is_written)
            continue
        there = clipped(step.parts, wanted.most_slots)
        if step.is_written:
            ledger.put(replace(wanted, placed=there), Written(revision, revision))
        else:
            ledger.place(wanted.ref, there)
    for each in steps:
        if isinstance(each, Place) or each.is_written:
            continue
        uid, slot = pod(each.owner).uid, wanted.resources["cpu"]
        taken = slot if uid in ledger.claiming(wanted.ref) else 0
        before = {worker: held(state, worker) for worker in WORKERS}
        ledger.unclaim(uid)
        for worker in WORKERS:
            assert held(state, worker) <= before[worker] + taken * (worker == each.on)
