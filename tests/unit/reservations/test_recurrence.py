"""A reservation that recurs holds in each occurrence anew; its claims are of one occurrence."""

from dataclasses import replace

import pytest

from reserver.base.clock import Moment
from reserver.base.schedule import Schedule
from reserver.cluster.snapshot import Snapshot
from reserver.reservations.entry import identified
from reserver.reservations.enums import Phase
from reserver.reservations.ledger import Ledger
from reserver.reservations.listener import Listener
from reserver.reservations.recurrence import Recurrence, counted
from reserver.reservations.reservation import Ref, Written
from reserver.reservations.status import ShortNodes
from tests.builders import pod, ref, reservation
from tests.unit.reservations.nightly import BEGIN, DAY, END, HOUR, MIDNIGHT, R, at, claimed, nightly


def test_it_holds_in_each_occurrence_and_not_between(ledger: Ledger) -> None:
    ledger.advance(MIDNIGHT)
    ledger.put(nightly(), Written(1, 1))
    assert at(ledger, BEGIN - 1) == (Phase.PENDING, 0, 0)
    assert at(ledger, BEGIN) == (Phase.ACTIVE, 0, 4000)
    assert at(ledger, END - 1) == (Phase.ACTIVE, 0, 4000)
    assert at(ledger, END) == (Phase.PENDING, 0, 0)
    assert not ledger.is_over(R)
    assert at(ledger, BEGIN + DAY) == (Phase.ACTIVE, 0, 4000)


def test_claims_are_of_their_occurrence(ledger: Ledger) -> None:
    ledger.advance(BEGIN)
    ledger.put(nightly(), Written(1, 1))
    claimed(ledger, "a")
    claimed(ledger, "b")
    assert at(ledger, BEGIN + 1) == (Phase.CLAIMED, 2, 0)
    assert not ledger.is_over(R)
    assert at(ledger, END) == (Phase.PENDING, 0, 0)
    assert at(ledger, BEGIN + DAY) == (Phase.ACTIVE, 0, 4000)


def test_a_pod_that_a_reservation_names_ends_the_occurrence_in_which_it_is_bound(
    ledger: Ledger,
) -> None:
    ledger.advance(MIDNIGHT)
    ledger.put(identified(replace(nightly(), rules=(), owners=(pod("a").name,), slots=1)))
    early = replace(pod("a", node="worker-2", cpu="2"), revision=5)
    ledger.bound(early, exact=True)
    assert at(ledger, BEGIN) == (Phase.ACTIVE, 0, 2000)
    ledger.bound(early, exact=False)  # As a list shows it after a restart.
    assert at(ledger, BEGIN) == (Phase.ACTIVE, 0, 2000)
    ledger.bound(replace(early, uid="another", revision=9), exact=True)
    assert at(ledger, BEGIN) == (Phase.CLAIMED, 1, 0)
    assert at(ledger, BEGIN + DAY) == (Phase.ACTIVE, 0, 2000)


def test_a_restart_in_an_occurrence_keeps_its_claims(ledger: Ledger, snapshot: Snapshot) -> None:
    ledger.advance(BEGIN)
    ledger.put(nightly(), Written(1, 1))
    there = claimed(ledger, "there")
    claimed(ledger, "gone", 11)
    known = ledger.get(R)
    assert known is not None
    recorded = ledger.recorded(R)
    for now, claims in ((BEGIN + HOUR, 2), (BEGIN + DAY, 0), (END, 0)):
        again = Ledger(snapshot)
        again.advance(now)
        again.put(nightly(), Written(0, 1))
        again.past.recall(R, known.digest, recorded, seen=20)
        again.claim(known.identity, there)
        again.past.end()
        assert again.claimed(R) == claims
        again.drop(R)


def test_it_begins_to_hold_so_long_before_its_start(ledger: Ledger) -> None:
    ledger.advance(MIDNIGHT)
    ledger.put(nightly(lead=HOUR))
    assert at(ledger, BEGIN - HOUR - 1)[2] == 0
    assert at(ledger, BEGIN - HOUR)[2] == 4000


def test_one_that_is_read_in_its_first_occurrence_holds_what_is_left_of_it(ledger: Ledger) -> None:
    ledger.advance(BEGIN + HOUR)
    ledger.put(nightly(first=BEGIN))
    assert at(ledger, BEGIN + HOUR) == (Phase.ACTIVE, 0, 4000)
    assert at(ledger, END) == (Phase.PENDING, 0, 0)


def test_an_occurrence_at_the_first_moment_is_the_first_that_counts(ledger: Ledger) -> None:
    twice = counted(Schedule("0 22 * * *", 8 * HOUR), BEGIN, 2)
    recurrence = Recurrence(schedule=twice, first=BEGIN)
    ledger.advance(MIDNIGHT)
    ledger.put(identified(replace(nightly(), recurrence=recurrence)))
    assert at(ledger, BEGIN) == (Phase.ACTIVE, 0, 4000)
    assert at(ledger, BEGIN + DAY) == (Phase.ACTIVE, 0, 4000)
    assert at(ledger, END + DAY) == (Phase.EXPIRED, 0, 0)


def test_what_lasts_until_the_next_one_is_held_without_a_gap(ledger: Ledger) -> None:
    ledger.advance(MIDNIGHT)
    whole = Recurrence(schedule=Schedule("0 0 * * *", DAY))
    ledger.put(identified(replace(nightly(), recurrence=whole)), Written(1, 1))
    ledger.put(reservation("other", cpu="4"), Written(2, 2))
    claimed(ledger, "a")
    assert at(ledger, MIDNIGHT + 1) == (Phase.ACTIVE, 1, 2000 + 4000)
    assert at(ledger, MIDNIGHT + DAY) == (Phase.ACTIVE, 0, 4000 + 4000)


def test_one_that_is_skipped_is_left_out(ledger: Ledger) -> None:
    ledger.advance(MIDNIGHT)
    ledger.put(nightly(), Written(1, 1))
    ledger.put(nightly(skipped=(BEGIN,)), Written(2, 2))
    assert at(ledger, BEGIN) == (Phase.PENDING, 0, 0)
    assert at(ledger, BEGIN + DAY) == (Phase.ACTIVE, 0, 4000)


def test_to_skip_a_later_one_keeps_the_claims_of_this_one(ledger: Ledger) -> None:
    ledger.advance(BEGIN)
    ledger.put(nightly(), Written(1, 1))
    claimed(ledger, "a")
    ledger.put(nightly(skipped=(BEGIN + DAY,)), Written(20, 20))
    assert at(ledger, BEGIN + HOUR) == (Phase.ACTIVE, 1, 2000)
    assert at(ledger, BEGIN + DAY) == (Phase.PENDING, 0, 0)
    assert at(ledger, BEGIN + 2 * DAY) == (Phase.ACTIVE, 0, 4000)


def test_one_that_is_suspended_holds_nothing_until_it_goes_on(ledger: Ledger) -> None:
    ledger.advance(BEGIN)
    ledger.put(nightly(), Written(1, 1))
    claimed(ledger, "a")
    ledger.put(nightly(is_suspended=True), Written(20, 20))
    assert at(ledger, BEGIN + 1) == (Phase.PENDING, 1, 0)
    assert not ledger.is_over(R)
    ledger.put(nightly(), Written(30, 30))
    assert at(ledger, BEGIN + 2) == (Phase.ACTIVE, 1, 2000)


def test_why_it_holds_nothing_now_is_told(ledger: Ledger, snapshot: Snapshot) -> None:
    ledger.advance(BEGIN - 1)
    ledger.put(nightly(), Written(1, 1))

    def why() -> str:
        there = ledger.get(R)
        assert there is not None
        return ShortNodes.of(snapshot).status(there, ledger).message

    assert why() == "the next occurrence lies in the future; nothing is held until then"
    ledger.put(nightly(is_suspended=True), Written(20, 20))
    assert why() == "schedule.suspend is true; nothing is held while it is"


def test_after_its_last_occurrence_it_is_over(ledger: Ledger) -> None:
    ledger.advance(MIDNIGHT)
    ledger.put(nightly(until=BEGIN + DAY))
    assert at(ledger, END)[0] is Phase.PENDING
    assert at(ledger, END + DAY)[0] is Phase.EXPIRED
    assert ledger.is_over(R)
    ledger.put(replace(nightly(until=BEGIN), ref=ref("late")))
    assert ledger.phase(ref("late")) is Phase.EXPIRED


@pytest.mark.parametrize(
    ("shows", "expected"),
    [(BEGIN - 1, (Phase.PENDING, 0)), (BEGIN + HOUR, (Phase.ACTIVE, 4000))],
    ids=["before it began", "in it"],
)
def test_a_clock_that_is_set_back_counts(
    ledger: Ledger, shows: float, expected: tuple[Phase, int]
) -> None:
    ledger.advance(BEGIN)
    ledger.put(nightly())
    ledger.advance(BEGIN + 5 * DAY)
    phase, _, now_held = at(ledger, Moment(shows, 1))
    assert (phase, now_held) == expected
    assert at(ledger, Moment(BEGIN + DAY, 1)) == (Phase.ACTIVE, 0, 4000)


def test_one_that_was_over_when_it_was_read_never_holds(ledger: Ledger) -> None:
    """It ended when it was read, so it held once the clock was set back to before that."""
    ledger.advance(END + 2 * HOUR)
    ledger.put(nightly(until=BEGIN + 4 * HOUR))
    assert at(ledger, END + 2 * HOUR)[0] is Phase.EXPIRED
    assert at(ledger, Moment(END + HOUR, 1)) == (Phase.PENDING, 0, 0)
    assert at(ledger, Moment(END + 2 * HOUR, 1))[0] is Phase.EXPIRED


def test_a_clock_that_is_set_forward_past_some_holds_the_one_of_now(ledger: Ledger) -> None:
    ledger.advance(BEGIN)
    ledger.put(nightly())
    claimed(ledger, "a")
    assert at(ledger, BEGIN + 9 * DAY) == (Phase.ACTIVE, 0, 4000)


def test_each_occurrence_that_is_over_is_told_while_its_claims_are_known(
    snapshot: Snapshot,
) -> None:
    reported: list[tuple[float | None, int]] = []

    class _Heard(Listener):
        def on_occurrence_over(self, ref: Ref) -> None:
            known = ledger.get(ref)
            assert known is not None
            reported.append((known.occurrence, ledger.claimed(ref)))

    ledger = Ledger(snapshot, _Heard())
    ledger.advance(BEGIN)
    ledger.put(nightly())
    claimed(ledger, "a")
    ledger.advance(END)
    ledger.advance(END + DAY)
    assert reported == [(BEGIN, 1), (BEGIN + DAY, 0)]
