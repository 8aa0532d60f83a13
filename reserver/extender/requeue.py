"""Sends pods back to kube-scheduler, each until it is retried or needs no retry any more.

A request may fail, and a pod may have been sent back so often that it has to wait. Without a retry
the pod would wait for an unrelated event, or five minutes (kube-scheduler's
podMaxInUnschedulablePodsDuration). So there is one errand for each pod, which ends at
kube-scheduler's next call for the pod, or when the pod is deleted or bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import structlog
from cachetools import Cache, TTLCache

from reserver.base.pacer import Backoff
from reserver.base.quarantine import quarantined
from reserver.cluster.pod import Pod, PodName
from reserver.errors import ApiError
from reserver.k8s.work_queue import Time, WorkQueue
from reserver.scheduling.verdicts import Activate, Effect, Nominate, Retry

log = structlog.get_logger(__name__)

SPARE_TRIES = 8
"""Times that a pod is sent back within `TRIES_WINDOW_S` without delay. If they do not place the
pod, more retries are unlikely to."""

TRIES_WINDOW_S = 60.0
PUT_OFF_S = 30.0
"""Seconds that a pod waits after it has used up its attempts."""

FIRST_PAUSE_S = 0.2
LAST_PAUSE_S = 30.0
"""The longest wait before a failed request is sent again, at first and ever, in seconds."""

UNSEEN_S = 60.0
"""Seconds for which a pod that the watch does not show may be new."""

CONNECTIONS = 16
"""Most concurrent requests; bindings have the rest of the connections."""

_TRIED_PODS = 20_000

LATELY_S = 1.0
"""Seconds after a refusal in which a watch event may show that the refusal was out of date."""


class Carrier(Protocol):
    """Executes effects (`PodWrites`)."""

    async def carry_out(self, effect: Effect) -> None:
        """Have kube-scheduler retry a pod."""


@dataclass(slots=True, eq=False)
class _Errand:
    """A pod to send back.

    Attributes:
        effect: the effect that sends it back.
        until: when to give up if no watch shows the pod, in seconds of the requeue's timer.
        is_begun: a request was sent, and may have been executed.
    """

    effect: Effect
    until: float
    is_begun: bool = False


class Requeue:
    """Sends pods back to kube-scheduler.

    Attributes:
        queue: the UIDs of the pods to send back.
    """

    def __init__(
        self,
        carrier: Carrier,
        pods: Callable[[], Mapping[PodName, Pod]],
        timer: Callable[[], float],
        time: Time | None = None,
        again: Callable[[Effect], Effect | None] = lambda effect: effect,
    ) -> None:
        """Begin without pods.

        Args:
            pods: returns the watched pods.
            timer: monotonic seconds.
            time: the queue's clock, in seconds; None uses the event loop's clock.
            again: returns the present version of an effect; None if no longer wanted.
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
        """Return the number of pods to send back."""
        return len(self._errands)

    def is_under_way(self, pod_uid: str) -> bool:
        """Return whether a pod is about to be sent back, without a delay."""
        return pod_uid in self._errands and not self.queue.is_delayed(pod_uid)

    def send(self, effect: Effect) -> None:
        """Queue an effect in place of the pod's former one; returns at once."""
        errand = self._errands.get(effect.pod.uid)
        if errand is None or errand.effect != effect or self.queue.is_delayed(effect.pod.uid):
            self._begin(effect, 0.0)

    def send_sparingly(self, effect: Effect) -> None:
        """Queue an effect, delayed after frequent attempts within a minute; returns at once."""
        uid = effect.pod.uid
        allowed = SPARE_TRIES + (effect.attempts if isinstance(effect, Retry) else 0)
        tries = self._tries.get(uid, 0)
        self._tries[uid] = min(tries, allowed) + 1
        wanted_s = effect.after_s if isinstance(effect, Retry) else 0.0
        self._begin(effect, wanted_s if tries < allowed else PUT_OFF_S)

    def judged(self, pod_uid: str) -> None:
        """End a pod's errand, as kube-scheduler calls for the pod.

        A nomination that has to be removed still is.
        """
        self._lately[pod_uid] = None
        errand = self._errands.get(pod_uid)
        if errand is not None and not (errand.is_begun and isinstance(errand.effect, Activate)):
            self._end(pod_uid)

    def judged_lately(self) -> list[str]:
        """Return the UIDs of the pods with a call of kube-scheduler within `LATELY_S`."""
        self._lately.expire()
        return list(Cache.__iter__(self._lately))  # TTLCache's own reads the clock for each pod.

    async def run(self) -> None:
        """Send pods back until cancelled."""
        await self.queue.run(self._try, CONNECTIONS)

    async def _try(self, uids: list[str]) -> None:
        """Send one request; retry it later if it fails."""
        (uid,) = uids
        errand = self._errands.get(uid)
        if errand is None:
            return  # A call came meanwhile.
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
            return  # A call or another effect came meanwhile.
        if failure is None or failure.is_absent:
            self._end(uid)
            return
        if self.queue.failed(uid, failure) == 1:  # One line for each pod.
            pod = str(errand.effect.pod.name)
            log.warning("pod could not be sent back, retrying", pod=pod, why=str(failure))

    def _is_due(self, errand: _Errand) -> bool:
        """Return whether a pod still has to be sent back."""
        effect = errand.effect
        known = self._pods().get(effect.pod.name)
        if known is None:
            return not errand.is_begun or self._timer() < errand.until
        if known.uid != effect.pod.uid:
            return not errand.is_begun  # The new pod may be shown before the deletion.
        if known.node:
            return False
        # A request without an answer may have been executed.
        is_done = isinstance(effect, Nominate) and known.nominated_node == effect.node
        return not (errand.is_begun and is_done)

    def _begin(self, effect: Effect, seconds: float) -> None:
        """Replace the errand of a pod."""
        uid = effect.pod.uid
        self._end(uid)
        self._errands[uid] = _Errand(effect, self._timer() + UNSEEN_S)
        self.queue.add(uid, seconds)

    def _end(self, pod_uid: str) -> None:
        self._errands.pop(pod_uid, None)
        self.queue.discard(pod_uid)
