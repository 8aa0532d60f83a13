"""Queries to a server whose answers a test sets; tests/e2e queries a real Prometheus."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from reserver.cluster.pod import PodName
from reserver.errors import LoadUnknown
from reserver.rebalance import prometheus
from reserver.rebalance.arguments.utilization import METRIC
from reserver.rebalance.prometheus import NODE_QUERIES, POD_QUERIES, Prometheus, queries_for
from reserver.rebalance.readings import Reading

NODES = frozenset({"n1", "n2"})
Answering = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ScriptedPrometheus:
    """A server whose answers a test sets.

    Attributes:
        answers: the answers by query; any other query gets an empty vector.
        requests: the queries, with the token.
    """

    def __init__(self) -> None:
        self.answers: dict[str, Answering | web.Response] = {}
        self.requests: list[tuple[str, str]] = []
        self.url = ""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        query = str((await request.post())["query"])
        self.requests.append((query, request.headers.get("Authorization", "")))
        answer = self.answers.get(query, vector())
        return answer if isinstance(answer, web.Response) else await answer(request)


@pytest.fixture
async def scripted() -> AsyncIterator[ScriptedPrometheus]:
    scripted = ScriptedPrometheus()
    app = web.Application()
    app.add_routes([web.post("/api/v1/query", scripted.answer)])
    async with TestServer(app) as server:
        scripted.url = str(server.make_url(""))
        yield scripted


def vector(*series: tuple[dict[str, str], str]) -> web.Response:
    result = [{"metric": labels, "value": [1000.0, value]} for labels, value in series]
    body = {"status": "success", "data": {"resultType": "vector", "result": result}}
    return web.Response(text=json.dumps(body))


async def anonymous() -> str:
    return ""


async def asked(scripted: ScriptedPrometheus, **queries: str) -> None:
    async with Prometheus(scripted.url, anonymous) as client:
        await client.read(NODES, queries or {"cpu": "q"}, with_pods=False)


async def test_amounts_of_nodes_and_pods_are_in_the_units_of_the_scheduler(
    scripted: ScriptedPrometheus,
) -> None:
    scripted.answers[NODE_QUERIES["cpu"]] = vector(({"nodename": "n1"}, "1.5"))
    scripted.answers[NODE_QUERIES["memory"]] = vector(({"nodename": "n1"}, "1024"))
    web_0 = {"namespace": "shop", "pod": "web-0"}
    scripted.answers[POD_QUERIES["cpu"]] = vector((web_0, "0.25"))
    async with Prometheus(scripted.url, anonymous) as client:
        readings = await client.read(NODES, queries_for(("cpu", "memory"), {}))
    assert readings.nodes == {"n1": Reading({"cpu": 1500.0, "memory": 1024.0}, 1000.0, 300.0)}
    assert readings.pods == {PodName("shop", "web-0"): Reading({"cpu": 250.0}, 1000.0, 300.0)}


async def test_the_token_is_sent_and_read_anew_for_each_query(scripted: ScriptedPrometheus) -> None:
    tokens = iter(("first", "second"))

    async def token() -> str:
        return next(tokens)

    async with Prometheus(scripted.url, token) as client:
        await client.read(NODES, {"cpu": "a", "memory": "b"}, with_pods=False)
    assert scripted.requests == [("a", "Bearer first"), ("b", "Bearer second")]


async def test_shares_are_between_0_and_1(scripted: ScriptedPrometheus) -> None:
    scripted.answers["q"] = vector(({"instance": "n1"}, "0.75"))
    async with Prometheus(scripted.url, anonymous) as client:
        (reading,) = (await client.shares(NODES, "q")).nodes.values()
        assert reading.usage == {METRIC: 75.0}
        scripted.answers["q"] = vector(({"instance": "n1"}, "75"))
        with pytest.raises(LoadUnknown, match="node n1 has 75"):
            await client.shares(NODES, "q")


async def test_a_resource_that_nobody_has_a_query_for_is_named() -> None:
    with pytest.raises(LoadUnknown, match=r"nvidia\.com/gpu"):
        queries_for(("cpu", "nvidia.com/gpu"), {})
    assert queries_for(("nvidia.com/gpu",), {"nvidia.com/gpu": "q"}) == {"nvidia.com/gpu": "q"}


async def elsewhere(_: web.Request) -> web.StreamResponse:
    raise web.HTTPFound("http://elsewhere.example/")


async def breaks_off(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Length": "100"})
    await response.prepare(request)
    await response.write(b'{"status"')
    assert request.transport is not None
    request.transport.close()
    return response


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (web.Response(status=500, text="oops"), "status 500: Internal Server Error"),
        (
            web.Response(status=400, text='{"status":"error","errorType":"bad_data","error":"e"}'),
            "status 400: bad_data: e",
        ),
        (web.Response(status=401), "status 401: Unauthorized"),
        (elsewhere, "status 302: Found"),
        (breaks_off, "it cannot be reached"),
        (web.Response(text="<html>"), "JSON is malformed"),
        (vector(({"instance": "n1"}, "NaN")), "not an amount"),
        (vector(({"instance": "n1"}, "1"), ({"instance": "n1"}, "1")), "more than one series"),
        (vector(({"instance": "elsewhere"}, "1")), "no series belongs to a node"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_prometheus_that_lies_is_told_so_with_its_url_and_the_query(
    scripted: ScriptedPrometheus, answer: Answering | web.Response, said: str
) -> None:
    scripted.answers["q"] = answer
    with pytest.raises(LoadUnknown) as raised:
        await asked(scripted)
    assert said in str(raised.value)
    assert scripted.url.rstrip("/") in str(raised.value)
    assert "(query: q)" in str(raised.value)


async def test_an_answer_that_never_ends_is_cut_off(
    scripted: ScriptedPrometheus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prometheus, "_MOST_BYTES", 2**20)
    sent = 0

    async def floods(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b" " * 65_536)
            sent += 65_536

    scripted.answers["q"] = floods
    with pytest.raises(LoadUnknown, match="exceeds 1 MiB"):
        await asked(scripted)
    assert sent < 2**24


async def test_a_prometheus_that_hangs_is_not_waited_for(
    scripted: ScriptedPrometheus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prometheus, "_TIMEOUT", aiohttp.ClientTimeout(total=0.1))
    released = asyncio.Event()

    async def hangs(_: web.Request) -> web.StreamResponse:
        await released.wait()
        return vector()

    scripted.answers["q"] = hangs
    with pytest.raises(LoadUnknown, match="did not answer in time"):
        await asked(scripted)
    released.set()


async def test_a_prometheus_that_is_away_is_named() -> None:
    async with Prometheus("http://127.0.0.1:1", anonymous) as client:
        with pytest.raises(LoadUnknown, match=r"http://127\.0\.0\.1:1: it cannot be reached"):
            await client.read(NODES, {"cpu": "q"})
