"""The extender: decides on the state, and has the API server carry out bindings."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import asdict
from http import HTTPStatus
from typing import Protocol

import structlog
from cachetools import TTLCache

from reserver.cluster.pod import Pod, PodName
from reserver.errors import ApiError, InvalidInput, NotReady
from reserver.scheduling.accounts import accounts
from reserver.scheduling.effects import Effect, Retry
from reserver.scheduling.explain import Explanation, explain
from reserver.scheduling.filter import FilterVerdict, filter_nodes
from reserver.scheduling.preempt import PreemptVerdict, Victims, judge_preemption
from reserver.scheduling.state import State
from reserver.scheduling.telling import Telling, tell
from reserver.server.bindings import Bindings, Pods
from reserver.server.sight import Sight, require_ready

log = structlog.get_logger(__name__)

_MOST_LOGGED = 5
_TRIED_PODS = 20_000
_TRIES_WINDOW_S = 60.0
_SPARE_TRIES = 8


class Cluster(Pods, Protocol):
    """What the extender wants of the API server (`kube.apply.Apply`)."""

    async def carry_out(self, effect: Effect) -> None:
        """Have kube-scheduler come back with a pod."""


class Extender:
    """Decides Filter, Preempt and Bind on the state.

    Attributes:
        bindings: those that are under way.
    """

    def __init__(
        self,
        state: State,
        cluster: Cluster,
        clock: Callable[[], float],
        sight: Sight,
        tasks: asyncio.TaskGroup,
        told: Callable[[Telling], None],
    ) -> None:
        """Decide on a state.

        Args:
            state: what decisions are made on.
            cluster: carries them out.
            clock: unix seconds.
            sight: how well the state shows the cluster.
            tasks: owns the bindings and effects under way.
            told: is given what the owners of pods should know; returns at once.
        """
        self._state = state
        self._cluster = cluster
        self._clock = clock
        self._sight = sight
        self._tasks = tasks
        self._told = told
        self.bindings = Bindings(state, cluster, clock, sight, tasks)
        self._tries: TTLCache[str, int] = TTLCache(_TRIED_PODS, _TRIES_WINDOW_S, timer=clock)

    def filter(self, pod: Pod, names: list[str]) -> FilterVerdict:
        """Return which nodes a pod may have.

        Raises:
            NotReady: the state is not good enough to decide on.
        """
        require_ready(self._sight)
        now = self._clock()
        verdict = filter_nodes(pod, names, self._state, now)
        self._state.judged(pod, names, waits=verdict.waits or verdict.awaits)
        if telling := tell(pod, len(names), verdict, self._state):
            self._told(telling)
        if not verdict.nodes and log.is_enabled_for(logging.DEBUG):
            nodes = accounts(pod, names[:_MOST_LOGGED], self._state, now)
            log.debug(
                "filter refused all",
                pod=str(pod.name),
                names=len(names),
                effects=[type(effect).__name__ for effect in verdict.effects],
                nodes=[asdict(account) for account in nodes],
            )
        return verdict

    async def preempt(self, pod: Pod, victims: Victims) -> PreemptVerdict:
        """Return on which nodes pods may be evicted for a pod.

        Raises:
            NotReady: the state is not good enough to decide on, or the pod cannot be read.
        """
        await self._sight.caught_up()  # As in Bind: whoever is evicted does not come back.
        require_ready(self._sight)
        try:
            # This may be the only call for it: it has to be known, to be remembered.
            await self.bindings.find_pod(pod.name, pod.uid)
        except InvalidInput:
            return PreemptVerdict((), {})  # It was replaced.
        except ApiError as exc:
            if exc.status == HTTPStatus.NOT_FOUND:
                return PreemptVerdict((), {})
            raise NotReady(f"pod cannot be read: {exc}") from exc
        verdict = judge_preemption(pod, victims, self._state, self._clock())
        self._state.judged_preemption(pod, verdict.nodes, verdict.spared)
        if verdict.spared:
            log.debug(
                "preemption would not help beside what is held",
                pod=str(pod.name),
                nodes=len(verdict.spared),
                first=next(iter(verdict.spared)),
                left=len(verdict.nodes),
            )
        return verdict

    def carry_out(self, verdict: FilterVerdict) -> None:
        """Begin what a Filter verdict wants done; its answer has to be on the way.

        A pod is sent back to kube-scheduler only so often in a minute: if its tries do not place
        it, something stands in the way that neither of us can tell, and waiting costs less.
        """
        for effect in verdict.effects:
            allowed = _SPARE_TRIES + (effect.attempts if isinstance(effect, Retry) else 0)
            tries = self._tries.get(effect.pod.uid, 0)
            if tries < allowed:
                self._tries[effect.pod.uid] = tries + 1
                self._tasks.create_task(self._carry_out(effect))

    async def _carry_out(self, effect: Effect) -> None:
        if isinstance(effect, Retry):
            await asyncio.sleep(effect.after_s)
        await self._cluster.carry_out(effect)

    def explain(self, name: PodName) -> Explanation | None:
        """Return what the holds mean for a pod, None when there is no such pod.

        Raises:
            NotReady: the state is not good enough to say.
        """
        require_ready(self._sight)
        pod = self._state.pods.get(name)
        return None if pod is None else explain(pod, self._state, self._clock())
