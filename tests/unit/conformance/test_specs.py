"""The results of upstream's specs are read from Ginkgo's report, and compared by spec."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from hack.conformance.specs import SuiteFault, read, share, worse
from hack.conformance.suite import PINS, SUITES, suites
from hack.controlplane.build import versions


def spec(text: str, state: str, message: str = "", kind: str = "It") -> dict[str, Any]:
    failure = {"Failure": {"Message": message}} if message else {}
    texts = ["[sig-scheduling] Preemption"] if kind == "It" else None
    return {
        "ContainerHierarchyTexts": texts,
        "LeafNodeType": kind,
        "LeafNodeText": text,
        "State": state,
        **failure,
    }


def report(*specs: dict[str, Any]) -> str:
    return json.dumps([{"SpecReports": [*specs]}])


def test_a_spec_is_named_as_upstream_names_it_and_keeps_its_state() -> None:
    outcomes = read(
        report(
            spec("", "passed", kind="SynchronizedBeforeSuite"),
            spec("evicts", "passed"),
            spec("waits", "timedout", "after an hour"),
        )
    )
    assert outcomes == {
        "[sig-scheduling] Preemption evicts": "passed",
        "[sig-scheduling] Preemption waits": "timedout",
    }


def test_what_the_filter_left_out_is_no_outcome_but_what_skipped_itself_is() -> None:
    outcomes = read(
        report(
            spec("evicts", "passed"),
            spec("left out", "skipped"),
            spec("needs two zones", "skipped", "Requires two zones"),
        )
    )
    assert [*outcomes.values()] == ["passed", "skipped"]
    assert share(outcomes) == (1, 2)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (report(spec("", "failed", "no nodes", "BeforeSuite")), "BeforeSuite failed: no nodes"),
        (report(spec("left out", "skipped")), "no spec was run"),
        (report(), "no spec was run"),
    ],
)
def test_a_suite_that_ran_nothing_is_a_fault(text: str, said: str) -> None:
    with pytest.raises(SuiteFault, match=said):
        read(text)


@pytest.mark.parametrize(
    ("alone", "ours", "lost"),
    [
        ("passed", "passed", None),
        ("passed", "failed", "failed"),
        ("passed", "skipped", "skipped"),
        ("passed", None, "not run"),
        ("failed", "failed", None),
        ("failed", "passed", None),
        (None, "failed", None),
    ],
)
def test_what_passes_alone_has_to_pass(
    alone: str | None, ours: str | None, lost: str | None
) -> None:
    found = worse({"evicts": alone} if alone else {}, {"evicts": ours} if ours else {})
    assert found == ({"evicts": lost} if lost else {})


def test_each_version_has_its_pins_and_a_suite() -> None:
    for version in versions():
        assert suites(version)
        assert (PINS / f"{version}.mod").is_file()
        assert (PINS / f"{version}.sum").is_file()


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("[sig-scheduling] LimitRange should list, patch and delete [Conformance]", 0),
        ("[sig-scheduling] SchedulerPredicates [Serial] validates that NodeSelector is", 0),
        ("[sig-scheduling] SchedulerPreemption [Serial] validates basic preemption works", 0),
        ("[sig-scheduling] WorkloadAwarePreemption [FeatureGate:GenericWorkload] should", 1),
        ("[sig-scheduling] Multi-AZ Clusters should spread the pods of a service", None),
        ("[sig-node] LimitRange should", None),
    ],
)
def test_a_spec_belongs_to_one_suite_or_to_none(name: str, number: int | None) -> None:
    assert [n for n, each in enumerate(SUITES) if re.search(each.focus, name)] == (
        [] if number is None else [number]
    )
