"""What passed on each version of Kubernetes is counted, recorded, and shown on a page."""

from __future__ import annotations

from typing import Literal

import pytest

from hack.controlplane.build import versions
from hack.release.record import FILE, PAGE, ROOT, Run, read, table, with_run, with_table
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


def test_all_that_is_run_on_a_version_is_recorded_for_each_and_passed() -> None:
    runs = read(FILE.read_text())
    assert [run.version.rpartition(".")[0] for run in runs] == versions()
    for run in runs:
        assert run.groups.keys() == SCENARIOS.keys()
        assert all(passed == tried > 0 for passed, tried in run.groups.values()), run


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


def test_a_run_takes_the_place_of_the_last_one_on_its_minor_version() -> None:
    again = Run("1.9.3", "def", "2030-03-01", {"holds": (4, 4)})
    runs = with_run(with_run(with_run([], NEW), OLD), again)
    assert runs == [again, NEW]


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


def test_the_table_on_the_page_is_replaced_and_the_rest_of_it_stays() -> None:
    once = with_table(PAGE.read_text(), [OLD])
    assert with_table(once, read(FILE.read_text())) == PAGE.read_text()
    assert table([OLD]) in once
