"""The verbs of a resource over HTTP."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import partial
from http import HTTPStatus

from aiohttp import hdrs, web

from reserver_demo.apiserver.binding import bind
from reserver_demo.apiserver.deletion import delete, delete_all, status_of
from reserver_demo.apiserver.discovery import APPLY, group_path
from reserver_demo.apiserver.eviction import evict
from reserver_demo.apiserver.listing import ListOptions, Page, list_page, parse_options
from reserver_demo.apiserver.registry import Registry, check_preconditions
from reserver_demo.apiserver.requests import (
    delete_options,
    dry_run,
    field_manager,
    read_configuration,
    read_json,
    read_object,
    read_patch,
    wants_table,
    warnings,
)
from reserver_demo.apiserver.resource import Resource
from reserver_demo.apiserver.schema import conform
from reserver_demo.apiserver.status import Json, success
from reserver_demo.apiserver.store import Key, Stored
from reserver_demo.apiserver.tables import table
from reserver_demo.apiserver.watch import Event, Watch
from reserver_demo.apiserver.wireformat import (
    encode,
    event_lines,
    list_bytes,
    list_metadata,
    object_bytes,
)

_JSON = "application/json"
_BINDING = "io.k8s.api.core.v1.Binding"
_EVICTION = "io.k8s.api.policy.v1.Eviction"


def json_response(body: bytes, status: HTTPStatus = HTTPStatus.OK) -> web.Response:
    """Return a response with encoded JSON."""
    return web.Response(body=body, status=status, content_type=_JSON)


class ResourceRoutes:
    """The verbs of one resource."""

    def __init__(self, registry: Registry, resource: Resource) -> None:
        self._registry = registry
        self._resource = resource

    def routes(self) -> Iterator[web.RouteDef]:
        """Yield the paths of the resource and their handlers."""
        base = f"/{group_path(self._resource.group, self._resource.version)}"
        everywhere = f"{base}/{self._resource.plural}"
        home = everywhere
        if self._resource.namespaced:
            home = f"{base}/namespaces/{{namespace}}/{self._resource.plural}"
            yield web.get(everywhere, self.list_or_watch)
        item = f"{home}/{{name}}"
        yield web.get(home, self.list_or_watch)
        yield web.post(home, self.create)
        yield web.delete(home, self.delete_collection)
        yield web.get(item, self.get)
        yield web.put(item, self.update)
        yield web.patch(item, self.patch)
        yield web.delete(item, self.delete)
        if self._resource.has_status:
            yield web.get(f"{item}/status", self.get)
            yield web.put(f"{item}/status", self.update)
            yield web.patch(f"{item}/status", self.patch)
        for action in self._resource.actions:
            yield web.post(f"{item}/{action}", self.bind if action == "binding" else self.evict)

    async def list_or_watch(self, request: web.Request) -> web.StreamResponse:
        """List objects, or watch them."""
        namespace = request.match_info.get("namespace", "")
        options = parse_options(request.query, self._resource, namespace)
        as_table = wants_table(request)
        if options.watch:
            return await self._watch(request, options, as_table=as_table)
        page = list_page(self._registry.store, self._resource, options)
        if as_table:
            return self._table(request, page)
        return json_response(list_bytes(self._resource, page))

    def _table(self, request: web.Request, page: Page) -> web.Response:
        body = self._as_table(request, page.items, list_metadata(page))
        return json_response(encode(body))

    def _as_table(self, request: web.Request, rows: list[Stored], metadata: Json) -> Json:
        include = request.query.get("includeObject", "Metadata")
        return table(self._resource, rows, metadata, self._registry.clock.now(), include)

    async def _watch(
        self, request: web.Request, options: ListOptions, *, as_table: bool
    ) -> web.StreamResponse:
        def encoded(event: Event) -> bytes:
            if event.stored is None:
                return encode(event.other)
            if not as_table:
                return object_bytes(self._resource, event.stored)
            metadata = {"resourceVersion": str(event.stored.revision)}
            return encode(self._as_table(request, [event.stored], metadata))

        watch = Watch(self._registry.store, self._resource, options, self._registry.clock)
        response = web.StreamResponse(headers={hdrs.CONTENT_TYPE: _JSON})
        await response.prepare(request)
        # A client that disconnects ends its watch.
        with contextlib.suppress(ConnectionResetError):
            async for events in watch.batches():
                await response.write(event_lines((event.kind, encoded(event)) for event in events))
        return response

    async def get(self, request: web.Request) -> web.Response:
        """Read one object."""
        as_table = wants_table(request)
        stored = self._registry.get(self._resource, self._key(request))
        if as_table:
            return self._table(request, Page([stored], stored.revision))
        return json_response(object_bytes(self._resource, stored))

    async def create(self, request: web.Request) -> web.Response:
        """Create one object."""
        resource = self._resource
        read = await read_object(request, resource.kind, resource.api_version, resource.decode)
        namespace = request.match_info.get("namespace", "")
        stored = self._registry.create(resource, namespace, read.value, dry_run=dry_run(request))
        return self._answer(request, stored, HTTPStatus.CREATED, read.unknown)

    async def update(self, request: web.Request) -> web.Response:
        """Replace one object, or its status."""
        resource = self._resource
        read = await read_object(request, resource.kind, resource.api_version, resource.decode)
        key = self._key(request)
        uid = read.value.get("metadata", {}).get("uid")
        # In a PUT the UID is a precondition; a patch must not change it.
        check_preconditions(resource, self._registry.get(resource, key), uid, None)
        stored = self._registry.update(
            resource,
            key,
            lambda _: read.value,
            subresource=_subresource(request),
            manager=field_manager(request),
            dry_run=dry_run(request),
        )
        return self._answer(request, stored, HTTPStatus.OK, read.unknown)

    async def patch(self, request: web.Request) -> web.Response:
        """Patch one object or its status, or apply a field manager's configuration."""
        if request.content_type == APPLY and not _subresource(request):
            return await self._apply(request)
        patch = await read_patch(request, self._resource)
        stored = self._registry.update(
            self._resource,
            self._key(request),
            patch,
            subresource=_subresource(request),
            manager=field_manager(request),
            dry_run=dry_run(request),
        )
        return self._answer(request, stored, HTTPStatus.OK, patch.unknown)

    async def _apply(self, request: web.Request) -> web.Response:
        read = await read_configuration(request, self._resource)
        stored, is_new = self._registry.apply(
            self._resource,
            self._key(request),
            read.value,
            manager=field_manager(request),
            force=request.query.get("force") == "true",
            dry_run=dry_run(request),
        )
        status = HTTPStatus.CREATED if is_new else HTTPStatus.OK
        return self._answer(request, stored, status, read.unknown)

    async def delete(self, request: web.Request) -> web.Response:
        """Delete one object."""
        options = delete_options(request, await read_json(request))
        deletion = delete(self._registry, self._resource, self._key(request), options)
        if deletion.gone and not self._resource.strategy.returns_deleted:
            return json_response(encode(status_of(self._resource, deletion.last)))
        return self._answer(request, deletion.last, HTTPStatus.OK, ())

    async def delete_collection(self, request: web.Request) -> web.Response:
        """Delete all selected objects."""
        options = delete_options(request, await read_json(request))
        wanted = parse_options(
            request.query, self._resource, request.match_info.get("namespace", "")
        )
        page = list_page(self._registry.store, self._resource, wanted)
        delete_all(self._registry, self._resource, page.items, options)
        return json_response(list_bytes(self._resource, page))

    async def bind(self, request: web.Request) -> web.Response:
        """Assign a pod to a node."""
        read = await read_object(request, "Binding", "v1", partial(conform, _BINDING))
        bind(self._registry, self._key(request), read.value, dry_run=dry_run(request))
        return json_response(encode(success(code=HTTPStatus.CREATED)), HTTPStatus.CREATED)

    async def evict(self, request: web.Request) -> web.Response:
        """Evict a pod."""
        read = await read_object(request, "Eviction", "policy/v1", partial(conform, _EVICTION))
        options = delete_options(request, read.value.get("deleteOptions"))
        evict(self._registry, self._key(request), read.value, options)
        return json_response(encode(success(code=HTTPStatus.CREATED)), HTTPStatus.CREATED)

    def _key(self, request: web.Request) -> Key:
        return Key(request.match_info.get("namespace", ""), request.match_info["name"])

    def _answer(
        self, request: web.Request, stored: Stored, status: HTTPStatus, unknown: tuple[str, ...]
    ) -> web.Response:
        response = json_response(object_bytes(self._resource, stored), status)
        for name, value in warnings(request, unknown):
            response.headers.add(name, value)
        return response


def _subresource(request: web.Request) -> str:
    return "status" if request.path.endswith("/status") else ""
