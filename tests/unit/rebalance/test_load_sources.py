import json

import pytest

from reserver.errors import ApiError, LoadUnknown
from reserver.rebalance.load_sources import metrics_api
from tests.unit.k8s.fakes import NO_ANSWER, ScriptedClient, refused

NODES = {"kind": "NodeMetricsList", "items": []}
PODS = {"kind": "PodMetricsList", "items": []}


async def test_all_nodes_are_one_list_and_all_pods_another() -> None:
    client = ScriptedClient(NODES, PODS)
    await metrics_api(client, lambda: 0.0)
    paths = [request.path for request in client.requests]
    assert paths == ["/apis/metrics.k8s.io/v1beta1/nodes", "/apis/metrics.k8s.io/v1beta1/pods"]


async def test_the_list_of_pods_is_read_only_if_somebody_asks_for_it() -> None:
    client = ScriptedClient(NODES)
    await metrics_api(client, lambda: 0.0, with_pods=False)
    assert len(client.requests) == 1


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (refused(404, "NotFound"), "is metrics-server installed?"),
        (refused(503, "ServiceUnavailable"), "is metrics-server installed?"),
        (NO_ANSWER, "is metrics-server installed?"),
        (refused(403, "Forbidden"), "403 Forbidden"),
        (ApiError(0, "TooLarge", "the answer exceeds 256 MiB"), "exceeds 256 MiB"),
        (b"<html>", "something other than a list"),
        (json.dumps(PODS).encode(), "is not NodeMetricsList"),
    ],
    ids=str,
)
async def test_without_lists_of_metrics_load_is_unknown(answer: object, said: str) -> None:
    with pytest.raises(LoadUnknown) as raised:
        await metrics_api(ScriptedClient(answer), lambda: 0.0, with_pods=False)
    assert said in str(raised.value)
