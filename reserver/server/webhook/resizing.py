"""Judges the resizes of running pods, and counts those that it lets pass."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from reserver.cluster.pod import Pod
from reserver.errors import NotReady
from reserver.patching.slots import RETURN_AFTER_S
from reserver.scheduling.resize import growth, judge_resize
from reserver.scheduling.state import State
from reserver.server.readiness import Readiness, require_ready
from reserver.wire.k8s.objects import decode
from reserver.wire.k8s.pods import PodObject
from reserver.wire.patching.review import ReviewRequest

PATIENCE_S = 1.0
"""How long a resize waits for what a watch that broke has missed, in seconds; half of the webhook's
timeout. Then it is judged by what is known: to let it pass would be no better."""


class Resizes:
    """Judges resizes on the state.

    Growth that passes counts at once, or two pods, or a pod and a binding, could take the same
    room. It counts until the watch shows it; should it be refused elsewhere, for `RETURN_AFTER_S`.
    """

    def __init__(self, state: State, clock: Callable[[], float], readiness: Readiness) -> None:
        """Judge by a state; `clock` gives unix seconds."""
        self._state = state
        self._clock = clock
        self._readiness = readiness

    async def judge(self, asked: ReviewRequest) -> str | None:
        """Return why a pod may not be resized; None if it may.

        Raises:
            NotReady: the state is not good enough to decide on.
            InvalidInput: the pod cannot be read.
        """
        with suppress(TimeoutError, NotReady):
            async with asyncio.timeout(PATIENCE_S):
                await self._readiness.caught_up()
        require_ready(self._readiness)
        pod = decode(PodObject, asked.object).value()
        why = judge_resize(pod, self._state, self._clock())
        if why is None and not asked.dry_run and pod.node and growth(pod, self._state):
            self._grow(pod)
        return why

    def _grow(self, pod: Pod) -> None:
        self._state.grow(pod)
        asyncio.get_running_loop().call_later(RETURN_AFTER_S, self._state.ungrow, pod)
