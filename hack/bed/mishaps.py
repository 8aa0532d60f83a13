"""Faults of bindings on their way to the API server and back."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from http import HTTPStatus

from aiohttp import web

Forward = Callable[[], Awaitable[web.Response]]

LATEST_REQUEST = 1.5
"""Most seconds between the decision of a binding and its execution."""

_ANSWER_DELAYS = (1.0, 2.0, 4.0)  # seconds
LONGEST_DELAY = 27.0
"""Longer than reserver lets a Bind call wait, shorter than kube-scheduler does; in seconds."""
_LONGEST_EVERY = 20  # late answers


class Mishaps:
    """Chooses what happens to each binding: nothing at first.

    Attributes:
        every: one binding of so many goes wrong; 0: none.
        only: the kinds that may happen; empty: all.
        seen: how many of each kind happened.
        undecided: number of late refusals: Reserver counts these pods as bound until the answer.
    """

    KINDS = ("late-request", "late-answer", "failed", "lost", "done-but-failed")

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)  # noqa: S311
        ways = (self._late_request, self._late_answer, self._failed, self._lost)
        self._ways = dict(zip(self.KINDS, (*ways, self._done_but_failed), strict=True))
        self._bindings = self._changes = 0
        self.every = 0
        self.only: frozenset[str] = frozenset()
        self.seen: Counter[str] = Counter()
        self.undecided = 0

    async def bind(self, forward: Forward, request: web.BaseRequest) -> web.Response:
        """Forward a binding, unless a fault drops, delays or repeats the binding."""
        self._bindings += 1
        if not self.every or self._bindings % self.every:
            return await forward()
        kinds = [kind for kind in self.KINDS if kind in self.only or not self.only]
        if not kinds:
            return await forward()
        kind = self._rng.choice(kinds)
        self.seen[f"binding {kind}"] += 1
        return await self._ways[kind](forward, request)

    async def steer(self, forward: Forward) -> web.Response:
        """Forwards a change of a pod's status, or refuses it as often as bindings go wrong."""
        self._changes += 1
        if not self.every or self._changes % self.every or self.only - {"steering"}:
            return await forward()
        self.seen["steering failed"] += 1
        return _error(HTTPStatus.INTERNAL_SERVER_ERROR, "etcdserver: leader changed")

    async def write(self, forward: Forward, request: web.BaseRequest) -> web.Response:  # noqa: ARG002 - for those who override it
        """Forwards a write of a move: its status, its seat and the eviction."""
        return await forward()

    async def _late_request(self, forward: Forward, _: web.BaseRequest) -> web.Response:
        await asyncio.sleep(self._rng.uniform(0, LATEST_REQUEST))
        return await forward()

    async def _late_answer(self, forward: Forward, _: web.BaseRequest) -> web.Response:
        response = await forward()
        is_longest = self._rng.randrange(_LONGEST_EVERY) == 0
        is_refusal = response.status >= HTTPStatus.BAD_REQUEST
        self.undecided += is_refusal
        try:
            await asyncio.sleep(LONGEST_DELAY if is_longest else self._rng.choice(_ANSWER_DELAYS))
        finally:
            self.undecided -= is_refusal
        return response

    async def _failed(self, _: Forward, __: web.BaseRequest) -> web.Response:
        return _error(HTTPStatus.INTERNAL_SERVER_ERROR, "etcdserver: leader changed")

    async def _lost(self, forward: Forward, request: web.BaseRequest) -> web.Response:
        response = await forward()
        if request.transport is not None:
            request.transport.abort()
        return response

    async def _done_but_failed(self, forward: Forward, _: web.BaseRequest) -> web.Response:
        await forward()
        return _error(HTTPStatus.GATEWAY_TIMEOUT, "etcdserver: request timed out")


def _error(status: HTTPStatus, message: str) -> web.Response:
    answer = {"kind": "Status", "apiVersion": "v1", "status": "Failure"}
    answer |= {"reason": "InternalError", "message": message}
    return web.json_response({**answer, "code": status.value}, status=status)
