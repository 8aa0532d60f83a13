"""Upstream's workloads name our configuration, and their results are read and compared in turns."""

from __future__ import annotations

import json

import pytest
import yaml

from hack.bench.upstream.workloads import Workload, rows, throughput, with_scheduler

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
    assert throughput(json.dumps({"dataItems": [other, ITEM]})) == 201.5
    with pytest.raises(ValueError, match="no SchedulingThroughput among 1 items"):
        throughput(json.dumps({"dataItems": [other]}))


def test_a_ratio_is_the_median_of_those_of_the_turns() -> None:
    found = {BASIC: {"alone": [100.0, 200.0, 50.0], "ours": [90.0, 100.0, 45.0]}}
    assert [*rows(found, "alone")] == [("SchedulingBasic/500Nodes", "100", "90", "0.9 ×")]
