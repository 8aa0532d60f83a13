"""The results on each version of Kubernetes are counted, recorded, and shown on a page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from hack.conformance import record as conformance
from hack.release.record import PAGE, RECORD, ROOT, Record, Run, table
from hack.release.version import SCENARIOS, Outcomes

NODE_ID = "tests/e2e/test_holds.py::test_"
OLD = Run("1.9.2", "abc", "2030-01-01", {"holds": (3, 4)})
NEW = Run("1.10.0", "abc and changes", "2030-02-01", {"holds": (4, 4), "seats": (7, 8)})


def report(
    name: str, outcome: Literal["passed", "failed", "skipped"] = "passed"
) -> pytest.TestReport:
    return pytest.TestReport(f"{NODE_ID}{name}", ("", 0, ""), {}, outcome, None, "call")


@pytest.mark.parametrize("record", [RECORD, conformance.RECORD])
def test_the_page_says_what_is_recorded(record: Record) -> None:
    assert record.page() == PAGE.read_text(), "run `python -m hack.release.record` and …conformance"


def test_a_run_replaces_that_of_the_same_suite_and_minor_version_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "page.md").write_text("begin\nold\nend\n")
    (tmp_path / "record.json").write_text("[]")
    monkeypatch.setattr("hack.release.record.PAGE", tmp_path / "page.md")
    record = Record(tmp_path / "record.json", "begin\n", "end\n", table)
    other, later = replace(OLD, suite="pod groups"), replace(OLD, version="1.9.3")
    record.add(NEW, other, OLD)
    record.add(later)
    assert record.runs() == [later, other, NEW]
    assert "| 1.9.3 | 1.9.2 | 1.10.0 |" in (tmp_path / "page.md").read_text()


def test_what_is_run_on_a_version_is_there() -> None:
    for path in SCENARIOS.values():
        file, _, name = path.partition("::")
        assert f"def {name}" in (ROOT / "tests/e2e" / file).read_text()


def test_a_scenario_has_passed_if_its_preparation_and_its_end_have_as_well() -> None:
    outcomes = Outcomes()
    for each in (
        *(report("good"), report("good"), report("good")),
        *(report("bad"), report("bad", "failed"), report("bad")),
        report("not begun", "failed"),
        report("left out", "skipped"),
    ):
        outcomes.pytest_runtest_logreport(each)
    assert outcomes.groups() == dict.fromkeys(SCENARIOS, (0, 0)) | {"holds": (1, 4)}


def test_what_failed_or_was_not_run_can_be_seen_in_the_table() -> None:
    assert table([OLD, NEW]) == (
        "| scenarios that passed | 1.9.2 | 1.10.0 |\n"
        "| --- | --- | --- |\n"
        "| holds | 3 of 4 | 4 of 4 |\n"
        "| seats | not run | 7 of 8 |\n"
        "| all of these | 3 of 4 | 11 of 12 |\n"
        "| on | 2030-01-01 | 2030-02-01 |\n"
        "| at commit | `abc` | `abc and changes` |\n"
    )


def test_what_failed_or_was_not_run_of_upstreams_specs_can_be_seen_in_its_table() -> None:
    old = Run("1.9.2", "abc", "2030-01-01", {"alone": (25, 25), "ours": (24, 25)}, "default")
    new = Run("1.10.0", "abc", "2030-02-01", {"alone": (25, 25)}, "default")
    assert conformance.table([old, new]) == (
        "| version | specs | alone | ours | on | at commit |\n"
        "| --- | --- | --- | --- | --- | --- |\n"
        "| 1.9.2 | default | 25 of 25 | 24 of 25 | 2030-01-01 | `abc` |\n"
        "| 1.10.0 | default | 25 of 25 | not run | 2030-02-01 | `abc` |\n"
    )
