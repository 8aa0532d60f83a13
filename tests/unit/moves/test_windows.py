"""The windows in which a pod may be moved: of the configuration, its namespace and its own."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reserver.base.schedule import Schedule
from reserver.cluster.pod import Pod
from reserver.cluster.snapshot import Snapshot
from reserver.errors import InvalidInput
from reserver.k8s.objects import move_windows
from reserver.k8s.objects.pod_annotations import MOVE_WINDOW_ANNOTATION
from reserver.moves.windows import ALWAYS, MoveWindows, judge
from tests.builders import node, pod
from tests.cpu import MOST_S, least_cpu_s
from tests.unit.moves.opening import HOUR, NIGHT, WEEKEND, at

SUNDAY = at("2030-03-17T17:00")


def moved(window: str = "", namespace: str = "shop") -> Pod:
    return replace(pod("web-0", node="worker-1", namespace=namespace), move_window=window)


def windows(*configured: dict[str, Any], namespace: str = "") -> MoveWindows:
    snapshot = Snapshot()
    snapshot.set_node(replace(node("worker-1", cpu="4"), labels={"pool": "spot"}))
    snapshot.namespaces["shop"] = {"team": "web"}
    if namespace:
        snapshot.move_windows["shop"] = namespace
    return MoveWindows(snapshot, move_windows.windows(json.dumps(configured)))


def test_a_pod_that_no_window_concerns_may_be_moved_at_any_time() -> None:
    assert windows().of(moved(), SUNDAY) == ALWAYS
    other = {"cron": "0 22 * * *", "duration": "6h"}
    for selector in ("namespaceSelector", "nodeSelector"):
        labels = {selector: {"matchLabels": {"team": "other", "pool": "spot"}}}
        assert windows(other | labels).of(moved(), SUNDAY) == ALWAYS


@pytest.mark.parametrize(
    ("now", "opens", "closes"),
    [
        ("2030-03-17T17:00", "2030-03-17T22:00", None),
        ("2030-03-17T21:59:59", "2030-03-17T22:00", None),
        ("2030-03-17T22:00", None, "2030-03-18T04:00"),
        ("2030-03-18T03:59:59", None, "2030-03-18T04:00"),
        ("2030-03-18T04:00", "2030-03-18T22:00", None),
    ],
)
def test_it_waits_for_the_window_of_its_annotation_and_says_until_when(
    now: str, opens: str | None, closes: str | None
) -> None:
    state = windows().of(moved(NIGHT), at(now))
    assert state.opens_at == (at(opens) if opens else 0.0)
    if opens is not None:
        shown = f"{at(opens):.0f}" and datetime.fromtimestamp(at(opens), UTC).isoformat()
        assert state.why == (
            f"its move window opens at {shown.replace('+00:00', 'Z')}, by annotation "
            f"{MOVE_WINDOW_ANNOTATION} of the pod"
        )
    if closes is not None:
        assert (state.closes_at, state.why) == (at(closes), "")


def test_of_the_configuration_one_is_enough_and_annotations_narrow_it() -> None:
    night = {"cron": "0 22 * * *", "duration": "6h"}
    noon = {
        "cron": "0 12 * * *",
        "duration": "1h",
        "nodeSelector": {"matchLabels": {"pool": "spot"}},
    }
    both = windows(night, noon)
    assert both.of(moved(), at("2030-03-17T12:30")).closes_at == at("2030-03-17T13:00")
    assert not both.of(moved(), at("2030-03-17T23:00")).why
    late = "0 3 * * * 2h"
    assert both.of(moved(late), at("2030-03-17T23:00")).opens_at == at("2030-03-18T03:00")
    assert both.of(moved(late), at("2030-03-18T03:30")).closes_at == at("2030-03-18T04:00")
    by_both = windows(night, namespace=WEEKEND).of(moved(), at("2030-03-18T23:00"))
    assert by_both.opens_at == at("2030-03-23T00:00")
    assert by_both.why.endswith(f"{MOVE_WINDOW_ANNOTATION} of the namespace and the configuration")


def test_a_pod_of_that_name_elsewhere_has_windows_of_its_own() -> None:
    both = windows(namespace=NIGHT)
    assert both.of(moved(), SUNDAY).why
    assert both.of(moved(namespace="other"), SUNDAY) == ALWAYS
    assert not both.of(moved("* * * * * 1m", namespace="other"), SUNDAY).why


def test_windows_that_are_never_open_at_once_are_looked_at_again_later() -> None:
    state = windows(namespace="0 1 * * * 1h").of(moved("0 5 * * * 1h"), SUNDAY)
    assert SUNDAY < state.opens_at < inf
    assert state.why.startswith("its move window does not open before 2030-")


@pytest.mark.parametrize("number", [0, 1, 20, move_windows.MOST_WINDOWS])
@pytest.mark.parametrize("own", ["{} 12 * * * 1m", "{} 0 * 2 TUE#5 1m", "* * * * * 1m"])
def test_a_look_takes_little_however_many_windows_are_never_open_at_once(
    own: str, number: int
) -> None:
    """Any pod may add its own annotation to the windows of the configuration."""
    nights = [
        {"cron": f"{minute} 22 * * *", "duration": "6h", "timeZone": "Europe/Berlin"}
        for minute in range(number)
    ]
    both = windows(*nights, namespace="0 0 * 2 MON#5 1m")
    made = [moved(own.format(minute)) for minute in range(10)]
    assert least_cpu_s(made.__getitem__, lambda one: both.of(one, SUNDAY)) < MOST_S
    assert both.of(made[0], SUNDAY).opens_at > SUNDAY


def test_a_zone_counts_and_a_change_of_clocks() -> None:
    berlin = moved(f"{NIGHT} Europe/Berlin")
    assert windows().of(berlin, SUNDAY).opens_at == at("2030-03-17T21:00")
    assert windows().of(berlin, at("2030-03-31T12:00")).opens_at == at("2030-03-31T20:00")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("at night", "'at night' is no window; write cron, duration and zone, such as"),
        ("0 22 * * * 6h Europe/Berlin now", "is no window"),
        ("0 22 * * * 6", "duration"),
        ("0 22 * * * 10s", "duration: 10s is too short"),
        ("99 22 * * * 6h", "cron: cannot be read"),
        ("0 22 30 2 * 6h", "cron: cannot be read"),
        ("0 22 * * * 25h", "lasts into the next one"),
        ("0 22 * * * 6h Mars/Base", "timeZone: is not a time zone"),
        ("0 22 * * * 6h " + "x" * 300, "is no window"),
    ],
)
def test_a_broken_annotation_keeps_its_pod_and_no_other(text: str, problem: str) -> None:
    both = windows()
    state = both.of(moved(text), SUNDAY)
    assert (state.opens_at, state.closes_at) == (inf, 0.0)
    assert state.why.startswith(f"annotation {MOVE_WINDOW_ANNOTATION} of the pod: ")
    assert problem in state.why
    assert both.of(moved(), SUNDAY) == ALWAYS
    assert "of the namespace: " in windows(namespace=text).of(moved(), SUNDAY).why


@pytest.mark.parametrize(
    ("written", "path"),
    [
        ({}, ""),
        ([{"cron": "0 22 * * *"}], "[0]"),
        ([{"cron": "x", "duration": "1h"}], "[0].cron"),
        ([{"cron": "0 22 * * *", "duration": "1h", "zone": "UTC"}], "[0]"),
        ([{"cron": "0 22 * * *", "duration": "1h"}] * 51, ""),
        (
            [
                {
                    "cron": "0 1 * * *",
                    "duration": "1h",
                    "nodeSelector": {"matchLabels": {"a b": "c"}},
                }
            ],
            "[0].nodeSelector.matchLabels",
        ),
    ],
)
def test_a_broken_window_of_the_configuration_is_refused_with_its_place(
    written: Any, path: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        move_windows.read_list(written)
    assert caught.value.path == path
    with pytest.raises(InvalidInput, match=r"^--move-windows"):
        move_windows.check("--move-windows", json.dumps(written))


def test_a_list_stands_for_a_text_and_back() -> None:
    written = [
        {
            "cron": "0 22 * * *",
            "duration": "6h",
            "timeZone": "Europe/Berlin",
            "namespaceSelector": {"matchLabels": {"team": "web"}},
        }
    ]
    text = move_windows.read_list(written)
    assert move_windows.show_list(text) == written
    assert move_windows.read_list([]) == "[]"


hours = st.integers(0, 23)
schedules = st.builds(
    lambda start, lasts: Schedule(f"0 {start} * * *", lasts * HOUR), hours, st.integers(1, 12)
)


@given(
    st.lists(st.lists(schedules, min_size=1, max_size=2).map(tuple), min_size=1, max_size=3),
    st.integers(0, 72 * 60),
)
def test_it_is_open_exactly_where_each_demand_has_an_open_window(
    demands: list[tuple[Schedule, ...]], minutes: int
) -> None:
    now = SUNDAY + minutes * 60
    state = judge(tuple(demands), now)

    def is_open(moment: float) -> bool:
        return all(
            any((o := each.occurrence(moment)) and o.start <= moment for each in schedules_)
            for schedules_ in demands
        )

    assert is_open(now) == (state.opens_at == 0.0)
    changes_at = state.opens_at or state.closes_at
    steps = range(min(100, int((changes_at - now) // 1800)))
    assert {is_open(now + step * 1800) for step in steps} <= {state.opens_at == 0.0}
