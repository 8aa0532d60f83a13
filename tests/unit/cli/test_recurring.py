"""`--every` in words becomes cron; an invalid schedule is refused with the valid forms."""

import pytest

from reserver.cli import times
from reserver.cli.failure import Failed
from reserver.cli.spec_flags import SpecFlags


@pytest.mark.parametrize(
    ("said", "cron"),
    [
        ("22:00 weekdays", "0 22 * * 1-5"),
        ("8:30 mon,thu", "30 8 * * 1,4"),
        ("8:30 Monday Thursday", "30 8 * * 1,4"),
        ("9:05", "5 9 * * *"),
        ("0:00 weekends", "0 0 * * 0,6"),
        (" */5 *  * * *", "*/5 * * * *"),
    ],
)
def test_words_become_cron(said: str, cron: str) -> None:
    assert times.cron("--every", said) == cron


@pytest.mark.parametrize("said", ["", "25:00", "22:60 daily", "nightly", "22:00 someday", "22 5"])
def test_what_is_no_schedule_is_refused(said: str) -> None:
    with pytest.raises(Failed, match=r"--every: .* is not a schedule; write '22:00 weekdays'"):
        times.cron("--every", said)


def test_flags_make_the_schedule() -> None:
    given = SpecFlags(
        owners=("app=train",), cpu="2", every="22:00 weekdays", for_="1d", lead="30m", count=3
    )
    document = given.document("shop")
    assert document["schedule"] == {
        "cron": "0 22 * * 1-5",
        "duration": "24h",
        "lead": "30m",
        "count": 3,
    }
    assert "startsAt" in document
    assert not {"ttl", "expiresAt"} & document.keys()
    with pytest.raises(Failed, match="excludes --every"):
        SpecFlags(every="22:00", ttl="1h").changes("shop")
