import json
from typing import Any

import pytest

from reserver.cluster.pod import PodName
from reserver.errors import InvalidInput
from reserver.rebalance.prometheus_samples import Sample, failure, read_nodes, read_pods

NODES = {"n1", "n2"}


def answer(*series: tuple[dict[str, str], Any], kind: str = "vector") -> bytes:
    result = [{"metric": labels, "value": [1000.5, value]} for labels, value in series]
    return json.dumps(
        {"status": "success", "data": {"resultType": kind, "result": result}}
    ).encode()


@pytest.mark.parametrize(
    "labels",
    [
        {"instance": "n1"},
        {"instance": "n1:9100"},
        {"nodename": "n1", "instance": "10.0.0.1:9100"},
        {"node": "n1", "instance": "10.0.0.1:10250"},
    ],
    ids=str,
)
def test_a_node_is_known_by_the_labels_that_exporters_give_it(labels: dict[str, str]) -> None:
    assert read_nodes(answer((labels, "0.5")), NODES).nodes == {"n1": Sample(1000.5, 0.5)}


@pytest.mark.parametrize(
    "value", ["NaN", "+Inf", "-Inf", "-1", "1e308", "much", "", 7, None, True], ids=str
)
def test_a_value_that_is_no_amount_refuses_the_whole_answer(value: Any) -> None:
    with pytest.raises(InvalidInput) as raised:
        read_nodes(answer(({"instance": "n2"}, "1"), ({"instance": "n1"}, value)), NODES)
    assert raised.value.path.startswith("data.result")


def test_a_value_that_is_no_amount_is_named_with_its_series() -> None:
    with pytest.raises(InvalidInput, match=r'{instance="n1"} is .NaN., which is not an amount'):
        read_nodes(answer(({"instance": "n1"}, "NaN")), NODES)


def test_two_series_of_a_node_refuse_the_whole_answer() -> None:
    with pytest.raises(InvalidInput, match="n1 has more than one series"):
        read_nodes(answer(({"node": "n1", "mode": "a"}, "1"), ({"node": "n1"}, "2")), NODES)


def test_series_of_other_machines_are_passed_over_and_named() -> None:
    samples = read_nodes(answer(({"instance": "n1"}, "1"), ({"instance": "gone"}, "2")), NODES)
    assert list(samples.nodes) == ["n1"]
    assert samples.problems == ('{instance="gone"} belongs to no node',)


def test_series_of_other_machines_only_are_refused_with_what_to_do() -> None:
    with pytest.raises(InvalidInput, match="no series belongs to a node of the cluster") as raised:
        read_nodes(answer(({"instance": "10.0.0.1:9100"}, "1")), NODES)
    assert "instance is the node's name" in raised.value.remedy


def test_an_empty_vector_is_an_answer_of_no_node() -> None:
    assert read_nodes(answer(), NODES).nodes == {}


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"<html>",
        b"[]",
        b'{"status":"success"}',
        b'{"status":"success","data":{"resultType":"vector","result":{}}}',
        b'{"status":"success","data":{"resultType":"vector","result":[{"metric":{}}]}}',
        b'{"status":"success","data":{"resultType":"vector","result":[{"metric":{"a":1},"value":[1,"1"]}]}}',
        answer(kind="matrix"),
        answer(kind="scalar"),
        b'{"status":"error","errorType":"bad_data","error":"parse error"}',
    ],
)
def test_what_is_no_vector_is_refused(raw: bytes) -> None:
    with pytest.raises(InvalidInput):
        read_nodes(raw, NODES)


def test_what_prometheus_says_of_a_query_is_passed_on() -> None:
    assert failure(b'{"status":"error","errorType":"bad_data","error":"parse error"}') == (
        "bad_data: parse error"
    )
    assert not failure(b"<html>")


def test_pods_are_known_by_namespace_and_name() -> None:
    web = {"namespace": "shop", "pod": "web-0"}
    assert read_pods(answer((web, "2"))).pods == {PodName("shop", "web-0"): Sample(1000.5, 2.0)}


@pytest.mark.parametrize(
    ("labels", "value", "problem"),
    [
        ({"pod": "web-1"}, "2", "has no label namespace or no label pod"),
        ({"namespace": "mallory", "pod": "web-1"}, "NaN", "is not an amount"),
        ({"namespace": "mallory", "pod": "web-1"}, "1e308", "is not an amount"),
    ],
)
def test_a_broken_series_of_a_pod_leaves_those_of_others(
    labels: dict[str, str], value: str, problem: str
) -> None:
    found = read_pods(answer((labels, value), ({"namespace": "shop", "pod": "web-0"}, "2")))
    assert found.pods == {PodName("shop", "web-0"): Sample(1000.5, 2.0)}
    assert len(found.problems) == 1
    assert problem in found.problems[0]
