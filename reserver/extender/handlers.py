"""The extender: decides calls on the state, and writes bindings."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import asdict
from http import HTTPStatus
from typing import Protocol

import structlog

from reserver.base.pacer import Pacer
from reserver.cluster.pod import Pod, PodName
from reserver.errors import ApiError, Gone, InvalidInput, NotReady
from reserver.extender.bindings import Bindings
from reserver.extender.pod_writes import Pods
from reserver.k8s.objects.pods import PodObject
from reserver.scheduling.explain import Explanation, explain
from reserver.scheduling.filter import filter_nodes
from reserver.scheduling.node_explanation import explain_nodes
from reserver.scheduling.pod_events import PodEvent, event_for, recalled
from reserver.scheduling.preempt import PreemptVerdict, Victims, judge_preemption
from reserver.scheduling.recall import RECALL_S
from reserver.scheduling.state import Readiness, State, require_ready, up_to_date
from reserver.scheduling.verdicts import Effect, FilterVerdict, WaitsFor

log = structlog.get_logger(__name__)

_MOST_LOGGED = 5


class Requeuing(Protocol):
    """Sends pods back to kube-scheduler (`requeue.Requeue`)."""

    def send_sparingly(self, effect: Effect) -> None:
        """Have kube-scheduler retry a pod, later after frequent attempts."""

    def judged(self, pod_uid: str) -> None:
        """Record a Filter call for a pod."""


class Extender:
    """Decides Filter, Preempt and Bind on the state."""

    def __init__(  # noqa: PLR0913 - the extender's dependencies
        self,
        state: State,
        pods: Pods,
        requeue: Requeuing,
        clock: Callable[[], float],
        readiness: Readiness,
        tasks: asyncio.TaskGroup,
        *,
        on_event: Callable[[PodEvent], None],
    ) -> None:
        """Begin to decide on a state.

        Args:
            pods: carries out bindings.
            clock: unix seconds.
            readiness: whether the state is up to date.
            tasks: owns the tasks of pending bindings.
            on_event: called with each Event on a pod; returns at once.
        """
        self._state = state
        self._requeue = requeue
        self._clock = clock
        self._readiness = readiness
        self._on_event = on_event
        self.bindings = Bindings(state, pods, clock, readiness, tasks)

    @property
    def is_due(self) -> bool:
        """Whether reservations start or end before the next decision."""
        return self._state.ledger.is_due(self._clock())

    async def advanced(self) -> None:
        """Start and end the due reservations in steps, with other calls in between.

        The next decision does this too; after this call it has little left to do.
        """
        await Pacer().run(self._state.ledger.advancing(self._clock()))

    def read(self, sent: PodObject) -> Pod:
        """Return a pod that kube-scheduler sends, from the watch if that has the same version.

        Objects with one resourceVersion are equal, and a look-up takes a tenth of a decoding.

        Raises:
            InvalidInput: the pod is malformed.
        """
        metadata, revision = sent.metadata, sent.metadata.revision
        known = self._state.pods.get(PodName(metadata.namespace, metadata.name))
        is_known = known is not None and known.uid == metadata.uid
        return known if known and is_known and known.revision == revision > 0 else sent.value()

    def filter(self, pod: Pod, names: list[str]) -> FilterVerdict:
        """Return the nodes that a pod may use.

        Raises:
            NotReady: the state is not up to date.
        """
        require_ready(self._readiness)
        now = self._clock()
        verdict = filter_nodes(pod, names, self._state, now)
        # A steered pod waits as well: a seat that is freed meanwhile may serve it sooner.
        waits = verdict.waits_for is not None or bool(verdict.effects)
        for_seat = verdict.waits_for is WaitsFor.SEAT
        self._state.judged(pod, names, waits=waits, for_seat=for_seat)
        if pod.group and verdict.nodes:
            self._state.answered(pod, verdict.nodes, now)
        self._requeue.judged(pod.uid)
        if verdict.recalled:
            self._state.ledger.recall(verdict.recalled, now + RECALL_S)
        if event := event_for(pod, len(names), verdict, self._state):
            self._on_event(event)
        for each in recalled(verdict.effects):
            self._on_event(each)
        if not verdict.nodes and log.is_enabled_for(logging.DEBUG):
            nodes = explain_nodes(pod, names[:_MOST_LOGGED], self._state, now)
            log.debug(
                "filter refused all",
                pod=str(pod.name),
                names=len(names),
                effects=[type(effect).__name__ for effect in verdict.effects],
                nodes=[asdict(node) for node in nodes],
            )
        return verdict

    async def preempt(self, pod: Pod, victims: Victims) -> PreemptVerdict:
        """Return the nodes on which pods may be evicted for a pod.

        Raises:
            NotReady: the state is not up to date, or the pod cannot be read.
        """
        await self._readiness.caught_up()  # As in Bind: an evicted pod does not come back.
        require_ready(self._readiness)
        try:
            # This may be the only call for the pod: it has to be cached to be remembered.
            await self.bindings.find_pod(pod.name, pod.uid)
        except Gone:
            return PreemptVerdict((), {})
        except (ApiError, InvalidInput) as exc:
            if isinstance(exc, ApiError) and exc.status == HTTPStatus.NOT_FOUND:
                return PreemptVerdict((), {})
            raise NotReady(f"pod cannot be read: {exc}") from exc
        await up_to_date(self._readiness, self._state.ledger, self._clock)
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
        """Queue the effects of a Filter verdict, once its response is on the way."""
        for effect in verdict.effects:
            self._requeue.send_sparingly(effect)

    async def explain(self, name: PodName) -> Explanation | None:
        """Return the effect of the holds on a pod; None without such a pod.

        It takes milliseconds with many nodes, so calls get their turns one after the other.

        Raises:
            NotReady: the state is not up to date.
        """
        await Pacer(turn_s=0.0).give_way()
        await self.advanced()  # Right before the decision: it may have waited for its turn.
        require_ready(self._readiness)
        pod = self._state.pods.get(name)
        return None if pod is None else explain(pod, self._state, self._clock())
