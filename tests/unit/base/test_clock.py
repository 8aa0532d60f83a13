"""The effect of a wall clock's jumps on the time of decisions."""

import time

import pytest

from reserver.base.clock import PROBATION_S, SteadyClock, elapsed
from reserver.process.readiness import Pulse


class Clocks:
    """A wall clock and a monotonic clock that a test sets."""

    def __init__(self) -> None:
        self.wall = 1000.0
        self.monotonic = 5.0
        self.steady = SteadyClock(lambda: self.wall, lambda: self.monotonic)

    def pass_time(self, seconds: float) -> float:
        self.wall += seconds
        self.monotonic += seconds
        return self.steady()


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


def test_time_starts_from_the_wall_clock_and_runs_with_it(clocks: Clocks) -> None:
    assert clocks.steady() == 1000.0
    assert clocks.pass_time(7.5) == 1007.5


@pytest.mark.parametrize("jump", [3600.0, -3600.0])
def test_a_jump_that_is_taken_back_changes_nothing(clocks: Clocks, jump: float) -> None:
    clocks.wall += jump
    assert clocks.steady() == 1000.0
    assert clocks.pass_time(PROBATION_S - 1) == 1000.0 + PROBATION_S - 1
    clocks.wall -= jump
    assert clocks.pass_time(PROBATION_S) == 1000.0 + 2 * PROBATION_S - 1


@pytest.mark.parametrize("jump", [3600.0, -3600.0])
def test_a_jump_that_lasts_is_believed(clocks: Clocks, jump: float) -> None:
    clocks.wall += jump
    clocks.steady()
    assert clocks.pass_time(PROBATION_S) == clocks.wall


def test_small_differences_are_followed_but_never_backwards(clocks: Clocks) -> None:
    clocks.wall += 0.5
    assert clocks.steady() == 1000.5
    clocks.wall -= 0.5
    assert clocks.steady() == 1000.5
    assert clocks.pass_time(1.0) == 1001.5


def test_each_jump_is_on_probation_from_its_own_beginning(clocks: Clocks) -> None:
    clocks.wall += 3600
    clocks.steady()
    clocks.pass_time(PROBATION_S - 1)
    clocks.wall -= 3600
    clocks.pass_time(1)
    clocks.wall += 3600
    assert clocks.pass_time(1) == 1000.0 + PROBATION_S + 1


def test_a_second_jump_is_not_believed_for_the_first_ones_probation(clocks: Clocks) -> None:
    """NTP steps a clock twice: the holds of the years between would all end at once."""
    clocks.wall += 3600
    clocks.steady()
    clocks.pass_time(PROBATION_S - 1)
    clocks.wall += 1e8
    assert clocks.pass_time(2) == 1000.0 + PROBATION_S + 1
    assert clocks.pass_time(PROBATION_S) == clocks.wall


def test_who_was_suspended_wakes_at_the_right_time_and_knows_that_it_slept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """During suspend the kernel's monotonic clock stands still; the boot-time clock goes on."""
    seconds = {time.CLOCK_MONOTONIC: 5.0, time.CLOCK_BOOTTIME: 5.0}
    monkeypatch.setattr(time, "clock_gettime", seconds.__getitem__)
    wall = 1000.0
    steady, pulse = SteadyClock(lambda: wall, elapsed), Pulse()
    seconds[time.CLOCK_BOOTTIME] += 600
    wall += 600
    assert steady() == 1600.0
    assert pulse.stood_still() == 600.0
