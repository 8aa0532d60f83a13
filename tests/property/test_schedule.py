"""No occurrence comes twice, none is lost, none is early, whatever the schedule."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim
from hypothesis import assume, given
from hypothesis import strategies as st

from reserver.base.schedule import Schedule, ScheduleError, checked
from reserver.k8s.objects.times import show_in

ZONES = sorted(each for each in available_timezones() if "/" in each or each == "UTC")
DAY = 86_400.0
FIRST = datetime(2020, 1, 1, tzinfo=UTC).timestamp()


def _field(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    some = st.lists(number, min_size=1, max_size=3).map(lambda all_: ",".join(map(str, all_)))
    spans = st.tuples(number, number).map(sorted).map(lambda pair: f"{pair[0]}-{pair[1]}")
    return st.one_of(number.map(str), some, spans)


def _or_any(field: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(st.just("*"), field)


CRONS = st.tuples(
    _field(0, 59), _field(0, 23), _or_any(_field(1, 28)), st.just("*"), _or_any(_field(0, 6))
).map(" ".join)
_SHOWN = 400
"""The wall shows so many days."""

MINUTES = st.integers(1, 24 * 60)


def _numbers(field: str, low: int, high: int) -> set[int]:
    """Return the values of a cron field, by a second parser."""
    if field == "*":
        return set(range(low, high + 1))
    found: set[int] = set()
    for part in field.split(","):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def _starts(cron: str, zone: ZoneInfo, days: int, now: float) -> Iterator[float]:
    """Yield when a schedule of fixed times starts: each such time of each day, on the wall."""
    minutes, hours, dom, _, dow = cron.split()
    day = datetime.fromtimestamp(now, zone).date() - timedelta(days=2)
    for each in (day + timedelta(days=n) for n in range(days + 4)):
        by_month = each.day in _numbers(dom, 1, 31)
        by_week = each.isoweekday() % 7 in _numbers(dow, 0, 6)
        both = by_month and by_week
        if not (both if "*" in (dom, dow) else by_month or by_week):
            continue
        for hour in sorted(_numbers(hours, 0, 23)):
            for minute in sorted(_numbers(minutes, 0, 59)):
                wall = datetime(each.year, each.month, each.day, hour, minute)  # noqa: DTZ001
                while _is_left_out(wall, zone):
                    wall += timedelta(minutes=1)
                yield wall.replace(tzinfo=zone).timestamp()


def _is_left_out(wall: datetime, zone: ZoneInfo) -> bool:
    there = wall.replace(tzinfo=zone)
    return there.astimezone(UTC).astimezone(zone).replace(tzinfo=None) != wall


def _told(cron: str, zone: ZoneInfo, now: float) -> Iterator[float]:
    """Yield the parser's own starts, one after the other."""
    latest = now
    for start in CronSim(cron, datetime.fromtimestamp(now, zone)):
        if start.timestamp() > latest:  # It counts by the wall, which may show an hour twice.
            latest = start.timestamp()
            yield latest


DAYS = st.tuples(
    _or_any(st.one_of(_field(1, 31), st.just("L"), st.just("LW"))),
    _or_any(_field(1, 12)),
    _or_any(st.one_of(_field(0, 7), st.sampled_from(["MON-FRI", "TUE#2", "5L", "*/2"]))),
).map(" ".join)
TIMES = st.tuples(
    st.one_of(_field(0, 59), st.sampled_from(["*", "*/20", "7/15"])),
    st.one_of(_field(0, 23), st.sampled_from(["*", "*/5"])),
).map(" ".join)


@given(
    times=TIMES, days=DAYS, zone=st.sampled_from(ZONES), now=st.floats(FIRST, FIRST + 3653 * DAY)
)
def test_starts_are_those_that_the_parser_tells(
    times: str, days: str, zone: str, now: float
) -> None:
    schedule = Schedule(f"{times} {days}", 60.0, zone)
    try:
        checked(schedule)
    except ScheduleError as exc:
        assume(exc.field != "cron")  # Such a day never comes.
        raise
    assert list(islice(schedule.starts(now), 5)) == list(
        islice(_told(schedule.cron, ZoneInfo(zone), now), 5)
    )


@given(
    cron=CRONS,
    zone=st.sampled_from(ZONES),
    minutes=MINUTES,
    now=st.floats(FIRST, FIRST + 3653 * DAY),
)
def test_occurrences_are_those_that_the_wall_shows(
    cron: str, zone: str, minutes: int, now: float
) -> None:
    schedule = Schedule(cron, minutes * 60.0, zone)
    try:
        checked(schedule)
    except ScheduleError as exc:
        assume(exc.field != "duration")
        raise
    found = list(islice(schedule.occurrences(now), 4))
    wall = sorted({*_starts(cron, ZoneInfo(zone), _SHOWN, now)})
    ends = (min(at + schedule.duration, then) for at, then in pairwise(wall))
    expected = [pair for pair in zip(wall, ends, strict=False) if pair[1] > now][:4]
    within = [occurrence for occurrence in found if occurrence.start < wall[-1]]
    assert within == expected
    for occurrence in within:  # The same occurrence whenever it is asked for, until it ends.
        assert schedule.occurrence(occurrence.start) == occurrence
        assert schedule.occurrence((occurrence.start + occurrence.end) / 2) == occurrence


@given(
    zone=st.sampled_from(ZONES),
    seconds=st.one_of(st.integers(-5_000_000_000, 5_000_000_000), st.floats(FIRST, FIRST + DAY)),
)
def test_a_moment_is_shown_as_the_clocks_of_its_zone_show_it(zone: str, seconds: float) -> None:
    """Also where these were half an hour off, or by local mean time."""
    shown = datetime.fromtimestamp(int(seconds), ZoneInfo(zone)).isoformat()
    assert show_in(seconds, zone) == shown
