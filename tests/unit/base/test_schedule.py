"""Occurrences come when cron says so in their zone, each once."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim

from reserver.base import cron
from reserver.base.schedule import Occurrence, Schedule, ScheduleError, checked
from tests.cpu import MOST_S, least_cpu_s

HOUR = 3600.0


def at(text: str, zone: str = "UTC") -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


def shown(occurrence: Occurrence | None, zone: str) -> tuple[str, str] | None:
    if occurrence is None:
        return None
    start, end = (datetime.fromtimestamp(each, ZoneInfo(zone)) for each in occurrence)
    return f"{start:%m-%d %H:%M%z}", f"{end:%m-%d %H:%M%z}"


NIGHTS = Schedule("0 22 * * 1-5", 8 * HOUR, "Europe/Berlin")


@pytest.mark.parametrize(
    ("now", "start"),
    [
        ("2026-11-24 21:59", "11-24 22:00+0100"),
        ("2026-11-24 22:00", "11-24 22:00+0100"),
        ("2026-11-25 05:59", "11-24 22:00+0100"),
        ("2026-11-25 06:00", "11-25 22:00+0100"),
        ("2026-11-28 06:00", "11-30 22:00+0100"),
    ],
    ids=["before", "at its start", "in it", "at its end", "over a weekend"],
)
def test_the_occurrence_is_that_under_way_or_else_the_next(now: str, start: str) -> None:
    occurrence = shown(NIGHTS.occurrence(at(now, NIGHTS.zone)), NIGHTS.zone)
    assert occurrence is not None
    assert occurrence[0] == start


@pytest.mark.parametrize(
    ("cron", "now", "first", "second"),
    [
        ("30 2 * * *", "2026-03-28 12:00", "03-29 03:00+0200", "03-30 02:30+0200"),
        ("0,30 2 * * *", "2026-03-28 12:00", "03-29 03:00+0200", "03-30 02:00+0200"),
        ("30 2 * * *", "2026-10-24 12:00", "10-25 02:30+0200", "10-26 02:30+0100"),
        ("0 * * * *", "2026-10-25 01:30", "10-25 02:00+0200", "10-25 02:00+0100"),
    ],
    ids=["in the gap", "twice in the gap", "in the overlap", "each hour"],
)
def test_when_clocks_change(cron: str, now: str, first: str, second: str) -> None:
    schedule = Schedule(cron, 600.0, "Europe/Berlin")
    occurrences = islice(schedule.occurrences(at(now, schedule.zone)), 2)
    starts = [shown(each, schedule.zone) for each in occurrences]
    assert [each[0] for each in starts if each] == [first, second]


def test_in_the_hour_that_comes_twice_it_does_not_come_again() -> None:
    schedule = Schedule("30 2 * * *", 600.0, "Europe/Berlin")
    again = datetime(2026, 10, 25, 2, 0, tzinfo=ZoneInfo(schedule.zone), fold=1).timestamp()
    assert shown(schedule.occurrence(again), schedule.zone) == (
        "10-26 02:30+0100",
        "10-26 02:40+0100",
    )


def test_a_occurrence_ends_where_the_next_begins() -> None:
    day = checked(Schedule("0 0 * * *", 24 * HOUR, "Europe/Berlin"))
    first, second = islice(day.occurrences(at("2026-03-29 00:00", day.zone)), 2)
    assert first.end == second.start
    assert first.end - first.start == 23 * HOUR


def test_at_its_end_an_occurrence_is_over_also_where_the_next_cuts_it_off() -> None:
    overlapping = Schedule("0 0 * * *", 25 * HOUR)
    midnight = at("2026-01-02 00:00")
    found = overlapping.occurrence(midnight)
    assert found is not None
    assert found.start == midnight


def test_no_occurrence_starts_after_its_last_moment() -> None:
    schedule = Schedule("0 0 * * *", HOUR, until=at("2026-01-02 00:00"))
    found = list(schedule.occurrences(at("2026-01-01 00:30")))
    assert [each.start for each in found] == [at("2026-01-01 00:00"), at("2026-01-02 00:00")]
    assert schedule.occurrence(at("2026-01-02 01:00")) is None


@pytest.mark.parametrize(
    ("schedule", "field", "problem"),
    [
        (Schedule("0 22 * *", HOUR), "cron", "does not have five fields"),
        (Schedule("0 0 22 * * *", HOUR), "cron", "does not have five fields"),
        (Schedule("0 " * 200, HOUR), "cron", "does not have five fields"),
        (Schedule("0 25 * * *", HOUR), "cron", "cannot be read: Bad hour"),
        (Schedule("0 0 30 2 *", HOUR), "cron", "cannot be read: Bad day-of-month"),
        (Schedule("\u0660 0 * * *", HOUR), "cron", "does not have five fields"),
        (Schedule("0 0 * * *", HOUR, "Berlin"), "timeZone", "is not a time zone"),
        (Schedule("0 0 * * *", HOUR, "../../etc/passwd"), "timeZone", "is not a time zone"),
        (Schedule("0 0 * * *", HOUR, "Europe"), "timeZone", "is not a time zone"),
        (
            Schedule("0 22 * * *", 25 * HOUR),
            "duration",
            "the occurrence of Mon 22:00 lasts into the next one, of Tue 22:00",
        ),
    ],
)
def test_what_is_no_schedule_is_refused(schedule: Schedule, field: str, problem: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        checked(schedule)
    assert (caught.value.field, str(caught.value)) == (field, problem)


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Apia", "America/St_Johns"])
@pytest.mark.parametrize("cron", ["0 0 29 2 *", "*/5 * * * *", "* * * * *"])
def test_it_begins_with_the_calendar(cron: str, zone: str) -> None:
    first = datetime(1, 1, 1, tzinfo=UTC).timestamp()
    for until in (first, first + 7 * 86_400):
        for now in (first - 1e9, first, until):
            assert Schedule(cron, 60.0, zone, until).occurrence(now) is None
    assert Schedule(cron, 60.0, zone).occurrence(first) is not None


def test_it_ends_with_the_calendar() -> None:
    late = datetime(9899, 12, 31, tzinfo=UTC).timestamp()
    assert len(list(islice(Schedule("0 0 1 1 *", HOUR).occurrences(late), 9))) < 9
    assert (
        Schedule("0 0 1 1 *", HOUR).occurrence(late + timedelta(days=9000).total_seconds()) is None
    )


@pytest.mark.parametrize(
    "cron",
    [
        "{} 0 * 2 TUE#5",
        "{} 0 30 2 MON#5",
        "*/{} */23 */31 * TUE#5",
        "{} 23 LW * */6",
        "{} 0 29 2 *",
    ],
)
def test_one_that_comes_rarely_is_read_and_asked_in_a_moment(cron: str) -> None:
    """A tenant may annotate a pod with one: a leap day on a fifth Tuesday took 0.1 s to check."""

    def made(number: int) -> Schedule:
        return Schedule(cron.format(number + 7), 60.0, "America/St_Johns")

    def looked(schedule: Schedule) -> None:
        with suppress(ScheduleError):
            checked(schedule)

    assert least_cpu_s(made, looked) < MOST_S
    assert least_cpu_s(made, lambda each: each.occurrence(at("2026-01-02 00:00"))) < MOST_S


def test_one_that_comes_rarely_is_compared_with_its_duration() -> None:
    with pytest.raises(ScheduleError, match="lasts into the next one"):
        checked(Schedule("0 0,1 * 2 TUE#5", 2 * HOUR))
    with pytest.raises(ScheduleError, match="lasts into the next one"):
        checked(Schedule("0 0 29 2 *", 5 * 365 * 24 * HOUR))


def test_many_schedules_have_few_fields_to_parse(monkeypatch: pytest.MonkeyPatch) -> None:
    """A start may read ten thousand different schedules, and must take less than a second."""
    parsed = list[str]()

    class Counted(CronSim):
        def __init__(self, expr: str, dt: datetime) -> None:
            parsed.append(expr)
            super().__init__(expr, dt)

    monkeypatch.setattr(cron, "CronSim", Counted)
    for minute, hour, day in ((n % 60, n // 60 % 24, n % 7) for n in range(10_080)):
        schedule = checked(Schedule(f"{minute} {hour} * * {day}", 167 * HOUR, "Europe/Berlin"))
        assert schedule.occurrence(at("2030-01-02 00:00"))
    assert len(parsed) <= 60 + 24 + 7
