"""Calls to an HTTP extender, as kube-scheduler makes them (pkg/scheduler/extender.go)."""

from __future__ import annotations

from http import HTTPStatus
from typing import TypeVar

import aiohttp
import msgspec

from reserver.sim.scheduler.objects import PodView
from reserver.sim.scheduler.verdict import AttemptFailedError

T = TypeVar("T")


class FilterResult(msgspec.Struct, frozen=True):
    """What kube-scheduler reads of the answer to Filter."""

    node_names: list[str] | None = msgspec.field(default=None, name="NodeNames")
    failed: dict[str, str] | None = msgspec.field(default=None, name="FailedNodes")
    unresolvable: dict[str, str] | None = msgspec.field(
        default=None, name="FailedAndUnresolvableNodes"
    )
    error: str = msgspec.field(default="", name="Error")

    @property
    def reasons(self) -> dict[str, tuple[str, ...]]:
        """Why nodes were taken away."""
        both = (self.failed or {}) | (self.unresolvable or {})
        return {node: (reason,) for node, reason in both.items()}


class BindResult(msgspec.Struct, frozen=True):
    """What kube-scheduler reads of the answer to Bind."""

    error: str = msgspec.field(default="", name="Error")


class Extender:
    """An extender with `filterVerb: filter`, `bindVerb: bind` and `nodeCacheCapable: true`.

    Args:
        session: for the calls.
        url: the `urlPrefix`.
        timeout: seconds for one call (`httpTimeout`).
    """

    def __init__(self, session: aiohttp.ClientSession, url: str, timeout: float) -> None:
        self._session = session
        self._url = url.rstrip("/")
        self._timeout = aiohttp.ClientTimeout(total=timeout)

    async def filter(self, view: PodView, names: list[str]) -> FilterResult:
        """Ask which of the nodes can take the pod.

        Raises:
            AttemptFailedError: the extender says so, breaks the protocol, or does not answer.
        """
        args = {"Pod": view.content, "Nodes": None, "NodeNames": names}
        result = await self._send("filter", args, FilterResult)
        if result.error:
            raise AttemptFailedError(result.error)
        known = set(names)
        for name in result.node_names or ():
            if name not in known:
                raise AttemptFailedError(
                    f'extender "{self._url}" claims a filtered node "{name}" which is not found in '
                    "the input node list"
                )
        return result

    async def bind(self, view: PodView, node: str) -> None:
        """Let the extender bind the pod.

        Raises:
            AttemptFailedError: it did not.
        """
        name = view.pod.name
        args = {
            "PodName": name.name,
            "PodNamespace": name.namespace,
            "PodUID": view.pod.uid,
            "Node": node,
        }
        result = await self._send("bind", args, BindResult)
        if result.error:
            raise AttemptFailedError(result.error)

    async def _send(self, verb: str, args: object, kind: type[T]) -> T:
        url = f"{self._url}/{verb}"
        headers = {"Content-Type": "application/json"}
        data = msgspec.json.encode(args)
        try:
            async with self._session.post(
                url, data=data, headers=headers, timeout=self._timeout
            ) as response:
                body = await response.read()
            if response.status != HTTPStatus.OK:
                problem = f"failed {verb} with extender at URL {url}, code {response.status}"
                raise AttemptFailedError(problem)
            return msgspec.json.decode(body, type=kind)
        except (aiohttp.ClientError, TimeoutError, msgspec.DecodeError) as error:
            raise AttemptFailedError(f'Post "{url}": {error}') from error
