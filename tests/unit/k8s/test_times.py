import pytest

from reserver.errors import InvalidInput
from reserver.k8s.objects.times import in_hours, parse_duration, parse_moment, show_moment


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("0s", 0),
        ("90s", 90),
        ("24h", 86400),
        ("1h30m", 5400),
        ("1h1m1s", 3661),
        ("1.5h", 5400),
        ("250ms", 0.25),
        ("1m500ms", 60.5),
    ],
)
def test_durations_are_read_as_go_writes_them(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["", "1", "1d", "1w", "-1h", "+1h", "1 h", "h", "1.h", ".5h", "1H", "1h ", "00"]
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="1h30m"):
        parse_duration(text)


@pytest.mark.parametrize(("text", "hours"), [("7d", "168h"), ("1d12h", "24h12h"), ("0", "0")])
def test_a_person_may_write_days(text: str, hours: str) -> None:
    assert in_hours(text) == hours


@pytest.mark.parametrize("text", ["", "1x", "1w", "1.5d", "12h1d", "1d1"])
def test_a_person_whose_duration_is_none_is_told_of_days(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"is not a duration; write days, .* 7d, 1d12h"):
        in_hours(text)


def test_a_moment_that_is_shown_reads_as_the_same() -> None:
    assert show_moment(1_900_000_000.0) == "2030-03-17T17:46:40Z"
    assert parse_moment(show_moment(1_900_000_000.0)) == 1_900_000_000.0


@pytest.mark.parametrize(
    "text",
    [
        "9999-12-31T23:00:00-10:00",
        "9999-12-31T23:59:59.999999Z",
        "0001-01-01T00:00:00+10:00",
    ],
)
def test_a_moment_that_could_not_be_shown_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="out of range"):
        parse_moment(text)


@pytest.mark.parametrize("text", ["9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z"])
def test_the_first_and_the_last_moment_can_be_shown(text: str) -> None:
    seconds = parse_moment(text)
    assert parse_moment(show_moment(seconds)) == seconds
