"""Calls of kube-scheduler over HTTP, and their answers."""

import asyncio
import io
import json
from urllib.parse import urlsplit

import pytest

from reserver.extender.server import EXTENDER_LIMITS, MAX_BODY_BYTES, Routes
from reserver.http.access import Access, listening
from reserver.http.connections import Hosts
from reserver.scheduling.verdicts import Nominate
from reserver.webhook.handlers import WEBHOOK_LIMITS
from tests.builders import pod, requested
from tests.unit.base.quarantined import Faults, poisoned
from tests.unit.extender.conftest import Served
from tests.unit.extender.server.calls import (
    SEAT,
    Client,
    bind_call,
    filter_call,
    get,
    metrics,
    post,
    preempt_call,
)
from tests.waiting import until

NODE = {"Node": "worker-1"}


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
    """Return the whole answer to some bytes."""
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
    """Each such connection once ended without an answer, and logged a traceback."""
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
