"""The client against connections that break, and one that falls silent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from reserver.errors import ApiError
from reserver.k8s import credentials
from reserver.k8s.client import CONNECTIONS, ApiClient
from reserver.k8s.http_client import ERROR

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def client_of(
    handler: Handler, folder: Path, connections: int = CONNECTIONS
) -> AsyncIterator[ApiClient]:
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", handler)
    async with TestServer(application) as server:
        url = str(server.make_url("/")).rstrip("/")
        config = {
            "clusters": [{"name": "c", "cluster": {"server": url}}],
            "users": [{"name": "u", "user": {}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        (folder / "kubeconfig").write_text(json.dumps(config))
        access = await credentials.load(folder / "kubeconfig")
        async with ApiClient(access, connections) as client:
            yield client


async def lines_of(client: ApiClient, idle_limit_s: float = 5) -> list[bytes]:
    return [line async for line in client.watch("/api/v1/pods", {}, idle_limit_s)]


async def test_a_watch_that_falls_silent_is_taken_for_broken(tmp_path: Path) -> None:
    let_go = asyncio.Event()

    async def silent(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b'{"type":"BOOKMARK"}\n')
        await let_go.wait()
        return response

    async with client_of(silent, tmp_path) as client:
        watch = aiter(client.watch("/api/v1/pods", {}, 0.2))
        assert await anext(watch) == b""
        assert await anext(watch) == b'{"type":"BOOKMARK"}'
        with pytest.raises(ApiError, match="did not answer in time"):
            await anext(watch)
        let_go.set()


async def test_events_are_whole_lines_however_they_arrive(tmp_path: Path) -> None:
    big = b"x" * 300_000

    async def dribble(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for part in (b"one\ntw", b"o\n", big[:1000], big[1000:], b"\nlast\n"):
            await response.write(part)
        return response

    async with client_of(dribble, tmp_path) as client:
        assert await lines_of(client) == [b"", b"one", b"two", big, b"last"]


async def test_an_answer_that_breaks_off_is_an_error_and_no_event(tmp_path: Path) -> None:
    async def broken(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        await response.prepare(request)
        await response.write(b"one\nhalf a li")
        assert request.transport is not None
        request.transport.close()
        return response

    async with client_of(broken, tmp_path) as client:
        with pytest.raises(ApiError, match="broke off"):
            await lines_of(client)


async def test_an_api_server_that_is_not_there_is_said_to_be_so(tmp_path: Path) -> None:
    async def never(_: web.Request) -> web.StreamResponse:
        raise AssertionError

    async with client_of(never, tmp_path) as client:
        pass
    async with client:
        with pytest.raises(ApiError, match="cannot be reached") as caught:
            await client.get("/api/v1/pods")
    assert (caught.value.status, caught.value.is_definite) == (0, False)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"kind":"Status","reason":"Conflict","message":"too late","code":409}', "too late"),
        (b"<html>a proxy says no</html>", "<html>a proxy says no</html>"),
        (b"", ""),
    ],
    ids=["status", "html", "empty"],
)
async def test_what_the_api_server_says_of_a_failure_is_kept(
    tmp_path: Path, body: bytes, message: str
) -> None:
    async def refuse(_: web.Request) -> web.StreamResponse:
        return web.Response(status=409, body=body)

    async with client_of(refuse, tmp_path) as client:
        with pytest.raises(ApiError) as caught:
            await client.create("/api/v1/pods", {})
    assert (caught.value.status, caught.value.reason) == (409, "Conflict")
    assert caught.value.message == message
    assert caught.value.is_definite


async def test_what_is_created_at_once_shares_connections_and_no_answers(tmp_path: Path) -> None:
    seen: set[object] = set()

    async def echo(request: web.Request) -> web.StreamResponse:
        seen.add(request.transport)
        response = web.StreamResponse(status=201)  # Its length is not said: it comes in chunks.
        await response.prepare(request)
        for byte in await request.read():
            await response.write(bytes([byte]))
        return response

    async with client_of(echo, tmp_path, connections=3) as client:
        bodies = [{"n": number} for number in range(40)]
        made = await asyncio.gather(*(client.create("/api/v1/pods", body) for body in bodies))
    assert [json.loads(each) for each in made] == bodies
    assert len(seen) == 3


async def test_an_answer_that_breaks_off_leaves_open_what_became_of_a_creation(
    tmp_path: Path,
) -> None:
    async def broken(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        await response.prepare(request)
        await response.write(b"{")
        assert request.transport is not None
        request.transport.abort()
        return response

    async with client_of(broken, tmp_path) as client:
        with pytest.raises(ApiError, match="broke off") as caught:
            await client.create("/api/v1/pods", {})
    assert (caught.value.status, caught.value.is_definite) == (0, False)


async def test_the_answer_to_a_creation_that_was_given_up_is_nobodys(tmp_path: Path) -> None:
    let_go, asked = asyncio.Event(), asyncio.Event()

    async def slow(request: web.Request) -> web.StreamResponse:
        body = await request.read()
        if body == b'"first"':
            asked.set()
            await let_go.wait()
        return web.Response(body=body)

    async with client_of(slow, tmp_path, connections=1) as client:
        first = asyncio.create_task(client.create("/api/v1/pods", "first"))
        await asked.wait()
        first.cancel()
        assert await client.create("/api/v1/pods", "second") == b'"second"'
        let_go.set()
        assert await client.create("/api/v1/pods", "third") == b'"third"'
        assert first.cancelled()


async def test_requests_are_counted_by_method_and_code(tmp_path: Path) -> None:
    async def answering(request: web.Request) -> web.StreamResponse:
        code = request.path.strip("/")
        if code == "0" and request.transport is not None:
            request.transport.close()
        return web.json_response({}, status=int(code) or 200)

    async with client_of(answering, tmp_path) as client:
        await client.get("/200")
        await client.create("/201", {})
        for code, send in ((404, client.get), (0, client.get)):
            with pytest.raises(ApiError):
                await send(f"/{code}")
        for code in (429, 0):
            with pytest.raises(ApiError):
                await client.create(f"/{code}", {})
        with pytest.raises(ApiError):
            await client.patch("/409", {})
        assert client.request_counts.by_code == {
            ("GET", "200"): 1,
            ("GET", "404"): 1,
            ("GET", ERROR): 1,
            ("POST", "201"): 1,
            ("POST", "429"): 1,
            ("POST", ERROR): 1,
            ("PATCH", "409"): 1,
        }
        assert client.request_counts.waited_s == 0


@pytest.mark.parametrize("verb", ["get", "create"])
async def test_it_is_measured_how_long_requests_wait_for_a_connection(
    tmp_path: Path, verb: str
) -> None:
    asked, let_go = asyncio.Event(), asyncio.Event()

    async def slow(_: web.Request) -> web.StreamResponse:
        asked.set()
        await let_go.wait()
        return web.json_response({})

    async with client_of(slow, tmp_path, connections=1) as client:
        send = client.get if verb == "get" else lambda path: client.create(path, {})
        async with asyncio.TaskGroup() as tasks:
            for _ in range(2):
                tasks.create_task(send("/x"))
            await asked.wait()
            let_go.set()
        assert client.request_counts.waited_s > 0
        assert sum(client.request_counts.by_code.values()) == 2


async def test_a_frozen_client_breaks_off_writes_and_goes_on_reading(tmp_path: Path) -> None:
    """A write that waits in the API server would be executed by a restored etcd."""
    asked, let_go = asyncio.Event(), asyncio.Event()

    async def waits(request: web.Request) -> web.StreamResponse:
        if request.method != "GET" and "/leases/" not in request.path:
            asked.set()
            await let_go.wait()
        return web.json_response({})

    async with client_of(waits, tmp_path) as client:
        for write in (client.create, client.replace, client.patch, client.delete):
            client._frozen = ""
            asked.clear()
            writing = asyncio.create_task(write("/api/v1/pods/a", {}))
            await asked.wait()
            client.freeze("etcd was restored")
            with pytest.raises(ApiError, match="did not answer in time"):
                await writing
            with pytest.raises(ApiError, match="etcd was restored"):
                await write("/api/v1/pods/a", {})
        assert await client.get("/api/v1/pods/a") == b"{}"
        lease = "/apis/coordination.k8s.io/v1/namespaces/a/leases/b"
        assert await client.replace(lease, {}) == b"{}"
        let_go.set()
