"""Calls of an HTTP extender, as in kube-scheduler (pkg/scheduler/extender.go)."""

from __future__ import annotations

from http import HTTPStatus

import aiohttp
import msgspec

from reserver_demo.scheduler.view import PodView

_TIMEOUT = aiohttp.ClientTimeout(total=5.0)


class AttemptFailedError(Exception):
    """The attempt to schedule a pod failed, without a result for the nodes."""


class Answer(msgspec.Struct, frozen=True, rename="pascal"):
    """The fields of the answers to Filter and Bind that kube-scheduler reads."""

    node_names: list[str] | None = None
    failed_nodes: dict[str, str] | None = None
    failed_and_unresolvable_nodes: dict[str, str] | None = None
    error: str = ""


class Extender:
    """An extender with `filterVerb: filter`, `bindVerb: bind` and `nodeCacheCapable: true`."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self._url = url.rstrip("/")

    async def filter(self, view: PodView, names: list[str]) -> Answer:
        """Return the extender's answer about nodes for a pod."""
        return await self._send("filter", Pod=view.content, Nodes=None, NodeNames=names)

    async def bind(self, view: PodView, node: str) -> None:
        """Let the extender bind the pod."""
        namespace, name = view.pod.name
        pod = {"PodName": name, "PodNamespace": namespace, "PodUID": view.pod.uid}
        await self._send("bind", **pod, Node=node)

    async def _send(self, verb: str, **args: object) -> Answer:
        """Call a verb.

        Raises:
            AttemptFailedError: the answer is an error, malformed or absent.
        """
        url = f"{self._url}/{verb}"
        try:
            async with self._session.post(url, json=args, timeout=_TIMEOUT) as response:
                body = await response.read()
            if response.status != HTTPStatus.OK:
                problem = f"failed {verb} with extender at URL {url}, code {response.status}"
                raise AttemptFailedError(problem)
            answer = msgspec.json.decode(body, type=Answer)
        except (aiohttp.ClientError, TimeoutError, msgspec.DecodeError) as error:
            raise AttemptFailedError(f'Post "{url}": {error}') from error
        if answer.error:
            raise AttemptFailedError(answer.error)
        return answer
