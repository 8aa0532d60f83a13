"""NodeMetrics of Koordinator as a source of load."""

import json
from typing import Any

import pytest

from reserver.cluster.pod import PodName
from reserver.errors import InvalidInput, LoadUnknown
from reserver.rebalance.arguments.load import LoadSource, LowNodeLoad
from reserver.rebalance.load_sources import node_metrics
from reserver.rebalance.measured_load import NODE_METRICS, source_of
from reserver.rebalance.metrics_api import read_node_metrics
from reserver.rebalance.readings import Reading
from tests.unit.k8s.fakes import NO_ANSWER, ScriptedClient, refused

NOW = 1_767_225_660.0
AT = "2026-01-01T00:00:30Z"
READ_AT = NOW - 30


def usage(cpu: str, memory: str = "1Gi") -> dict[str, Any]:
    return {"resources": {"cpu": cpu, "memory": memory}}


def metric(name: str = "n1", at: str | None = AT, **changes: Any) -> dict[str, Any]:
    pods = [{"namespace": "shop", "name": "web-0", "podUsage": usage("250m")}]
    status = {
        "updateTime": at,
        "nodeMetric": {"nodeUsage": usage("9"), "systemUsage": usage("500m", "2Gi")},
        "podsMetric": pods,
    }
    return {"metadata": {"name": name}, "status": status | changes}


def listed(*items: Any) -> bytes:
    return json.dumps({"kind": "NodeMetricList", "items": items}).encode()


def test_a_node_uses_what_its_system_and_its_pods_use() -> None:
    found = read_node_metrics(listed(metric()), NOW)
    node, web = {"cpu": 750.0, "memory": 3 * 2.0**30}, {"cpu": 250.0, "memory": 2.0**30}
    assert found.nodes == {"n1": Reading(node, READ_AT, 300.0)}
    assert found.pods == {PodName("shop", "web-0"): Reading(web, READ_AT, 300.0)}
    assert found.problems == ()


def test_an_agent_that_does_not_know_the_system_says_the_sum() -> None:
    raw = listed(metric(nodeMetric={"nodeUsage": usage("9")}))
    assert read_node_metrics(raw, NOW).nodes["n1"].usage["cpu"] == 9000.0


def test_the_window_is_the_one_that_the_agent_averages_over() -> None:
    policy = {"metricCollectPolicy": {"aggregateDurationSeconds": 60}}
    (reading,) = read_node_metrics(listed(metric() | {"spec": policy}), NOW).nodes.values()
    assert reading.window_s == 60.0


def test_of_two_reports_on_a_pod_the_later_one_counts() -> None:
    late = [{"namespace": "shop", "name": "web-0", "podUsage": usage("1")}]
    later = metric("n2", "2026-01-01T00:00:50Z", podsMetric=late)
    for order in ((metric(), later), (later, metric())):
        found = read_node_metrics(listed(*order), NOW)
        assert found.pods[PodName("shop", "web-0")].usage["cpu"] == 1000.0


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (metric("bad", None), "has no data of the node yet"),
        (metric("bad", nodeMetric=None), "has no data of the node yet"),
        ({"metadata": {"name": "bad"}}, "has no data of the node yet"),
        (metric("bad", "soon"), "status.updateTime"),
        (metric("bad", nodeMetric={"nodeUsage": usage("lots")}), "usage.cpu"),
        (metric("bad", podsMetric=[{"podUsage": usage("-1")}]), "status.podsMetric[0].usage.cpu"),
        (metric("bad", podsMetric=7), "podsMetric"),
    ],
)
def test_a_broken_item_costs_no_other(broken: dict[str, Any], said: str) -> None:
    found = read_node_metrics(listed(broken, metric()), NOW)
    (problem,) = found.problems
    assert problem.startswith("NodeMetric bad: ")
    assert said in problem
    assert set(found.nodes) == {"n1"}


def test_another_list_is_none() -> None:
    with pytest.raises(InvalidInput, match="is not NodeMetricList"):
        read_node_metrics(b'{"kind": "NodeMetricsList", "items": []}', NOW)


async def test_all_nodes_are_one_list() -> None:
    client = ScriptedClient({"kind": "NodeMetricList", "items": [metric()]})
    assert set((await node_metrics(client, NOW)).nodes) == {"n1"}
    paths = [request.path for request in client.requests]
    assert paths == ["/apis/slo.koordinator.sh/v1alpha1/nodemetrics"]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (refused(404, "NotFound"), "is Koordinator installed?"),
        (refused(403, "Forbidden"), "403 Forbidden"),
        (NO_ANSWER, "cannot be read"),
        (b"<html>", "something other than a list"),
    ],
    ids=str,
)
async def test_without_a_list_load_is_unknown(answer: object, said: str) -> None:
    with pytest.raises(LoadUnknown) as raised:
        await node_metrics(ScriptedClient(answer), NOW)
    assert said in str(raised.value)


def test_a_policy_names_the_source() -> None:
    cpu = {"cpu": 50.0}
    args = LowNodeLoad(
        low_thresholds=cpu,
        high_thresholds=cpu,
        metrics_utilization=LoadSource(source="NodeMetric"),
    )
    assert list(args.problems()) == []
    assert source_of(args) == NODE_METRICS
