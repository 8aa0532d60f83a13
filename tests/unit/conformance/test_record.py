"""What passed of upstream's specs is recorded by version and suite, and shown on a page."""

from __future__ import annotations

from dataclasses import replace

from hack.conformance.record import FILE, Run, load, table, with_runs, with_table
from hack.release.record import PAGE

OLD = Run("1.9.2", "default", "abc", "2030-01-01", {"alone": (25, 25), "ours": (24, 25)})
NEW = Run("1.10.0", "default", "abc", "2030-02-01", {"alone": (25, 25)})


def test_the_page_says_what_is_recorded() -> None:
    page = PAGE.read_text()
    assert page == with_table(page, load(FILE.read_text())), (
        "run `python -m hack.conformance.record`"
    )


def test_a_run_replaces_that_of_the_same_suite_and_minor_version_only() -> None:
    other = replace(OLD, suite="pod groups")
    later = replace(OLD, version="1.9.3")
    assert with_runs([NEW, other, OLD], [later]) == [later, other, NEW]


def test_what_failed_or_was_not_run_can_be_seen_in_the_table() -> None:
    assert table([OLD, NEW]) == (
        "| version | specs | alone | ours | on | at commit |\n"
        "| --- | --- | --- | --- | --- | --- |\n"
        "| 1.9.2 | default | 25 of 25 | 24 of 25 | 2030-01-01 | `abc` |\n"
        "| 1.10.0 | default | 25 of 25 | not run | 2030-02-01 | `abc` |\n"
    )
