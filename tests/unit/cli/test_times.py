"""Times and durations as people say them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from reserver.cli import times
from reserver.cli.failure import ExitStatus, Failed

HERE = timezone(timedelta(hours=9))
NOW = datetime(2030, 1, 31, 15, 30, tzinfo=HERE)


def local(naive: datetime) -> datetime:
    return naive.replace(tzinfo=HERE)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("22:00", "2030-01-31T22:00+09:00"),
        ("8:00", "2030-02-01T08:00+09:00"),
        ("15:30", "2030-02-01T15:30+09:00"),
        ("today 8:00", "2030-01-31T08:00+09:00"),
        ("tomorrow 18:00", "2030-02-01T18:00+09:00"),
        ("2030-03-01 06:15:30", "2030-03-01T06:15:30+09:00"),
        ("2030-03-01 06:15 Europe/Berlin", "2030-03-01T06:15+01:00"),
        ("2030-07-01 06:15 Europe/Berlin", "2030-07-01T06:15+02:00"),
        ("22:00 UTC", "2030-01-31T22:00+00:00"),
        ("tomorrow 00:10Z", "2030-02-01T00:10+00:00"),
        ("22:00-05:00", "2030-01-31T22:00-05:00"),
        ("+2h", "2030-01-31T17:30+09:00"),
        ("+1d12h", "2030-02-02T03:30+09:00"),
        ("2030-01-31T10:00:00Z", "2030-01-31T10:00+00:00"),
    ],
)
def test_a_moment_is_taken_as_people_say_it(text: str, moment: str) -> None:
    assert times.moment("--until", text, NOW, local) == datetime.fromisoformat(moment)


@pytest.mark.parametrize(
    "text", ["", "25:00", "noon", "22:00 Nowhere/City", "+2", "yesterday 10:00", "2030-02-30 10:00"]
)
def test_what_is_no_time_is_refused_with_the_forms(text: str) -> None:
    with pytest.raises(Failed) as refused:
        times.moment("--starts-at", text, NOW, local)
    assert refused.value.status is ExitStatus.USAGE
    assert refused.value.message.startswith(f"--starts-at: {text!r} is not a time; write 22:00, ")


def test_a_time_of_day_without_a_zone_is_that_of_this_machine() -> None:
    found = times.moment("--until", "2030-01-31 22:00", NOW)
    assert (found.day, found.hour) == (31, 22)
    assert found.utcoffset() == found.replace(tzinfo=None).astimezone().utcoffset()
    assert times.moment("--until", "+1h", datetime(2030, 1, 1, tzinfo=UTC)).hour == 1


def test_a_duration_may_have_days() -> None:
    assert times.duration("--ttl", "1d12h") == timedelta(hours=36)
    with pytest.raises(Failed, match="--ttl: '5x' is not a duration"):
        times.duration("--ttl", "5x")
