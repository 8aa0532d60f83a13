"""The extender: decides on the state, and has the API server carry out bindings."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass
from http import HTTPStatus
from typing import Protocol

import structlog
from cachetools import TTLCache

from reserver.cluster.pod import Pod, PodName
from reserver.errors import ApiError, InvalidInput, NotReady
from reserver.scheduling.accounts import accounts
from reserver.scheduling.bind import judge_bind
from reserver.scheduling.effects import Effect, Retry
from reserver.scheduling.explain import Explanation, explain
from reserver.scheduling.filter import FilterVerdict, filter_nodes
from reserver.scheduling.preempt import PreemptVerdict, Victims, judge_preemption
from reserver.scheduling.state import State
from reserver.scheduling.telling import Telling, tell
from reserver.wire.extender import ExtenderBindingArgs

log = structlog.get_logger(__name__)

BIND_PATIENCE_S = 25.0
"""How long a Bind call waits for the API server, in seconds: less than the extender's httpTimeout.
The binding itself goes on; kube-scheduler's next Bind call for the pod joins it."""

RESERVED_S = 60.0
"""How long `reserve` takes a node for a pod that is not bound, in seconds."""

_MOST_LOGGED = 5
_TRIED_PODS = 20_000
_TRIES_WINDOW_S = 60.0
_SPARE_TRIES = 8


class Cluster(Protocol):
    """What the extender wants of the API server (`kube.apply.Apply`)."""

    async def read_pod(self, name: PodName) -> Pod:
        """Return a pod as it is now."""

    async def bind(self, pod: Pod, node: str, claims: tuple[str, ...]) -> None:
        """Bind a pod; return only when it is known to have happened."""

    async def carry_out(self, effect: Effect) -> None:
        """Have kube-scheduler come back with a pod."""


class Sight(Protocol):
    """How well the state shows the cluster (`app.Watched`)."""

    def obstacles(self) -> tuple[str, ...]:
        """Return what keeps the state from being good enough to decide on; empty if nothing."""

    async def caught_up(self) -> None:
        """Wait until no watch is known to be broken, but not for longer than is excused."""


@dataclass(slots=True)
class _Taken:
    """A node that a pod takes, and that the watch has not shown yet.

    Attributes:
        pod: the pod as it was when that was decided.
        node: the node.
        claims: identities of the reservations that it claims.
        expiry: takes it back when no binding comes.
        task: writes the binding; None before that is asked for.
    """

    pod: Pod
    node: str
    claims: tuple[str, ...]
    expiry: asyncio.TimerHandle
    task: asyncio.Task[str] | None = None


class Extender:
    """Decides Filter, Preempt and Bind on the state.

    Attributes:
        binding: how many bindings are under way.
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
        self._under_way: dict[str, _Taken] = {}
        self._tries: TTLCache[str, int] = TTLCache(_TRIED_PODS, _TRIES_WINDOW_S, timer=clock)

    @property
    def binding(self) -> int:
        """How many bindings are under way."""
        return len(self._under_way)

    def filter(self, pod: Pod, names: list[str]) -> FilterVerdict:
        """Return which nodes a pod may have.

        Raises:
            NotReady: the state is not good enough to decide on.
        """
        self._require_ready()
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
        self._require_ready()
        try:
            # This may be the only call for it: it has to be known, to be remembered.
            await self._find_pod(pod.name, pod.uid)
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

    async def bind(self, args: ExtenderBindingArgs) -> str:
        """Bind a pod; return why not, or an empty string once it is bound.

        Raises:
            NotReady: the state is not good enough to decide on.
        """
        decided = await self._decide(args)
        if isinstance(decided, str):
            return decided
        if decided.task is None:
            decided.expiry.cancel()
            decided.task = self._tasks.create_task(self._write(decided))
        return await self._wait(decided.task)

    async def reserve(self, args: ExtenderBindingArgs) -> tuple[str, tuple[str, ...]]:
        """Take a node for a pod until it is bound or `unreserve` is called, a minute at most.

        Returns:
            Why not, or an empty string; and the identities of the reservations that it claims.

        Raises:
            NotReady: the state is not good enough to decide on.
        """
        decided = await self._decide(args)
        return (decided, ()) if isinstance(decided, str) else ("", decided.claims)

    def unreserve(self, pod_uid: str) -> None:
        """Take back what `reserve` took; a binding under way goes on."""
        taken = self._under_way.get(pod_uid)
        if taken is not None and taken.task is None:
            taken.expiry.cancel()
            del self._under_way[pod_uid]
            self._state.forget(pod_uid)

    async def _decide(self, args: ExtenderBindingArgs) -> _Taken | str:
        """Take the node for the pod, unless it is taken already; or return what to answer."""
        with self._state.undecided.asked(args.node):
            decided = await self._take(args)
        if decided and isinstance(decided, str):
            self._state.undecided.failed(args.node, self._clock())
        return decided

    async def _take(self, args: ExtenderBindingArgs) -> _Taken | str:
        # A watch that broke a moment ago may be about to show a hold, or an entry of this owner.
        await self._sight.caught_up()
        self._require_ready()
        try:
            pod = await self._find_pod(PodName(args.pod_namespace, args.pod_name), args.pod_uid)
        except (ApiError, InvalidInput) as exc:
            return f"pod cannot be read: {exc}"
        # From here to the assumption there is no await: no other decision comes between.
        if pod.node:
            return "" if pod.node == args.node else f"already bound to {pod.node}"
        assumption = self._state.assumption(pod.uid)
        if assumption is not None:
            if assumption.node != args.node:
                return f"being bound to {assumption.node}"
            # Else it is written, and the watch has not shown it yet.
            return self._under_way.get(pod.uid, "")
        verdict = judge_bind(pod, args.node, self._state, self._clock())
        if verdict.refusal is not None:
            log.info("bind refused", pod=str(pod.name), node=args.node, why=verdict.refusal)
            return verdict.refusal
        self._state.assume(pod, args.node, verdict.claims)
        expiry = asyncio.get_running_loop().call_later(RESERVED_S, self.unreserve, pod.uid)
        taken = _Taken(pod, args.node, verdict.claims, expiry)
        self._under_way[pod.uid] = taken
        return taken

    async def drain(self) -> None:
        """Wait for the bindings under way, but not for an API server that does not come back.

        A binding that is given up has its claim on it, in case it was carried out after all.
        """
        for pod_uid in tuple(self._under_way):
            self.unreserve(pod_uid)
        if tasks := [taken.task for taken in self._under_way.values() if taken.task]:
            _, late = await asyncio.wait(tasks, timeout=BIND_PATIENCE_S)
            for task in late:
                task.cancel()

    def explain(self, name: PodName) -> Explanation | None:
        """Return what the holds mean for a pod, None when there is no such pod.

        Raises:
            NotReady: the state is not good enough to say.
        """
        self._require_ready()
        pod = self._state.pods.get(name)
        return None if pod is None else explain(pod, self._state, self._clock())

    def _require_ready(self) -> None:
        if obstacles := self._sight.obstacles():
            raise NotReady(f"reserver does not see the cluster yet: {'; '.join(obstacles)}")

    async def _find_pod(self, name: PodName, uid: str) -> Pod:
        """Return a pod that kube-scheduler knows; it may not have come through our watch yet."""
        known = self._state.pods.get(name)
        if known is not None and known.uid == uid:
            return known
        pod = await self._cluster.read_pod(name)
        if pod.uid != uid:
            raise InvalidInput("PodUID", f"{uid!r} is not this pod's", "it was replaced; try again")
        known = self._state.pods.get(name)
        if known is not None and known.uid == uid:
            return known  # The watch was faster.
        if not pod.node:
            self._state.pod_seen(pod)
        return pod

    async def _write(self, taken: _Taken) -> str:
        pod, node, claims = taken.pod, taken.node, taken.claims
        try:
            await self._cluster.bind(pod, node, claims)
        except (ApiError, InvalidInput) as exc:
            self._state.forget(pod.uid)
            self._state.undecided.failed(node, self._clock())
            log.warning("binding failed", pod=str(pod.name), node=node, why=str(exc))
            return f"binding failed: {exc.reason if isinstance(exc, ApiError) else exc}"
        else:
            self._state.confirm(pod.uid)
            log.info("bound", pod=str(pod.name), node=node, claims=len(claims))
            return ""
        finally:
            del self._under_way[pod.uid]

    @staticmethod
    async def _wait(task: asyncio.Task[str]) -> str:
        done, _ = await asyncio.wait([task], timeout=BIND_PATIENCE_S)
        return task.result() if done else "binding not confirmed by the API server yet"
