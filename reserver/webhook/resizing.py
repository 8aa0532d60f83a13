"""Judges the resizes of running pods, and counts those that it lets pass."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from reserver.errors import NotReady
from reserver.extender.readiness import Readiness, require_ready, up_to_date
from reserver.patches.slots import RETURN_AFTER_S
from reserver.scheduling.resize import Subject, grow, growth, judge_resize, judge_unseen, seen
from reserver.scheduling.state import State
from reserver.webhook.review import ReviewRequest, resized, subject

PATIENCE_S = 1.0
"""How long a resize waits for what a watch has missed, or has yet to show, in seconds; half of the
webhook's timeout. Then it is judged by what is known: to let it pass would be no better."""

_LOOK_AFTER_S = 0.005
"""After how long it looks first whether the watch shows the pod, in seconds; then after twice that
each time."""


class Resizes:
    """Judges resizes on the state.

    Anybody may ask who reaches the port. So what is asked is compared with the pod that the watch
    shows, and only what is of that very pod counts: growth that passes counts at once, or two pods,
    or a pod and a binding, could take the same room. It counts until the pod's next revision shows
    what became of it; without one, for `RETURN_AFTER_S`.
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
        about = subject(asked)
        with suppress(TimeoutError, NotReady):
            async with asyncio.timeout(PATIENCE_S):
                await up_to_date(self._readiness, self._state.ledger, self._clock)
                await self._shown(about)
        require_ready(self._readiness)
        known = seen(about, self._state)
        if known is None:
            return judge_unseen(about, self._state, self._clock())
        pod = replace(known, requests=resized(asked)).bounded(self._state.snapshot.columns)
        why = judge_resize(pod, self._state, self._clock())
        if why is None and not asked.dry_run and growth(pod, self._state):
            grown = grow(pod, self._state)
            later = asyncio.get_running_loop().call_later
            later(RETURN_AFTER_S, self._state.ungrow, grown)
        return why

    async def _shown(self, about: Subject) -> None:
        """Wait until the watch has come to the revision that a resize is to be written onto."""
        wait_s = _LOOK_AFTER_S
        while not (seen(about, self._state) or self._state.has_shown_pods(about.revision)):
            await asyncio.sleep(wait_s)
            wait_s *= 2
