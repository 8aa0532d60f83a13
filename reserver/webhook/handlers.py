"""The HTTP handlers of the webhooks, which after an internal fault allow with a warning."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from http import HTTPStatus
from typing import Protocol

from reserver.base.quarantine import take_note
from reserver.errors import Fault, InvalidInput, NotReady, ReserverError
from reserver.extender.metrics import Metrics
from reserver.http.message import Handler, HttpRequest, HttpResponse, ListenerLimits, Paths, text
from reserver.k8s.objects.objects import decode
from reserver.patches.book import Book
from reserver.patches.model import PatchName
from reserver.patches.slots import RETURN_AFTER_S
from reserver.scheduling.in_flight import PendingResize
from reserver.scheduling.resize import Subject, grow, growth, judge_resize, judge_unseen, seen
from reserver.scheduling.state import Readiness, State, require_ready, up_to_date
from reserver.webhook import review
from reserver.webhook.review import CreatedPod, ReviewRequest, resized, subject

MOST_BODY_BYTES = 8 * 2**20
"""Bound on a call's body, in bytes: the old and the new pod, 3 MiB each."""

PATCH_PATH, RESIZE_PATH = "/patch-pod", "/judge-resize"

WEBHOOK_LIMITS = ListenerLimits(
    connections=1024,
    new=512,
    new_per_peer=512,
    header_bytes=8192,
    queries=True,
    bodies={PATCH_PATH: MOST_BODY_BYTES, RESIZE_PATH: MOST_BODY_BYTES},
)
"""Limits for API servers, which open a connection for each call in flight, from few addresses."""

PATIENCE_S = 1.0
"""Seconds for which a pod waits for recorded slots, or a resize for a late watch: half of the
webhook's timeout. After that a resize is judged by the cache: to allow it would be no safer."""


class Patches(Protocol):
    """The SchedPatches (`reserver.patches.controller.SchedPatches`)."""

    book: Book

    def obstacles(self) -> tuple[str, ...]:
        """Return the reasons for which this process cannot patch; empty if it can."""

    async def stocked(self, names: Iterable[PatchName], patience_s: float) -> None:
        """Wait until slots of one of the patches may have been recorded, in seconds at most."""


class Webhooks:
    """The handlers of both webhooks."""

    def __init__(
        self,
        patches: Patches,
        judge: Callable[[ReviewRequest], Awaitable[str | None]],
        clock: Callable[[], float],
        metrics: Metrics,
    ) -> None:
        """Answer from the caches.

        Args:
            judge: returns the reason to refuse a resize, None to allow it; raises NotReady.
            clock: returns unix seconds.
        """
        self._patches = patches
        self._judge = judge
        self._clock = clock
        self._metrics = metrics

    def paths(self) -> Paths:
        """Return the handlers by path."""
        return {
            PATCH_PATH: ("POST", self._answering("patch", self._patch)),
            RESIZE_PATH: ("POST", self._answering("resize", self._resize)),
        }

    def _answering(
        self, webhook: str, decide: Callable[[ReviewRequest], Awaitable[tuple[str, bytes]]]
    ) -> Handler:
        async def answer(request: HttpRequest) -> HttpResponse:
            began = time.perf_counter()
            try:
                asked = review.read_request(request.body)
            except InvalidInput as exc:
                return text(f"{exc}\n", HTTPStatus.BAD_REQUEST)
            try:
                outcome, answered = await decide(asked)
            except (MemoryError, asyncio.CancelledError):
                raise
            except Exception as exc:  # noqa: BLE001 - a fault of Reserver refuses no pod
                why = (
                    exc if isinstance(exc, ReserverError) else take_note("http", request.path, exc)
                )
                outcome, answered = "error", review.answer(asked.uid, [f"reserver: {why}"])
            self._metrics.count_webhook(webhook, outcome, time.perf_counter() - began)
            return HttpResponse(answered)

        return answer

    async def _patch(self, asked: ReviewRequest) -> tuple[str, bytes]:
        """Return the outcome for the metrics, and the answer for a new pod."""
        patches, is_dry_run = self._patches, bool(asked.dry_run)
        if obstacles := patches.obstacles():
            warning = f"reserver: SchedPatches were not applied: {obstacles[0]}"
            return "error", review.answer(asked.uid, [warning])
        if not patches.book.has_any(asked.namespace):
            return "passed", review.answer(asked.uid)
        created = decode(CreatedPod, asked.object)
        if created.spec.node_name:
            return "passed", review.answer(asked.uid)
        pod = created.value(asked.namespace)
        began = self._clock()
        while not is_dry_run:
            left_s = began + PATIENCE_S - self._clock()
            names = patches.book.awaited(pod, self._clock())
            if not names or not 0 < left_s <= PATIENCE_S or patches.obstacles():
                break
            await patches.stocked(names, left_s)
        verdict = patches.book.decide(pod, self._clock(), is_dry_run=is_dry_run)
        operations = review.json_patch(created, pod, verdict)
        outcome = "patched" if verdict.patched else "passed"
        return outcome, review.answer(asked.uid, patch=operations)

    async def _resize(self, asked: ReviewRequest) -> tuple[str, bytes]:
        """Return outcome and answer for the resize of a pod; refuse a pod that cannot be read."""
        try:
            why = await self._judge(asked)
        except Fault:
            raise
        except InvalidInput as exc:
            why = f"reserver cannot read the pod: {exc}"
        if why is None:
            return "passed", review.answer(asked.uid)
        return "refused", review.refusal(asked.uid, why)


_LOOK_AFTER_S = 0.005
"""Seconds before the first check whether the watch shows the pod; each further wait doubles."""


class Resizes:
    """Decides about resizes with the state.

    The port has no authentication, so only a request that matches a pod of the watch has effects.
    Allowed growth is requested room at once: otherwise two pods, or a pod and a binding, could take
    the same room. It counts until the pod's next revision, or for `RETURN_AFTER_S` without one.
    """

    def __init__(self, state: State, clock: Callable[[], float], readiness: Readiness) -> None:
        """Decide with a state; `clock` returns unix seconds."""
        self._state = state
        self._clock = clock
        self._readiness = readiness
        self._ends: dict[str, asyncio.TimerHandle] = {}  # By the pod's UID.

    async def judge(self, asked: ReviewRequest) -> str | None:
        """Return the reason to refuse a resize; None to allow it.

        Raises:
            NotReady: the caches are not up to date.
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
            self._keep(grow(pod, self._state))
        return why

    def _keep(self, grown: PendingResize) -> None:
        """Let a growth end in time; it has replaced an earlier one of the pod."""
        uid = grown.pod.uid
        if uid in self._ends:
            self._ends[uid].cancel()
        self._ends[uid] = asyncio.get_running_loop().call_later(RETURN_AFTER_S, self._end, grown)

    def _end(self, grown: PendingResize) -> None:
        del self._ends[grown.pod.uid]
        self._state.ungrow(grown)

    async def _shown(self, about: Subject) -> None:
        """Wait until the watch has reached the revision of the old pod."""
        wait_s = _LOOK_AFTER_S
        while not (seen(about, self._state) or self._state.has_shown_pods(about.revision)):
            await asyncio.sleep(wait_s)
            wait_s *= 2
