"""An exception in any part of a reservation's judgement costs that reservation alone."""

import sys
from dataclasses import replace
from types import FrameType

import pytest

from reserver.cluster.labels import Requirement, Selector
from reserver.cluster.snapshot import Snapshot
from reserver.reservations.ledger import Ledger
from reserver.reservations.reservation import Ref, Reservation, Written
from tests.builders import node, pod, ref, reservation, rule

STANDS = reservation("r", owners=("a", "b"), slots=3, cpu="1", expires=500.0)
EDITED = reservation("r", owners=("a",), rules=(rule(app="web"),), slots=2, cpu="2")
SAME = replace(reservation("r", owners=("a", "b"), slots=3, cpu="1", expires=501.0), drift=2)
MOVED = replace(STANDS, ref=Ref("shop", "", "r"), origin=str(STANDS.ref))


BOOKKEEPING = {
    "_admit",
    "adopt",
    "rename",
    "_count",
    "_dismiss",
    "_put",
    "_remove",
    "_rename",
    "_uncount",
    "insert",
}
"""Functions that move judged entries between dicts, whatever the entries contain."""


class Boom(Exception):
    pass


class Raising:
    """Raises as the n-th function of Reserver is called.

    Attributes:
        left: so many calls before; below zero once it has raised.
    """

    def __init__(self, n: int) -> None:
        self.left = n

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call" and _judges(frame):
            self.left -= 1
            if self.left == -1:
                raise Boom(frame.f_code.co_name)


def _judges(frame: FrameType | None) -> bool:
    """Return whether a function of Reserver judges; generators, which cannot raise, do not."""
    if frame is None or "/reserver/" not in frame.f_code.co_filename:
        return False
    own = frame.f_code.co_qualname
    if own.startswith("sparing."):  # Catches errors, and reads nothing itself.
        return False
    while frame is not None and frame.f_code.co_name not in BOOKKEEPING:
        frame = frame.f_back
    return frame is None and not own.rpartition(".")[2].startswith("<")


def seen(ledger: Ledger) -> object:
    """Return all that can be seen of a ledger."""
    return (
        sorted(
            (str(r.ref), r.digest, phase, tuple(ledger.claimants(r.ref))) for r, phase in ledger
        ),
        dict(ledger.held_on("worker-1")),
        [str(r.ref) for name in "ab" for r in ledger.seats(pod(name, labels={"app": "web"}))],
        {str(r.ref): ledger.held_after("worker-1", r) for r in ledger.holding_on("worker-1")},
        dict(ledger.quotas.used("shop")),
    )


def world(failed: list[Ref]) -> Ledger:
    snapshot = Snapshot()
    snapshot.set_node(node("worker-1", cpu="16"))
    ledger = Ledger(snapshot, failed=lambda ref, _: failed.append(ref))
    ledger.put(STANDS, Written(1, 1))
    ledger.put(reservation("late", cpu="1"), Written(2, 2))
    ledger.claim(STANDS.identity, pod("a", node="worker-1", uid="uid-a"))
    ledger.claim(EDITED.identity, pod("a", node="worker-1", uid="uid-a"))
    return ledger


def put_raising(ledger: Ledger, what: Reservation, n: int) -> tuple[bool, bool]:
    """Put a reservation; return whether its n-th call raised an error, and whether it exists."""
    raising, raised = Raising(n), False
    sys.setprofile(raising)
    try:
        ledger.put(what, Written(5, 5))
    except Boom:
        raised = True
    finally:
        sys.setprofile(None)
    return raised, raising.left < 0


@pytest.mark.parametrize("what", [EDITED, SAME, MOVED], ids=["edited", "same", "moved"])
def test_a_put_that_raises_anywhere_is_done_or_not_done_and_never_half(what: Reservation) -> None:
    done = world([])
    done.put(what, Written(5, 5))
    parts = 0
    while True:
        failed: list[Ref] = []
        ledger = world(failed)
        before = seen(ledger)
        raised, is_more = put_raising(ledger, what, parts)
        if not is_more:
            break
        parts += 1
        assert seen(ledger) == (before if raised else seen(done)) or (failed and not raised)
        ledger.put(what, Written(6, 6))
        assert failed or seen(ledger) == seen(done)
        for each in [written.ref for written, _ in ledger]:
            ledger.drop(each)
        assert ledger.held_on("worker-1") == {}
        assert ledger.quotas.used("shop") == {}
    assert parts > 30


class Raises(Selector):
    def matches(self, _: object) -> bool:
        raise Boom


def test_an_owner_rule_that_raises_is_asked_once_and_costs_nobody_else() -> None:
    failed: list[Ref] = []
    ledger = world(failed)
    broken = replace(
        EDITED,
        rules=(replace(rule(), selector=Raises((Requirement("app", "Exists"),))),),
        ref=ref("broken"),
    )
    fine = replace(EDITED, ref=ref("fine"))
    ledger.put(broken)
    ledger.put(fine)
    for _ in range(3):
        seats = ledger.seats(pod("c", labels={"app": "web"}))
        assert [seat.ref for seat in seats] == [fine.ref]
    assert failed == [broken.ref]
    assert broken.ref in {seat.ref for seat in ledger.seats(pod("a"))}, "who is named may claim"
    assert ledger.held_on("worker-1")["cpu"] == 2000 + 1000 + 4000 + 4000, "it holds on"
    ledger.put(reservation("broken", owners=("a",), rules=(rule(app="web"),), cpu="1"))
    assert len(ledger.seats(pod("c", labels={"app": "web"}))) == 1
    assert broken.ref in ledger.owned_by(pod("c", labels={"app": "web"})), "written anew"
