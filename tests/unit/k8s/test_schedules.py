"""A schedule's fields are read, or refused by name with a remedy."""

import msgspec
import pytest

from reserver.base.schedule import Schedule
from reserver.errors import InvalidInput
from reserver.k8s.objects.schedules import ScheduleFields, read_schedule


def read(**fields: object) -> Schedule:
    written = {"cron": "0 22 * * 1-5", "duration": "8h"} | fields
    return read_schedule(msgspec.convert(written, ScheduleFields))


def test_a_schedule_is_read() -> None:
    assert read() == Schedule("0 22 * * 1-5", 8 * 3600.0)
    until = read(timeZone="Europe/Berlin", until="1970-01-02T00:00:00Z")
    assert until == Schedule("0 22 * * 1-5", 8 * 3600.0, "Europe/Berlin", 86_400.0)


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"duration": "59s"}, "duration: 59s is too short; write 1m or more"),
        (
            {"duration": "1d"},
            (
                "duration: '1d' is not a duration; write hours, minutes and seconds, such as 24h or"
                " 1h30m"
            ),
        ),
        (
            {"duration": "25h"},
            (
                "duration: the occurrence of Mon 22:00 lasts into the next one, of Tue 22:00;"
                " write 1440m at most"
            ),
        ),
        (
            {"timeZone": "Berlin"},
            "timeZone: is not a time zone; write an IANA name such as Europe/Berlin, or UTC",
        ),
        (
            {"cron": "@daily"},
            (
                "cron: does not have five fields; write minute, hour, day of month, month and day"
                " of week: 0 22 * * MON-FRI"
            ),
        ),
        (
            {"until": "tomorrow"},
            (
                "until: 'tomorrow' is not a time; write RFC 3339 with an offset, such as"
                " 2030-01-31T10:00:00Z"
            ),
        ),
    ],
)
def test_what_is_no_schedule_is_refused_by_its_field(
    fields: dict[str, object], refusal: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        read(**fields)
    assert str(caught.value) == refusal
