"""Tables, bars and spans of time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reserver.cli import top
from reserver.cli.formatting import duration, ends_in
from reserver.cli.table import Cell, Row, bar, bar_legend, fitting, plain, records
from reserver.cli.top import quota_document
from reserver.client import NamespaceQuota, ReservationInfo, ResourceAmounts
from reserver.client.values import Spec


def test_the_ceiling_of_all_tenants_shows_its_share() -> None:
    hard = {"held.cpu": "3200m", "held.memory": "13107Mi", "held.pods": "0"}
    rules: tuple[int, None, bool, bool] = (0, None, False, False)
    used = {"held.cpu": "2"}
    ceiling = quota_document(NamespaceQuota("", "tenantCeiling", hard, used, *rules))
    assert ceiling["share"] == {"held.cpu": 0.625, "held.memory": 0.0, "held.pods": 0.0}
    assert "share" not in quota_document(NamespaceQuota("shop", "a", hard, used, *rules))


def test_columns_are_as_wide_as_their_widest_text_and_nothing_is_cut() -> None:
    rows: list[Row] = [
        ("NAME", "NODE"),
        (Cell("a" * 50, "red"), "w"),
        ("b", [Cell("x"), Cell("y")]),
    ]
    assert plain(rows) == [
        f"NAME{' ' * 49}NODE",
        f"{'a' * 50}   w",
        f"b{' ' * 52}xy",
    ]


@given(st.integers(0, 10**15), st.integers(0, 10**15), st.integers(0, 10**15))
def test_a_bar_is_as_long_as_it_should_be_and_shows_what_is_held(
    total: int, used: int, held: int
) -> None:
    parts = [len(cell.text) for cell in bar(total, used, held)]
    assert sum(parts) == 20
    assert min(parts) >= 0
    assert (parts[1] > 0) == (held > 0)


@pytest.mark.parametrize(
    ("columns", "others", "width"), [(80, [8, 10, 12], 19), (200, [8, 10, 12], 20), (80, [70], 4)]
)
def test_bars_are_as_wide_as_the_terminal_has_room_for(
    monkeypatch: pytest.MonkeyPatch, columns: int, others: list[int], width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert fitting(2, others) == width


def test_without_colours_a_bar_still_tells_used_held_and_free_apart(
    capsys: pytest.CaptureFixture[str],
) -> None:
    parts = [cell.text for cell in bar(total=20, used=10, held=5)]
    assert [len(text) for text in parts] == [10, 5, 5]
    assert len({character for text in parts for character in text}) == 3
    bar_legend()
    used, held, free = (text[0] for text in parts)
    assert capsys.readouterr().out.split() == [used, "used", held, "held", free, "free"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "no end"),
        (-5, "0s"),
        (0.4, "0s"),
        (59, "59s"),
        (60, "1m"),
        (3_725, "1h2m"),
        (90_061, "1d1h"),
        (7_199, "2h"),
        (86_399, "1d"),
        (215_999, "2d12h"),
        (1e9, "11574d2h"),
    ],
)
def test_time_left_is_told_in_two_units(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(("left_s", "said"), [(90, "1m30s"), (0, "over"), (-5, "over")])
def test_what_has_expired_is_over(left_s: int, said: str) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    spec = Spec(owners=(), resources={}, expires_at=now + timedelta(seconds=left_s))
    held = ReservationInfo(
        name="r", id="", spec=spec, etag="", phase=None, is_backed=True, message="", claims=()
    )
    assert ends_in(held, now) == said


@pytest.mark.parametrize(("free", "style"), [("-1", "red"), ("0", "")])
def test_a_node_that_lacks_what_it_should_have_is_red(free: str, style: str) -> None:
    assert top._free("cpu", ResourceAmounts("4", "4", "1", free)).style == style


def test_rows_that_are_too_wide_become_lines_and_no_word_is_cut() -> None:
    rows: list[Row] = [("a", "cpu 1, memory 4Gi, nvidia.com/gpu 2"), ("b", Cell("-", "dim"))]
    assert records(("NAME", "HOLDS"), rows, 24) == [
        "NAME:   a",
        "HOLDS:  cpu 1, memory",
        "        4Gi,",
        "        nvidia.com/gpu 2",
        "",
        "NAME:   b",
        "HOLDS:  -",
    ]
