"""Servers of the same extender: Reserver's own, and others with HTTP/2.

`python -m hack.bench.connections.server KIND FOLDER` prints its port once it listens, and ends when
its standard input does. Reserver does not install the packages of the others.
"""

from __future__ import annotations

import argparse
import asyncio
import ssl
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import uvloop

from hack.bench.documents import encode, new_pod
from hack.bench.server import NoCluster, UpToDate
from hack.bench.world import Size, state
from hack.controlplane.process import HeldPort
from reserver.base.gc_tuning import brief_collections
from reserver.extender.handlers import Extender
from reserver.extender.metrics import Metrics
from reserver.extender.server import EXTENDER_LIMITS, Routes
from reserver.http.access import Access, listening
from reserver.http.connections import Hosts
from reserver.http.message import HttpRequest, HttpResponse, Paths
from reserver.http.tls import ServerTls
from reserver.http.tls_files import TlsFiles
from reserver.k8s.objects.objects import decode
from reserver.k8s.objects.pods import PodObject
from reserver.process import logs
from reserver.settings.serve import LogLevel

_SIZE = Size(nodes=1_000, pods=10_000, reservations=100)
_BIND_S = 0.01
"""Seconds in which the API server writes a binding."""

_STARTING_S = 1.5
_TYPE = "application/json"

Answer = Callable[[str, bytes], Awaitable[HttpResponse]]


async def _plain(folder: Path, paths: Paths, metrics: Metrics) -> None:
    del folder
    await _listen(paths, metrics, None)


async def _tls(folder: Path, paths: Paths, metrics: Metrics) -> None:
    files = TlsFiles(folder / "tls.crt", folder / "tls.key", folder / "ca.crt")
    await _listen(paths, metrics, ServerTls(files, ["system:kube-scheduler"]))


async def _listen(paths: Paths, metrics: Metrics, tls: ServerTls | None) -> None:
    door = Access(EXTENDER_LIMITS, Hosts.of("127.0.0.1", ()), metrics.count_refused, tls)
    async with listening(paths, ("127.0.0.1", 0), 1.0, door) as url:
        await _until_closed(urlsplit(url).port or 0)


async def _hypercorn(folder: Path, paths: Paths, metrics: Metrics) -> None:
    del metrics
    answer = _answering(paths)

    async def app(scope: Mapping[str, Any], receive: Any, send: Any) -> None:  # noqa: ANN401 (ASGI)
        if scope["type"] != "http":
            return
        body, is_more = b"", True
        while is_more:
            message = await receive()
            body += message.get("body", b"")
            is_more = message.get("more_body", False)
        found = await answer(scope["path"], body)
        headers = [(b"content-type", _TYPE.encode()), (b"content-length", b"%d" % len(found.body))]
        await send({"type": "http.response.start", "status": found.status, "headers": headers})
        await send({"type": "http.response.body", "body": found.body})

    port = _free()
    config = import_module("hypercorn.config").Config()
    config.bind = [f"127.0.0.1:{port}"]
    config.certfile, config.keyfile = str(folder / "tls.crt"), str(folder / "tls.key")
    config.ca_certs, config.verify_mode = str(folder / "ca.crt"), ssl.CERT_REQUIRED
    config.accesslog = config.errorlog = None
    stop = asyncio.Event()
    serve = import_module("hypercorn.asyncio").serve
    await _serve_until_closed(serve(app, config, shutdown_trigger=stop.wait), port)


async def _granian(folder: Path, paths: Paths, metrics: Metrics) -> None:
    del metrics
    answer = _answering(paths)

    async def app(scope: Any, protocol: Any) -> None:  # noqa: ANN401 (RSGI)
        found = await answer(scope.path, await protocol())
        protocol.response_bytes(int(found.status), [("content-type", _TYPE)], found.body)

    port = _free()
    constants = import_module("granian.constants")
    server = import_module("granian.server.embed").Server(
        app,
        address="127.0.0.1",
        port=port,
        interface=constants.Interfaces.RSGI,
        http=constants.HTTPModes.auto,
        ssl_cert=folder / "tls.crt",
        ssl_key=folder / "tls.key",
        ssl_ca=folder / "ca.crt",
        ssl_client_verify=True,
        log_enabled=False,
    )
    await _serve_until_closed(server.serve(), port)


KINDS = {"plain": _plain, "tls": _tls, "hypercorn": _hypercorn, "granian": _granian}


def _answering(paths: Paths) -> Answer:
    async def answer(path: str, body: bytes) -> HttpResponse:
        request = HttpRequest("POST", path, {"content-length": str(len(body))})
        request.body = body
        found = paths[path][1](request)
        return found if isinstance(found, HttpResponse) else await found

    return answer


async def _serve_until_closed(serving: Any, port: int) -> None:  # noqa: ANN401 (a coroutine of theirs)
    task = asyncio.ensure_future(serving)
    await asyncio.sleep(_STARTING_S)
    await _until_closed(port)
    task.cancel()


async def _until_closed(port: int) -> None:
    print(port, flush=True)
    await asyncio.to_thread(sys.stdin.read)


def _free() -> int:
    held = HeldPort()
    held.close()
    return held.number


async def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    logs.configure(LogLevel.WARNING)
    cluster, nothing = state(_SIZE), NoCluster()
    cluster.pod_seen(decode(PodObject, encode(new_pod("web-1"))).value())
    known = UpToDate(cluster)
    metrics = Metrics(known, tuple)

    async def bound() -> HttpResponse:
        await asyncio.sleep(_BIND_S)
        return HttpResponse(b"{}")

    async with asyncio.TaskGroup() as tasks:
        extender = Extender(
            cluster, nothing, nothing, time.time, known, tasks, on_event=lambda _: None
        )
        paths = dict(Routes(extender, metrics, known.obstacles).paths())
        paths["/bind"] = ("POST", lambda _: bound())
        with brief_collections():
            await KINDS[options.kind](options.folder, paths, metrics)


if __name__ == "__main__":
    uvloop.run(main())
