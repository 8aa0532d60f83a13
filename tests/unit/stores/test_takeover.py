"""A new leader holds the same as the last one, for each option and each critical moment.

A Reserver goes through a journey. At each moment a successor starts, from the objects and the pods
alone (as after a restart, or as a standby does), and gives the same answers to a stranger, an owner
and a borrower.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from reserver.base.clock import Moment
from tests.unit.stores.successors import Act, OfEntries, OfObjects, Pair, bind, edit, end

BERLIN = ZoneInfo("Europe/Berlin")
MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0


def berlin(*wall: int) -> float:
    return datetime(*wall, tzinfo=BERLIN).timestamp()  # type: ignore[arg-type, misc]


BEGIN = berlin(2030, 3, 18, 22)
END = BEGIN + 8 * HOUR
NIGHTS = {"cron": "0 22 * * *", "duration": "8h", "timeZone": "Europe/Berlin"}
AT_HALF_PAST_2 = {"cron": "30 2 * * *", "duration": "2h", "timeZone": "Europe/Berlin"}
GAP, OVERLAP = berlin(2030, 3, 31, 3), berlin(2030, 10, 27, 2, 30)
"""The end of the gap in which a clock shows no 2:30, and the first 2:30 of a day with two."""
OPTIONS: Mapping[str, dict[str, Any]] = {
    "once": {"startsAt": "2030-03-18T21:00:00Z", "expiresAt": "2030-03-19T05:00:00Z"},
    "recurring": {"schedule": NIGHTS},
    "lead": {"schedule": NIGHTS | {"lead": "1h"}},
    "until": {"schedule": NIGHTS | {"until": "2030-03-18T21:00:00Z"}},
    "skip": {"schedule": NIGHTS | {"skip": ["2030-03-19T22:00:00+01:00"]}},
    "reusable": {"schedule": NIGHTS, "reusable": True},
    "idle": {"schedule": NIGHTS, "releaseIfIdle": "20m"},
    "lend": {"schedule": NIGHTS, "lend": {"belowPriority": 100}},
    "refill": {"schedule": NIGHTS, "refill": True, "refillUpTo": 3, "node": None},
    "whole": {
        "schedule": NIGHTS,
        "nodes": {"count": 1},
        **dict.fromkeys(("node", "slots", "resources")),
    },
}
Journey = Iterable[tuple[float | Moment, Act | None]]
BACK, FORTH = -2 * HOUR, 3 * DAY
JOURNEYS: Mapping[str, Journey] = {
    "start and end": [
        (BEGIN - HOUR - 1, None),
        (BEGIN - HOUR, bind("early")),
        (BEGIN - 1, None),
        (BEGIN, bind("a")),
        (BEGIN + MINUTE, bind("b")),
        (BEGIN + HOUR, end("a")),
        (BEGIN + HOUR + 20 * MINUTE, bind("c")),
        (END - 1, None),
        (END, end("b")),
        (END + 1, None),
        (BEGIN + DAY, bind("d")),
        (END + DAY, None),
        (BEGIN + 2 * DAY, bind("e")),
        (END + 2 * DAY, None),
    ],
    "nobody comes": [
        (BEGIN, None),
        (BEGIN + 20 * MINUTE - 1, None),
        (BEGIN + 20 * MINUTE, None),
        (BEGIN + DAY, None),
        (BEGIN + DAY + 20 * MINUTE, None),
    ],
    "left out, suspended, moved": [
        (BEGIN, bind("a")),
        (BEGIN + HOUR, edit(skip=["2030-03-18T22:00:00+01:00"])),
        (BEGIN + DAY, bind("b")),
        (BEGIN + DAY + HOUR, edit(suspend=True)),
        (END + DAY, None),
        (BEGIN + 2 * DAY, edit(suspend=False)),
        (BEGIN + 2 * DAY + HOUR, edit(cron="0 20 * * *", duration="10h")),
        (BEGIN + 3 * DAY, None),
    ],
    "the clock is set back": [
        (BEGIN + HOUR, bind("a")),
        (Moment(BEGIN + HOUR + BACK, 1), None),
        (Moment(BEGIN, 1), bind("b")),
        (Moment(END, 1), None),
        (Moment(END + BACK, 2), bind("c")),
        (Moment(END, 2), None),
    ],
    "the clock is set forward and back": [
        (BEGIN, bind("a")),
        (BEGIN + FORTH, bind("b")),
        (Moment(BEGIN + MINUTE, 1), bind("c")),
        (Moment(END, 1), None),
        (Moment(BEGIN + DAY, 1), None),
        (Moment(BEGIN + FORTH, 1), None),
    ],
}


def around(start: float) -> Journey:
    """Return a journey around an occurrence of two hours on a day on which clocks change."""
    return [
        (start - HOUR, None),
        (start - 1, None),
        (start, bind("a")),
        (start + HOUR, bind("b")),
        (start + 2 * HOUR - 1, end("a")),
        (start + 2 * HOUR, None),
        (start + DAY, None),
    ]


Form = type[OfObjects] | type[OfEntries]
of_each_form = pytest.mark.parametrize("form", [OfObjects, OfEntries], ids=["object", "entry"])


async def travel(form: Form, spec: dict[str, Any], journey: Journey) -> list[dict[str, Any]]:
    """Follow a journey; return the answers at each moment, and assert that a successor agrees."""
    moments = list(journey)
    pair, reported = Pair(form(moments[0][0] - DAY), spec), []
    await pair.running.settle()
    for moment, act in moments:
        await pair.go(moment)
        if act is not None:
            act(pair)
            await pair.running.settle()
        reported.append(pair.running.says())
        after = await pair.running.successor(pair.pods.values())
        assert after.says() == reported[-1], (moment - BEGIN) / HOUR
    return reported


@of_each_form
@pytest.mark.parametrize("journey", JOURNEYS)
@pytest.mark.parametrize("option", OPTIONS)
async def test_a_successor_says_the_same_at_each_moment(
    form: Form, option: str, journey: str
) -> None:
    reported = await travel(form, OPTIONS[option], JOURNEYS[journey])
    assert any(each["phase"] in {"Active", "Claimed"} for each in reported)


@of_each_form
@pytest.mark.parametrize("start", [GAP, OVERLAP], ids=["gap", "overlap"])
@pytest.mark.parametrize("option", [name for name in OPTIONS if name not in {"once", "until"}])
async def test_so_it_does_where_clocks_change(form: Form, option: str, start: float) -> None:
    spec = OPTIONS[option]
    skip = {"skip": ["2030-04-01T02:30:00+02:00"]} if option == "skip" else {}
    kept = {name: each for name, each in spec["schedule"].items() if name == "lead"}
    reported = await travel(form, spec | {"schedule": AT_HALF_PAST_2 | kept | skip}, around(start))
    begins = 0 if option == "lead" else 2
    assert [each["phase"] == "Pending" for each in reported[:3]] == [n < begins for n in range(3)]
    assert reported[5]["phase"] == "Pending"
