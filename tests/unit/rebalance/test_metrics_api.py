import json
from typing import Any

import pytest

from reserver.cluster.pod import PodName
from reserver.errors import InvalidInput
from reserver.rebalance.metrics_api import read_usage
from reserver.rebalance.readings import Reading

NOW = 1_767_225_660.0
AT = "2026-01-01T00:00:30Z"
READ_AT = NOW - 30


def listed(kind: str, *items: dict[str, Any]) -> bytes:
    return json.dumps({"kind": f"{kind}List", "items": items}).encode()


def node(name: str = "n1", **changes: Any) -> dict[str, Any]:
    usage = {"cpu": "1500m", "memory": "1Gi"}
    return {"metadata": {"name": name}, "timestamp": AT, "window": "20.05s", "usage": usage} | (
        changes
    )


def pod(*cpu: str) -> dict[str, Any]:
    containers = [{"name": f"c{n}", "usage": {"cpu": used}} for n, used in enumerate(cpu)]
    metadata = {"name": "web-0", "namespace": "shop"}
    return {"metadata": metadata, "timestamp": AT, "window": "15s", "containers": containers}


def test_a_nodes_reading_is_in_the_units_of_the_scheduler() -> None:
    readings = read_usage(listed("NodeMetrics", node()), None, NOW)
    assert readings.nodes == {"n1": Reading({"cpu": 1500.0, "memory": 2.0**30}, READ_AT, 20.05)}
    assert readings.problems == ()


def test_a_pods_reading_is_the_sum_of_its_containers() -> None:
    pods = listed("PodMetrics", pod("100m", "250000000n"))
    readings = read_usage(listed("NodeMetrics"), pods, NOW)
    assert readings.pods == {PodName("shop", "web-0"): Reading({"cpu": 350.0}, READ_AT, 15.0)}


def test_what_claims_to_be_of_later_is_of_now() -> None:
    later = node(timestamp="2026-01-01T09:00:00Z")
    assert read_usage(listed("NodeMetrics", later), None, NOW).nodes["n1"].at == NOW


@pytest.mark.parametrize(
    "changes",
    [
        {"usage": {"cpu": "-1"}},
        {"usage": {"cpu": "much"}},
        {"usage": []},
        {"timestamp": "now"},
        {"timestamp": None},
        {"window": "-15s"},
    ],
    ids=str,
)
def test_a_broken_item_is_passed_over_and_named(changes: dict[str, Any]) -> None:
    readings = read_usage(listed("NodeMetrics", node("bad", **changes), node()), None, NOW)
    assert list(readings.nodes) == ["n1"]
    (problem,) = readings.problems
    assert problem.startswith("NodeMetrics bad: ")


def test_thousands_of_broken_items_are_counted() -> None:
    broken = [node(f"n{n}", usage={"cpu": "?"}) for n in range(5000)]
    problems = read_usage(listed("NodeMetrics", *broken), None, NOW).problems
    assert len(problems) == 11
    assert problems[-1] == "and 4990 more"


@pytest.mark.parametrize(
    "raw", [b"", b"{}", b"[]", b'{"kind":"Status"}', b'{"kind":"NodeList","items":[]}']
)
def test_what_is_no_list_of_metrics_is_refused(raw: bytes) -> None:
    with pytest.raises(InvalidInput):
        read_usage(raw, None, NOW)
