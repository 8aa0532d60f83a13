"""A recorded history of a real control plane: correct as recorded, caught once corrupted."""

from __future__ import annotations

import random
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import pytest

from hack.promises.check import Kind, check, judge, read_history
from hack.promises.history import history_of
from tests.unit.promises.corruptions import CORRUPTIONS, a_stranger_takes_more, nobody_removed_it
from tests.unit.promises.recording import FOLDER, SCHEDULERS, Recording
from tests.unit.promises.tape import Tape


def test_the_recording_is_correct_and_shows_what_it_should() -> None:
    report = check(read_history(FOLDER), schedulers=SCHEDULERS)
    assert (report.violations, report.warnings, report.notes) == ((), (), ())
    assert report.counts["owners"] == 3
    assert report.counts["judged"] == report.counts["pods bound"] == 19


@pytest.mark.parametrize(
    ("corrupt", "kind"), CORRUPTIONS, ids=[c.__name__.strip("_") for c, _ in CORRUPTIONS]
)
def test_each_corruption_is_caught(corrupt: Callable[[Recording], None], kind: Kind) -> None:
    recording = Recording()
    assert recording.kinds() == set()
    corrupt(recording)
    assert kind in recording.kinds()


def test_every_kind_of_violation_has_its_corruption() -> None:
    assert {kind for _, kind in CORRUPTIONS} == set(Kind)


@pytest.mark.parametrize("seed", range(10))
def test_the_order_of_lines_does_not_matter_nor_that_one_comes_twice(seed: int) -> None:
    recording = Recording()
    nobody_removed_it(recording)
    a_stranger_takes_more(recording)
    before = judge(history_of(recording.records, recording.manager), Tape.rules())
    shuffled = deepcopy(recording.records) + deepcopy(recording.records)
    random.Random(seed).shuffle(shuffled)
    after = judge(history_of(shuffled, recording.manager), Tape.rules())
    assert after == before


def test_half_a_line_at_the_end_is_passed_over(tmp_path: Path) -> None:
    whole = (FOLDER / "history.jsonl").read_text()
    (tmp_path / "history.jsonl").write_text(whole + whole[:100])
    assert read_history(tmp_path).lines == read_history(FOLDER).lines
