"""A ledger as time passes: starts, ends and a clock that is set."""

from typing import Any

import pytest

from reserver.base.clock import Moment
from reserver.cluster.snapshot import Snapshot
from reserver.reservations.enums import Phase
from reserver.reservations.ledger import Ledger
from reserver.reservations.lifecycle import AT_ONCE
from reserver.reservations.reservation import Ref, Written
from tests.builders import ref, reservation
from tests.listening import Calling
from tests.unit.reservations.held import held


def test_a_reservation_holds_from_its_start_until_its_expiry_to_the_tick(ledger: Ledger) -> None:
    ledger.put(reservation("r", starts=100.0, expires=200.0, cpu="2"))
    seen = []
    for now in (0.0, 99.999, 100.0, 199.999, 200.0, 201.0):
        ledger.advance(now)
        seen.append((held(ledger), ledger.phase(ref("r"))))
    assert seen == [
        (0, Phase.PENDING),
        (0, Phase.PENDING),
        (2000, Phase.ACTIVE),
        (2000, Phase.ACTIVE),
        (0, Phase.EXPIRED),
        (0, Phase.EXPIRED),
    ]


def test_time_may_jump_over_a_whole_reservation(ledger: Ledger) -> None:
    ledger.put(reservation("r", starts=100.0, expires=200.0, cpu="2"))
    ledger.advance(1000.0)
    assert held(ledger) == 0
    assert ledger.phase(ref("r")) is Phase.EXPIRED


def test_a_clock_that_was_wrong_and_is_corrected_has_all_judged_anew(ledger: Ledger) -> None:
    ledger.put(reservation("r", expires=200.0, cpu="2"))
    ledger.advance(300.0)
    assert held(ledger) == 0
    ledger.advance(Moment(100.0, 1))
    assert held(ledger) == 2000
    ledger.put(reservation("later", starts=150.0, expires=160.0, cpu="1"))
    ledger.advance(Moment(150.0, 1))
    assert held(ledger) == 3000
    ledger.advance(Moment(160.0, 1))
    assert held(ledger) == 2000
    ledger.advance(Moment(200.0, 1))
    assert ledger.phase(ref("r")) is Phase.EXPIRED


def test_a_moment_that_is_over_takes_nobody_back_and_has_nothing_judged_anew(
    snapshot: Snapshot,
) -> None:
    """A call kept the moment over an `await`. Only the clock shows a time that went back."""
    settled: list[Ref] = []
    ledger = Ledger(snapshot, Calling(settled.append))
    ledger.put(reservation("soon", starts=50.0, expires=100.0, cpu="1"), Written(1, 1))
    ledger.advance(60.0)
    ledger.put(reservation("late", cpu="1"), Written(2, 2))
    behind = ledger.held_after("worker-1", reservation("soon"))
    settled.clear()
    assert not ledger.is_due(40.0)
    ledger.advance(40.0)
    assert list(ledger.advancing(40.0)) == []
    assert not settled
    assert ledger.phase(ref("soon")) is Phase.ACTIVE
    assert ledger.held_after("worker-1", reservation("soon")) == behind
    assert behind["cpu"] == 1000
    ledger.advance(100.0)
    assert ledger.phase(ref("soon")) is Phase.EXPIRED


def test_a_moment_from_before_the_clock_was_set_back_ends_nothing(ledger: Ledger) -> None:
    ledger.put(reservation("r", expires=200.0, cpu="2"))
    ledger.advance(Moment(90.0))
    ledger.advance(Moment(30.0, 1))
    for over in (Moment(300.0), 300.0):
        ledger.advance(over)
        assert held(ledger) == 2000
    assert ledger.is_due(Moment(20.0, 2))
    ledger.advance(Moment(200.0, 1))
    assert held(ledger) == 0


def test_what_is_to_come_is_not_forgotten_if_the_clock_is_set_back_between_two_steps(
    ledger: Ledger,
) -> None:
    for key in "abc":
        ledger.put(reservation(key, expires=100.0, cpu="1"))
    steps = ledger.advancing(120.0)
    next(steps)
    ledger.advance(Moment(60.0, 1), most=None)
    assert held(ledger) == 3000
    assert list(steps) == []
    assert held(ledger) == 3000
    ledger.advance(Moment(100.0, 1))
    assert held(ledger) == 0


@pytest.mark.parametrize("moments", [(100.0, 200.0), (200.0,)], ids=["in turn", "at once"])
def test_what_starts_later_stands_behind_what_has_started(
    ledger: Ledger, moments: tuple[float, ...]
) -> None:
    """Also if nothing is written in between, and before later writes."""
    first, second, third = (
        reservation("z", starts=100.0, cpu="1"),
        reservation("y", starts=200.0, cpu="2"),
        reservation("x", cpu="3"),
    )
    for written in (first, second):
        ledger.put(written, Written(7, 7))
    for moment in moments:
        ledger.advance(moment)
    ledger.put(third, Written(8, 8))
    behind = [ledger.held_after("worker-1", each).get("cpu") for each in (first, second, third)]
    assert behind == [5000, 3000, None]


def test_advancing_costs_nothing_while_nothing_is_due(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    settled: list[object] = []
    settle = Ledger._settle
    count = 500
    for number in range(count):
        ledger.put(reservation(f"r{number}", expires=1000.0 + number, cpu="1m"))

    def settle_counted(ledger: Ledger, entry: Any) -> None:
        settled.append(entry)
        settle(ledger, entry)

    monkeypatch.setattr(Ledger, "_settle", settle_counted)
    for now in range(1000):
        ledger.advance(now / 2)
    assert settled == []
    for now in range(1000, 1000 + count):
        ledger.advance(now)
    assert len(settled) == count
    assert held(ledger) == 0


def test_of_many_that_end_at_once_a_step_takes_one_and_an_occasion_so_many() -> None:
    snapshot, settled = Snapshot(), list[object]()
    ledger = Ledger(snapshot, Calling(settled.append))
    count = 3 * AT_ONCE
    for number in range(count):
        ledger.put(reservation(f"r{number}", node=f"n{number}", expires=100.0, cpu="1"))
    settled.clear()
    ledger.advance(100.0)
    assert len(settled) == AT_ONCE
    steps = ledger.advancing(100.0)
    next(steps)
    assert len(settled) == AT_ONCE + 1
    ledger.advance(100.0, most=None)
    assert len(settled) == count
    assert not ledger.is_due(100.0)
    assert not snapshot.has_holds.any()
    assert list(steps) == []


def test_what_is_due_is_not_forgotten_between_two_steps(ledger: Ledger) -> None:
    for key in "abc":
        ledger.put(reservation(key, starts=50.0, expires=100.0, cpu="1"))
    ledger.put(reservation("late", expires=200.0, cpu="1"))
    steps = ledger.advancing(60.0)
    next(steps)
    for number in range(5_000):  # Moments are sifted meanwhile.
        ledger.put(reservation("edited", node="worker-2", expires=900.0 + number, cpu="1"))
    assert len(list(steps)) == 2
    assert held(ledger) == 4000
    back = ledger.advancing(Moment(10.0, 1))  # The clock was wrong.
    next(back)
    for number in range(5_000):
        ledger.put(reservation("edited", node="worker-2", expires=900.0 + number, cpu="1"))
    ledger.advance(Moment(10.0, 1), most=None)
    assert held(ledger) == 1000
    ledger.advance(Moment(150.0, 1))
    assert held(ledger) == 1000
    ledger.advance(Moment(200.0, 1))
    assert held(ledger) == 0


def test_moments_that_will_not_come_are_not_kept(snapshot: Snapshot) -> None:
    ledger = Ledger(snapshot)
    ledger.advance(100.0)
    for number in range(5_000):
        ledger.put(reservation("edited", expires=1000.0 + number, cpu="1"))
        ledger.put(reservation("comes back", expires=1000.0, cpu="1"))
        ledger.drop(ref("comes back"))
    assert len(ledger._turns) == 1


def test_many_edits_let_no_start_and_no_end_be_missed(snapshot: Snapshot) -> None:
    ledger = Ledger(snapshot)
    ledger.advance(100.0)
    for number in range(10):
        ends = 400.0 + number
        ledger.put(reservation(f"r{number}", starts=200.0 + number, expires=ends, cpu="1"))
    for number in range(5_000):
        ledger.put(reservation("edited", node="worker-2", expires=1000.0 + number, cpu="1"))
    for number in range(10):
        ledger.advance(200.0 + number)
        assert held(ledger) == 1000 * (number + 1)
    for number in range(10):
        ledger.advance(400.0 + number)
        assert held(ledger) == 1000 * (9 - number)
    ledger.advance(5998.0)
    assert held(ledger, "worker-2") == 1000
    ledger.advance(5999.0)
    assert held(ledger, "worker-2") == 0


def test_of_what_starts_at_once_the_oldest_comes_first_after_many_edits(
    snapshot: Snapshot,
) -> None:
    ledger = Ledger(snapshot)
    ledger.advance(100.0)
    for key in ("b", "a", "c"):
        ledger.put(reservation(key, starts=200.0, cpu="1"))
    for number in range(5_000):
        ledger.put(reservation("edited", expires=1000.0 + number, cpu="1"))
    ledger.advance(200.0)
    order = sorted("bac", key=lambda key: ledger._register[ref(key)].holds[0].since)
    assert order == ["b", "a", "c"]
