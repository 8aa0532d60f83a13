"""What passed on each version of Kubernetes is counted, recorded, and shown on a page."""

from __future__ import annotations

from typing import Literal

import pytest

from hack.release.record import FILE, PAGE, ROOT, Run, read, table, with_table
from hack.release.version import SCENARIOS, Outcomes

NODE_ID = "tests/e2e/test_holds.py::test_"
OLD = Run("1.9.2", "abc", "2030-01-01", {"holds": (3, 4)})
NEW = Run("1.10.0", "abc and changes", "2030-02-01", {"holds": (4, 4), "seats": (7, 8)})


def report(
    name: str, outcome: Literal["passed", "failed", "skipped"] = "passed"
) -> pytest.TestReport:
    return pytest.TestReport(f"{NODE_ID}{name}", ("", 0, ""), {}, outcome, None, "call")


def test_the_page_says_what_is_recorded() -> None:
    page = PAGE.read_text()
    assert page == with_table(page, read(FILE.read_text())), "run `python -m hack.release.record`"


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
        "|---|---|---|\n"
        "| holds | 3 of 4 | 4 of 4 |\n"
        "| seats | not run | 7 of 8 |\n"
        "| all of these | 3 of 4 | 11 of 12 |\n"
        "| on | 2030-01-01 | 2030-02-01 |\n"
        "| at commit | `abc` | `abc and changes` |\n"
    )
