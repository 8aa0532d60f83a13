"""The API server as an HTTP server on loopback."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus

from aiohttp import web

from reserver_demo.apiserver import discovery
from reserver_demo.apiserver.registry import Registry
from reserver_demo.apiserver.requests import MAX_BODY
from reserver_demo.apiserver.resources import (
    NAMESPACE_RESOURCE,
    PRIORITY_CLASS_RESOURCE,
    RESOURCES,
)
from reserver_demo.apiserver.routes import ResourceRoutes, json_response
from reserver_demo.apiserver.status import (
    Json,
    StatusError,
    method_not_allowed,
    unknown_resource,
)
from reserver_demo.apiserver.store import Store
from reserver_demo.apiserver.wireformat import encode
from reserver_demo.clock import Clock

_LOOPBACK = "127.0.0.1"
_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_SYSTEM_PRIORITIES = {"system-cluster-critical": 2000000000, "system-node-critical": 2000001000}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def serve(store: Store, clock: Clock, port: int = 0) -> AsyncIterator[str]:
    """Run the API server; yield its base URL.

    Args:
        store: the store of objects.
        clock: the clock of objects and watches.
        port: the TCP port; 0 for any free one.
    """
    registry = Registry(store, clock)
    _bootstrap(registry)
    app = web.Application(client_max_size=MAX_BODY, middlewares=[_statuses])
    app.add_routes([*_discovery_routes()])
    for resource in RESOURCES:
        app.add_routes([*ResourceRoutes(registry, resource).routes()])

    async def end_watches(_: web.Application) -> None:
        store.close()

    app.on_shutdown.append(end_watches)
    runner = web.AppRunner(app, access_log=None, handle_signals=False)
    await runner.setup()
    try:
        site = web.TCPSite(runner, _LOOPBACK, port)
        await site.start()
        bound: int = runner.addresses[0][1]
        yield f"http://{_LOOPBACK}:{bound}"
    finally:
        await runner.cleanup()


def _bootstrap(registry: Registry) -> None:
    """Create the namespaces and priority classes of every cluster."""
    for resource in RESOURCES:
        registry.store.collection(resource.plural)
    for name in _NAMESPACES:
        registry.create(NAMESPACE_RESOURCE, "", {"metadata": {"name": name}})
    for name, value in _SYSTEM_PRIORITIES.items():
        body = {"metadata": {"name": name}, "value": value}
        registry.create(PRIORITY_CLASS_RESOURCE, "", body)


@web.middleware
async def _statuses(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Return errors as Status objects."""
    try:
        return await handler(request)
    except StatusError as error:
        return _failure(error)
    except web.HTTPNotFound:
        return _failure(unknown_resource())
    except web.HTTPMethodNotAllowed:
        return _failure(method_not_allowed())


def _failure(error: StatusError) -> web.Response:
    return json_response(encode(error.status()), error.code)


def _discovery_routes() -> list[web.RouteDef]:
    def answer(body: Json) -> Handler:
        encoded = encode(body)

        async def handle(_: web.Request) -> web.Response:
            return json_response(encoded, HTTPStatus.OK)

        return handle

    async def healthy(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    routes = [web.get(path, healthy) for path in ("/healthz", "/livez", "/readyz")]
    routes += [
        web.get("/version", answer(discovery.VERSION)),
        web.get("/api", answer(discovery.core_versions())),
        web.get("/apis", answer(discovery.group_list())),
        web.get("/openapi/v3", answer(discovery.openapi_index())),
    ]
    for group, version in discovery.groups():
        path = discovery.group_path(group, version)
        routes.append(web.get(f"/{path}", answer(discovery.resource_list(group, version))))
        document = answer(discovery.openapi_document(group, version))
        routes.append(web.get(f"/openapi/v3/{path}", document))
        if group:
            routes.append(web.get(f"/apis/{group}", answer(discovery.api_group(group, version))))
    return routes
