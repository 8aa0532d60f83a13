import pytest

from reserver.errors import InvalidInput
from reserver.wire.times import parse_duration, parse_moment, show_moment


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
