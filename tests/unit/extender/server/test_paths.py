"""Health, readiness, explanations and metrics over HTTP."""

import json

import pytest

from tests.builders import pod
from tests.unit.extender.conftest import Served
from tests.unit.extender.server.calls import (
    SEAT,
    Client,
    bind_call,
    filter_call,
    get,
    post,
    preempt_call,
)


async def test_it_is_healthy_while_it_answers(served: Served, client: Client) -> None:
    served.readiness.said = ("nothing is listed yet",)
    assert await get(client, "/healthz") == (200, "ok\n")
    assert await get(client, "/livez") == (200, "ok\n")


@pytest.mark.parametrize("query", ["verbose", "verbose=1", "verbose=&exclude=x"])
async def test_readiness_is_shown_check_by_check(
    served: Served, client: Client, query: str
) -> None:
    text = "[+]lease ok\n[+]watch/api/v1/nodes ok\nreadyz check passed\n"
    assert await get(client, f"/readyz?{query}") == (200, text)
    served.readiness.said = ("it is not listed yet",)
    text = "[+]lease ok\n[-]watch/api/v1/nodes failed: it is not listed yet\nreadyz check failed\n"
    assert await get(client, f"/readyz?{query}") == (503, text)
    assert await get(client, "/readyz?x=verbose") == (503, "it is not listed yet\n")


async def test_it_is_ready_when_nothing_is_missing_and_says_what_is(
    served: Served, client: Client
) -> None:
    assert await get(client, "/readyz") == (200, "ok\n")
    served.readiness.said = ("/api/v1/nodes is not listed yet", "/api/v1/pods is not listed yet")
    text = "/api/v1/nodes is not listed yet\n/api/v1/pods is not listed yet\n"
    assert await get(client, "/readyz") == (503, text)


async def test_a_pod_is_explained(served: Served, client: Client) -> None:
    served.show(SEAT, pod("a", cpu="1"))
    status, text = await get(client, "/explain/shop/a")
    explained = json.loads(text)
    assert status == 200
    assert (explained["pod"], explained["nodes_without_holds"]) == ("shop/a", 1)
    (account,) = explained["nodes_with_holds"]
    assert (account["node"], account["fits"]) == ("worker-1", False)
    assert account["resources"]["cpu"] == {
        "requested_by_pod": 1000,
        "allocatable": 4000,
        "requested": 0,
        "held_for_others": 4000,
        "free": 0,
    }


async def test_a_pod_that_nobody_knows_cannot_be_explained(client: Client) -> None:
    status, text = await get(client, "/explain/shop/ghost")
    assert (status, json.loads(text)) == (404, {"error": "there is no pod shop/ghost"})


async def test_nothing_is_explained_until_the_cluster_is_seen(
    served: Served, client: Client
) -> None:
    served.readiness.said = ("pods are not listed yet",)
    status, text = await get(client, "/explain/shop/a")
    assert status == 503
    assert "pods are not listed yet" in json.loads(text)["error"]


async def test_calls_and_what_is_held_are_counted(served: Served, client: Client) -> None:
    served.show(SEAT, pod("a", cpu="1"))
    await post(client, "/filter", filter_call("a", "worker-2"))
    await post(client, "/filter", filter_call("a", "worker-1", cpu="9"))
    await post(client, "/bind", bind_call("a", "worker-2"))
    await post(client, "/bind", bind_call("b"))
    await post(client, "/preempt", preempt_call("a", w2=["v2"]))
    await post(client, "/preempt", preempt_call("a", w1=["v1"]))
    _, text = await get(client, "/metrics")
    for line in (
        'reserver_extender_calls_total{outcome="passed",verb="filter"} 1.0',
        'reserver_extender_calls_total{outcome="refused",verb="filter"} 1.0',
        'reserver_extender_calls_total{outcome="passed",verb="preempt"} 1.0',
        'reserver_extender_calls_total{outcome="refused",verb="preempt"} 1.0',
        'reserver_extender_calls_total{outcome="bound",verb="bind"} 1.0',
        'reserver_extender_calls_total{outcome="refused",verb="bind"} 1.0',
        'reserver_extender_call_seconds_count{verb="filter"} 2.0',
        "reserver_lists_total 7.0",
        "reserver_ready 1.0",
    ):
        assert line in text.splitlines()
