import asyncio
import io
import json
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import aiohttp
import pytest
from prometheus_client.core import CounterMetricFamily

from reserver.extender.metrics import Metrics
from reserver.extender.server import EXTENDER_LIMITS, MAX_BODY_BYTES, Routes
from reserver.http.access import Access, listening
from reserver.http.connections import Hosts
from reserver.scheduling.state import State
from reserver.scheduling.verdicts import Nominate
from reserver.webhook.handlers import WEBHOOK_LIMITS
from tests.builders import pod, requested, reservation
from tests.unit.base.quarantined import Faults, poisoned
from tests.unit.extender.conftest import Served
from tests.waiting import until

Client = aiohttp.ClientSession
SEAT = reservation("r", cpu="4")
NODE = {"Node": "worker-1"}


class Measured:
    """The state that metrics read."""

    def __init__(self, served: Served) -> None:
        self._served = served

    @property
    def state(self) -> State:
        return self._served.state

    @property
    def expiring(self) -> int:
        return 0

    @property
    def is_ready(self) -> bool:
        return not self._served.readiness.said


def metrics(served: Served) -> Metrics:
    families = [CounterMetricFamily("reserver_lists", "Lists.", value=7)]
    return Metrics(Measured(served), lambda: families)


@pytest.fixture
async def client(served: Served) -> AsyncIterator[Client]:
    def checks() -> list[tuple[str, str]]:
        return [("lease", ""), ("watch/api/v1/nodes", "".join(served.readiness.said))]

    obstacles = lambda: served.readiness.said  # noqa: E731 - as it is handed over
    routes = Routes(served.extender, metrics(served), obstacles, checks)
    door = Access(EXTENDER_LIMITS, Hosts.of("127.0.0.1", ()), lambda _: None)
    async with listening(routes.paths(), ("127.0.0.1", 0), 1.0, door) as url:
        connector = aiohttp.TCPConnector(limit=1)
        headers = {"Content-Type": "application/json"}
        async with aiohttp.ClientSession(url, connector=connector, headers=headers) as client:
            yield client


def filter_call(pod_name: str, *names: str, cpu: str = "1") -> bytes:
    containers = [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]
    metadata = {"name": pod_name, "namespace": "shop", "uid": f"uid-{pod_name}"}
    sent = {"metadata": metadata, "spec": {"containers": containers}, "status": {}}
    return json.dumps({"Pod": sent, "Nodes": None, "NodeNames": names}).encode()


def bind_call(pod_name: str, node: str = "worker-1") -> bytes:
    uid = f"uid-{pod_name}"
    call = {"PodName": pod_name, "PodNamespace": "shop", "PodUID": uid, "Node": node}
    return json.dumps(call).encode()


def preempt_call(pod_name: str, *, cpu: str = "1", **victims: list[str]) -> bytes:
    call = json.loads(filter_call(pod_name, cpu=cpu))
    by_node = {
        f"worker-{node[1:]}": {"Pods": [{"UID": f"uid-{v}"} for v in pods], "NumPDBViolations": 2}
        for node, pods in victims.items()
    }
    return json.dumps({"Pod": call["Pod"], "NodeNameToMetaVictims": by_node}).encode()


async def post(client: Client, path: str, body: bytes) -> tuple[int, bytes]:
    async with client.post(path, data=body) as response:
        assert response.headers["Content-Type"].startswith("application/json")
        assert "Content-Length" in response.headers
        return response.status, await response.read()


async def get(client: Client, path: str) -> tuple[int, str]:
    async with client.get(path) as response:
        return response.status, await response.text()


async def test_filter_answers_with_the_nodes_that_pass(client: Client) -> None:
    assert await post(client, "/filter", filter_call("a", "worker-2", "worker-1")) == (
        200,
        b'{"NodeNames":["worker-2","worker-1"],"FailedAndUnresolvableNodes":{},"Error":""}',
    )


async def test_filter_answers_with_why_none_passes(served: Served, client: Client) -> None:
    served.show(SEAT)
    assert await post(client, "/filter", filter_call("a", "worker-1", cpu="9")) == (
        200,
        b'{"NodeNames":[],"FailedAndUnresolvableNodes":{"worker-1":"%s"},"Error":""}'
        % b"held by reservation shop/store/r",
    )


async def test_bind_answers_with_nothing_once_the_pod_is_bound(
    served: Served, client: Client
) -> None:
    served.show(pod("a", cpu="1"))
    assert await post(client, "/bind", bind_call("a")) == (200, b'{"Error":""}')
    assert served.cluster.bound == [("a", "worker-1", ())]


async def test_bind_answers_with_why_the_pod_may_not_have_the_node(
    served: Served, client: Client
) -> None:
    served.show(SEAT, pod("a", cpu="1"))
    assert await post(client, "/bind", bind_call("a")) == (
        200,
        b'{"Error":"held by reservation shop/store/r"}',
    )


async def test_until_the_cluster_is_seen_calls_are_errors(served: Served, client: Client) -> None:
    served.readiness.said = ("nodes are not listed yet",)
    words = "reserver does not see the cluster yet: nodes are not listed yet"
    status, answer = await post(client, "/filter", filter_call("a", "worker-1"))
    assert status == 200
    assert json.loads(answer) == {
        "NodeNames": [],
        "FailedAndUnresolvableNodes": {},
        "Error": words,
    }
    status, answer = await post(client, "/bind", bind_call("a"))
    assert (status, json.loads(answer)) == (200, {"Error": words})


@pytest.mark.parametrize("path", ["/filter", "/bind"])
@pytest.mark.parametrize("body", [b"", b"{", b"null", b"[]", b"{}", b"\xff", b"[" * 60_000])
async def test_a_malformed_call_is_told_what_is_wrong_with_it(
    client: Client, path: str, body: bytes
) -> None:
    status, answer = await post(client, path, body)
    assert status == 400
    assert ";" in json.loads(answer)["error"]


async def test_a_pod_with_a_malformed_quantity_is_told_where(client: Client) -> None:
    status, answer = await post(client, "/filter", filter_call("a", "worker-1", cpu="much"))
    assert status == 400
    assert "spec.containers[0].resources.requests.cpu" in json.loads(answer)["error"]


async def test_a_call_that_is_too_large_is_refused(client: Client) -> None:
    body = io.BytesIO(b" " * (MAX_BODY_BYTES + 1))
    async with client.post("/filter", data=body) as response:
        assert response.status == 413
    assert (await get(client, "/healthz"))[0] == 200


async def test_a_call_with_ten_thousand_names_is_not_too_large(client: Client) -> None:
    names = [
        f"a-rather-long-name-of-a-worker-node-{number}.example.com" for number in range(10_000)
    ]
    status, answer = await post(client, "/filter", filter_call("a", *names))
    assert status == 200
    assert json.loads(answer)["NodeNames"] == names[:100]


async def test_effects_are_carried_out_after_the_answer(served: Served, client: Client) -> None:
    served.show(SEAT)
    served.cluster.gate.clear()
    async with asyncio.timeout(20):
        status, answer = await post(client, "/filter", filter_call("owner", "worker-2"))
    assert (status, json.loads(answer)["NodeNames"]) == (200, [])
    assert served.cluster.effects == []
    served.cluster.gate.set()
    for _ in range(100):
        await asyncio.sleep(0)
    (effect,) = served.cluster.effects
    assert isinstance(effect, Nominate)
    assert effect.node == "worker-1"


async def test_preempt_answers_with_the_nodes_where_evicting_helps(
    served: Served, client: Client
) -> None:
    served.show(SEAT, pod("v1", node="worker-1", cpu="1"), pod("v2", node="worker-2", cpu="4"))
    served.show(pod("a", cpu="1"))
    answer = await post(client, "/preempt", preempt_call("a", w1=["v1"], w2=["v2"]))
    victims = b'{"worker-2":{"Pods":[{"UID":"uid-v2"}],"NumPDBViolations":2}}'
    assert answer == (200, b'{"NodeNameToMetaVictims":' + victims + b"}")
    answer = await post(client, "/preempt", preempt_call("a", w1=["v1"]))
    assert answer == (200, b'{"NodeNameToMetaVictims":{}}')


async def test_preempt_answers_with_a_failure_until_the_cluster_is_seen(
    served: Served, client: Client
) -> None:
    served.readiness.said = ("pods are not listed yet",)
    status, text = await post(client, "/preempt", preempt_call("a", w1=["v1"]))
    assert status == 503
    assert b"pods are not listed yet" in text


async def test_a_preempt_call_that_is_malformed_is_answered_with_the_reason(client: Client) -> None:
    status, text = await post(client, "/preempt", b'{"Pod": null}')
    assert (status, b"Pod: is missing" in text) == (400, True)


async def test_the_next_call_on_a_connection_does_not_wait_for_an_effect(
    served: Served, client: Client
) -> None:
    served.show(SEAT)
    served.cluster.gate.clear()
    async with asyncio.timeout(20):
        await post(client, "/filter", filter_call("owner", "worker-2"))
        status, _ = await post(client, "/filter", filter_call("a", "worker-2"))
    assert status == 200


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


async def test_a_kube_scheduler_that_ends_wants_its_binding_no_more(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reserver.extender.pod_writes.LEFT_S", 0)
    served.show(pod("owner", cpu="2"))
    served.cluster.gate.clear()
    routes = Routes(served.extender, metrics(served), lambda: served.readiness.said)
    body = json.dumps({"PodName": "owner", "PodNamespace": "shop", "PodUID": "uid-owner"} | NODE)
    door = Access(EXTENDER_LIMITS, Hosts.of("127.0.0.1", ()), lambda _: None)
    async with listening(routes.paths(), ("127.0.0.1", 0), 1.0, door) as url:
        address = urlsplit(url)
        _, writer = await asyncio.open_connection(address.hostname, address.port)
        head = "POST /bind HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        head += f"Content-Length: {len(body)}\r\n\r\n"
        writer.write((head + body).encode())
        await until(lambda: bool(served.cluster.bound))
        assert await served.cluster.is_wanted()
        writer.transport.abort()
        for _ in range(100):
            if not await served.cluster.is_wanted():
                break
            await asyncio.sleep(0.01)
        assert not await served.cluster.is_wanted()
    assert requested(served.state, "worker-1") == 2000  # Until it is known, it counts.


async def _told(url: str, sent: bytes) -> bytes:
    """Return all that is answered to some bytes."""
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    writer.write(sent)
    async with asyncio.timeout(10):
        answer = await reader.read()
    writer.close()
    return answer


async def test_what_raises_while_a_head_is_read_is_refused_and_costs_a_line(
    served: Served, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection ended without an answer, and each time with a traceback."""
    raised: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, said: raised.append(said))
    routes = Routes(served.extender, metrics(served), lambda: served.readiness.said)
    door = Access(WEBHOOK_LIMITS, Hosts.of("127.0.0.1", ()), lambda _: None)
    async with listening(routes.paths(), ("127.0.0.1", 0), 1.0, door) as url:
        head = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
        answer = await _told(url, head + b"0" * 5_000 + b"5\r\n\r\nhello")
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert not faults
        monkeypatch.setattr(Access, "admit", poisoned(Access.admit, lambda *_, **__: True))
        answer = await _told(url, head + b"0\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert faults.pop("http") == 1
    assert not raised
