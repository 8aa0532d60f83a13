"""An extender that gives the answers that a test sets."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from reserver_demo.client import ApiClient

PODS = "/api/v1/namespaces/default/pods"
Json = dict[str, Any]


@dataclass
class FakeExtender:
    """Gives the answers that a test sets, and records the calls.

    Attributes:
        allow: the nodes that pass, by pod; all nodes for any other pod.
        error: the Error of every answer to Filter.
        bind_error: the Error of every answer to Bind.
    """

    allow: dict[str, Sequence[str]] = field(default_factory=dict)
    error: str = ""
    bind_error: str = ""
    url: str = ""
    client: ApiClient | None = None
    filters: list[Json] = field(default_factory=list)
    binds: list[Json] = field(default_factory=list)
    asked: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def filter(self, request: web.Request) -> web.Response:
        args = await request.json()
        self.filters.append(args)
        names, pod = args["NodeNames"], args["Pod"]["metadata"]["name"]
        passing = [name for name in names if name in self.allow.get(pod, names)]
        failed = {name: "held by reservation x" for name in names if name not in passing}
        async with self.asked:
            self.asked.notify_all()
        answer = {"NodeNames": passing, "FailedAndUnresolvableNodes": failed, "Error": self.error}
        return web.json_response(answer)

    async def bind(self, request: web.Request) -> web.Response:
        args = await request.json()
        self.binds.append(args)
        if not self.bind_error and self.client:
            body = {
                "metadata": {"name": args["PodName"], "uid": args["PodUID"]},
                "target": {"kind": "Node", "name": args["Node"]},
            }
            await self.client.send("POST", f"{PODS}/{args['PodName']}/binding", body)
        return web.json_response({"Error": self.bind_error})

    async def calls(self, number: int) -> list[Json]:
        """Return the Filter calls once so many have come."""
        async with asyncio.timeout(20), self.asked:
            await self.asked.wait_for(lambda: len(self.filters) >= number)
        return self.filters
