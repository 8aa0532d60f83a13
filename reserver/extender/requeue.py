"""Sends pods back to kube-scheduler, each until it is tried again or needs no attempt any more.

A request may fail, and a pod may have been sent back so often that it has to wait. If it were
dropped then, the pod would wait for an unrelated event, or five minutes (kube-scheduler's
podMaxInUnschedulablePodsDuration). So there is one errand for each pod, which ends when
kube-scheduler asks for the pod again, or the pod is gone or bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import structlog
from cachetools import TTLCache

from reserver.base.pacer import Backoff
from reserver.base.quarantine import quarantined
from reserver.cluster.pod import Pod, PodName
from reserver.errors import ApiError
from reserver.k8s.work_queue import Time, WorkQueue
from reserver.scheduling.verdicts import Activate, Effect, Nominate, Retry

log = structlog.get_logger(__name__)

SPARE_TRIES = 8
"""How often a pod is sent back within `TRIES_WINDOW_S` without delay. If that does not place it,
something stands in the way that neither kube-scheduler nor we can tell."""

TRIES_WINDOW_S = 60.0
PUT_OFF_S = 30.0
"""How long a pod waits that has used up its attempts, in seconds."""

FIRST_PAUSE_S = 0.2
LAST_PAUSE_S = 30.0
"""The longest wait before a request that failed is sent again, at first and ever, in seconds."""

UNSEEN_S = 60.0
"""How long a pod that our watch does not show may be one that it has not shown yet, in seconds."""

CONNECTIONS = 16
"""How many requests are under way at once; bindings have the rest of the pool."""

_TRIED_PODS = 20_000

LATELY_S = 1.0
"""For so long after a pod was judged its refusal may be of what Reserver had yet to read, in
seconds."""


class Carrier(Protocol):
    """Carries effects out (`PodWrites`)."""

    async def carry_out(self, effect: Effect) -> None:
        """Have kube-scheduler come back with a pod."""


@dataclass(slots=True, eq=False)
class _Errand:
    """A pod that is to be sent back.

    Attributes:
        effect: how.
        until: when to give it up if no watch shows the pod, by the requeue's timer.
        is_begun: its request was sent, so that some of it may have been carried out.
    """

    effect: Effect
    until: float
    is_begun: bool = False


class Requeue:
    """Sends pods back to kube-scheduler.

    Attributes:
        queue: of the UIDs of the pods to send.
    """

    def __init__(
        self,
        carrier: Carrier,
        pods: Callable[[], Mapping[PodName, Pod]],
        timer: Callable[[], float],
        time: Time | None = None,
        again: Callable[[Effect], Effect | None] = lambda effect: effect,
    ) -> None:
        """Begin with no pod to send back.

        Args:
            pods: the pods as the watch last showed them.
            timer: monotonic seconds.
            time: passes for the queue; None for that of the event loop.
            again: returns an effect as it is wanted by now; None if it is not.
        """
        self._carrier = carrier
        self._pods = pods
        self._timer = timer
        self._again = again
        self._tries: TTLCache[str, int] = TTLCache(_TRIED_PODS, TRIES_WINDOW_S, timer=timer)
        self._lately: TTLCache[str, None] = TTLCache(_TRIED_PODS, LATELY_S, timer=timer)
        self._errands: dict[str, _Errand] = {}
        backoff = Backoff(FIRST_PAUSE_S, LAST_PAUSE_S)
        self.queue = WorkQueue[str]("requeue", backoff, time=time)

    def __len__(self) -> int:
        """Return how many pods are to be sent back."""
        return len(self._errands)

    def is_under_way(self, pod_uid: str) -> bool:
        """Return whether a pod is about to be sent back, and kube-scheduler has not asked since."""
        return pod_uid in self._errands and not self.queue.is_delayed(pod_uid)

    def send(self, effect: Effect) -> None:
        """Queue a pod to be sent back, in this way only; returns at once."""
        errand = self._errands.get(effect.pod.uid)
        if errand is None or errand.effect != effect or self.queue.is_delayed(effect.pod.uid):
            self._begin(effect, 0.0)

    def send_sparingly(self, effect: Effect) -> None:
        """Queue a pod to be sent back, later if it was often within a minute; returns at once."""
        uid = effect.pod.uid
        allowed = SPARE_TRIES + (effect.attempts if isinstance(effect, Retry) else 0)
        tries = self._tries.get(uid, 0)
        self._tries[uid] = min(tries, allowed) + 1
        wanted_s = effect.after_s if isinstance(effect, Retry) else 0.0
        self._begin(effect, wanted_s if tries < allowed else PUT_OFF_S)

    def judged(self, pod_uid: str) -> None:
        """Note that kube-scheduler asks for a pod, so it need not be sent back.

        A nomination that must be taken back still is.
        """
        self._lately[pod_uid] = None
        errand = self._errands.get(pod_uid)
        if errand is not None and not (errand.is_begun and isinstance(errand.effect, Activate)):
            self._end(pod_uid)

    def judged_lately(self) -> list[str]:
        """Return the UIDs of the pods that kube-scheduler asked for within `LATELY_S`."""
        return list(self._lately)

    async def run(self) -> None:
        """Send pods back until cancelled."""
        await self.queue.run(self._try, CONNECTIONS)

    async def _try(self, uids: list[str]) -> None:
        """Send one request; if it fails, send it again later."""
        (uid,) = uids
        errand = self._errands.get(uid)
        if errand is None:
            return  # It was judged meanwhile.
        effect = self._again(errand.effect) if self._is_due(errand) else None
        if effect is None:
            self._end(uid)
            return
        errand.is_begun = True
        failure: ApiError | None = None
        with quarantined("effect", effect.pod.name):
            try:
                await self._carrier.carry_out(effect)
            except ApiError as exc:
                failure = exc
        if self._errands.get(uid) is not errand:
            return  # It was judged meanwhile, or is to be sent back otherwise.
        if failure is None or failure.is_absent:
            self._end(uid)
            return
        if self.queue.failed(uid, failure) == 1:  # One line for one pod, however often it is.
            pod = str(errand.effect.pod.name)
            log.warning("pod could not be sent back, retrying", pod=pod, why=str(failure))

    def _is_due(self, errand: _Errand) -> bool:
        """Return whether a pod still has to be sent back."""
        effect = errand.effect
        known = self._pods().get(effect.pod.name)
        if known is None:
            return not errand.is_begun or self._timer() < errand.until
        if known.uid != effect.pod.uid:
            return not errand.is_begun  # Its successor may have been read before its end was.
        if known.node:
            return False
        # A request without an answer may have been carried out.
        is_done = isinstance(effect, Nominate) and known.nominated_node == effect.node
        return not (errand.is_begun and is_done)

    def _begin(self, effect: Effect, seconds: float) -> None:
        """Replace what was to be done for a pod."""
        uid = effect.pod.uid
        self._end(uid)
        self._errands[uid] = _Errand(effect, self._timer() + UNSEEN_S)
        self.queue.add(uid, seconds)

    def _end(self, pod_uid: str) -> None:
        self._errands.pop(pod_uid, None)
        self.queue.discard(pod_uid)
