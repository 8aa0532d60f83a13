"""A plain client of an API server, for tests that speak its protocol to the letter."""

import asyncio
import io
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
from kubernetes import config

Json = dict[str, Any]
JSON = "application/json"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"


@dataclass(frozen=True)
class Server:
    """The address and the credentials of an API server."""

    url: str
    headers: Mapping[str, str]
    context: ssl.SSLContext | None


def server_from(kubeconfig: str) -> Server:
    """Read a kubeconfig with any of its kinds of credentials."""
    settings = config.new_client_from_config(kubeconfig).configuration
    context = ssl.create_default_context(cafile=settings.ssl_ca_cert)
    if settings.cert_file:
        context.load_cert_chain(settings.cert_file, settings.key_file)
    token = settings.auth_settings().get("BearerToken", {}).get("value")
    headers = {"Authorization": token} if token else {}
    return Server(settings.host, headers, context)


@dataclass(frozen=True)
class Answer:
    """A response of the API server."""

    status: int
    body: Json
    headers: Mapping[str, str]

    @property
    def outline(self) -> tuple[int, str]:
        """Status and reason: a client decides by them."""
        return self.status, self.body.get("reason", "")

    @property
    def revision(self) -> str:
        revision: str = self.body["metadata"]["resourceVersion"]
        return revision

    @property
    def names(self) -> list[str]:
        return [item["metadata"]["name"] for item in self.body["items"]]


class Watching:
    """An open watch; events are taken one by one."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def next(self) -> tuple[str, Json]:
        """Return the type and the object of the next event."""
        line = await asyncio.wait_for(self._response.content.readline(), 20)
        event = json.loads(line)
        return event["type"], event["object"]

    async def rest(self) -> list[tuple[str, Json]]:
        """Return all events until the server ends the watch."""
        content = await asyncio.wait_for(self._response.content.read(), 20)
        events = (json.loads(line) for line in content.splitlines())
        return [(event["type"], event["object"]) for event in events]


class Api:
    """The API server under contract, and a namespace in it that belongs to one test."""

    def __init__(self, server: Server, session: aiohttp.ClientSession, namespace: str) -> None:
        self._server = server
        self._session = session
        self.namespace = namespace

    @property
    def nowhere(self) -> str:
        """A node that does not exist, so that no kubelet interferes.

        Each test has its own: after a while, controllers remove the pods on one that is missing.
        """
        return f"{self.namespace}-nowhere"

    def path(self, plural: str, *rest: str) -> str:
        """Return a path in the test's namespace."""
        return "/".join((f"/api/v1/namespaces/{self.namespace}/{plural}", *rest))

    async def send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        media: str | None = JSON,
        query: Mapping[str, str] | None = None,
        accept: str = JSON,
    ) -> Answer:
        """Send a request; `body` is encoded as JSON unless it is bytes."""
        data = (
            body
            if isinstance(body, bytes) or body is None
            else json.dumps(body, ensure_ascii=False).encode()
        )
        headers = {**self._server.headers, "Accept": accept}
        if data is not None and media:
            headers["Content-Type"] = media
        async with self._session.request(
            method,
            self._server.url + path,
            data=None if data is None else io.BytesIO(data),
            headers=headers,
            params=query,
            ssl=self._server.context or True,
            skip_auto_headers=["Content-Type"],
        ) as response:
            text = await response.text()
            # The OpenAPI index calls itself plain text.
            parsed = json.loads(text) if text.startswith("{") else {"text": text}
            return Answer(response.status, parsed, response.headers)

    async def get(self, path: str, **query: str) -> Answer:
        return await self.send("GET", path, query=query)

    async def post(self, path: str, body: object, **query: str) -> Answer:
        return await self.send("POST", path, body, query=query)

    async def put(self, path: str, body: object) -> Answer:
        return await self.send("PUT", path, body)

    async def patch(self, path: str, body: object, media: str = MERGE_PATCH) -> Answer:
        return await self.send("PATCH", path, body, media=media)

    async def apply(self, path: str, body: object, manager: str, **query: str) -> Answer:
        """Apply an object as a field manager does, server-side."""
        asked = {"fieldManager": manager, **query}
        return await self.send("PATCH", path, body, media=APPLY_PATCH, query=asked)

    async def delete(self, path: str, body: object = None, **query: str) -> Answer:
        return await self.send("DELETE", path, body, query=query)

    @asynccontextmanager
    async def watch(self, path: str, **query: str) -> AsyncIterator[Watching]:
        """Open a watch; it ends by itself after some seconds at the latest."""
        parameters = {"watch": "1", "timeoutSeconds": "30", **query}
        async with self._session.get(
            self._server.url + path,
            headers=self._server.headers,
            params=parameters,
            ssl=self._server.context or True,
        ) as response:
            assert response.status == 200, await response.text()
            try:
                yield Watching(response)
            finally:
                # Over TLS it would wait for the server to close it, too; the test may end before.
                if (open_still := response.connection) and open_still.transport:
                    open_still.transport.abort()

    # The objects that tests are made of.

    async def config_map(self, name: str, data: Json | None = None, **metadata: object) -> Answer:
        body = {"metadata": {"name": name, **metadata}, "data": data or {"key": "value"}}
        return await self.post(self.path("configmaps"), body)

    async def pod(self, name: str, spec: Json | None = None, **metadata: object) -> Answer:
        answer = await self.post(self.path("pods"), pod(name, spec, **metadata))
        assert answer.status == 201, answer.body
        return answer

    async def bind(self, name: str, node: str, **metadata: object) -> Answer:
        body = {"metadata": {"name": name, **metadata}, "target": {"kind": "Node", "name": node}}
        return await self.post(self.path("pods", name, "binding"), body)


def pod(name: str, spec: Json | None = None, **metadata: object) -> Json:
    """A pod that no scheduler and no kubelet cares for."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **metadata},
        "spec": {
            "schedulerName": "nobody",
            "containers": [{"name": "main", "image": "registry.k8s.io/pause:3.10"}],
            **(spec or {}),
        },
    }
