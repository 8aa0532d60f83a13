"""Upstream's workloads name our configuration, and their results are read and compared in turns."""

from __future__ import annotations

import json

import pytest
import yaml

from hack.bench.upstream.workloads import Rate, Workload, rows, throughput, with_scheduler

BASIC = Workload("misc", "SchedulingBasic", "500Nodes")
ITEM = {"data": {"Average": 201.5}, "labels": {"Metric": "SchedulingThroughput"}}


def test_each_case_names_the_configuration_but_one_that_has_its_own() -> None:
    cases = "- name: A\n  workloads: [{name: 5Nodes}]\n- name: B\n  schedulerConfigPath: b.yaml\n"
    assert yaml.safe_load(with_scheduler(cases, "ours.yaml")) == [
        {"schedulerConfigPath": "ours.yaml", "name": "A", "workloads": [{"name": "5Nodes"}]},
        {"schedulerConfigPath": "b.yaml", "name": "B"},
    ]


def test_pods_a_second_are_the_average_of_the_throughput() -> None:
    other = {"data": {"Average": 3.0}, "labels": {"Metric": "scheduler_latency"}}
    assert throughput(json.dumps({"dataItems": [other, ITEM]})) == Rate(201.5)
    with pytest.raises(ValueError, match="no SchedulingThroughput among the items"):
        throughput(json.dumps({"dataItems": [other]}))


def test_what_is_done_within_a_second_is_rated_by_its_duration() -> None:
    took = {"data": {"Duration": 2.0}, "labels": {"Metric": "SchedulingDuration"}}
    assert throughput(json.dumps({"dataItems": [took]}), pods=50) == Rate(25.0)
    assert throughput(json.dumps({"dataItems": [ITEM, took]})) == Rate(201.5)


@pytest.mark.parametrize(("threshold", "is_too_low"), [(680.0, True), (200.0, False)])
def test_a_threshold_that_is_missed_is_no_other_fault(
    threshold: float, *, is_too_low: bool
) -> None:
    item = ITEM | {"data": {"Average": 201.5, "AverageThreshold": threshold}}
    rate = throughput(json.dumps({"dataItems": [item]}))
    assert (rate, rate.is_too_low) == (Rate(201.5, threshold), is_too_low)


def test_a_ratio_is_the_median_of_those_of_the_turns() -> None:
    found = {
        BASIC: {
            "alone": [Rate(100.0, 680.0), Rate(200.0, 680.0), Rate(50.0, 680.0)],
            "ours": [Rate(90.0), Rate(100.0), Rate(45.0)],
        }
    }
    assert [*rows(found, "alone")] == [("SchedulingBasic/500Nodes", "100", "90", "0.90", "680")]
