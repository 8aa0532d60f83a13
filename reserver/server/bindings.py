"""Bindings under way: each is decided, then assumed, then written by the API server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import structlog

from reserver.cluster.pod import Pod, PodName
from reserver.errors import ApiError, Gone, InvalidInput
from reserver.quarantine import quarantined
from reserver.scheduling.bind import BindVerdict, judge_bind
from reserver.scheduling.state import State
from reserver.server.readiness import Readiness, up_to_date
from reserver.wire.extender import ExtenderBindingArgs

log = structlog.get_logger(__name__)

BIND_PATIENCE_S = 25.0
"""How long a Bind call waits for the API server, in seconds: less than the extender's httpTimeout.
The binding itself goes on; kube-scheduler's next Bind call for the pod joins it."""

RESERVED_S = 60.0
"""How long `reserve` takes a node for a pod that is not bound, in seconds."""

LEFT_S = 2.0
"""How long a binding without an answer is repeated after the last Bind call for it has gone, in
seconds. The kube-scheduler that wanted it may have ended; another one, with a Reserver of its own,
needs about as long to take the lead (docs/adr/0013)."""


class Pods(Protocol):
    """What bindings need of the API server (`kube.api.apply.Apply`)."""

    async def read_pod(self, name: PodName) -> Pod:
        """Return a pod as it is now."""

    async def bind(
        self, pod: Pod, node: str, claims: tuple[str, ...], is_wanted: Callable[[], bool]
    ) -> None:
        """Bind a pod; return only when it is known to have happened."""


@dataclass(slots=True)
class _Taken:
    """A node that a pod takes, and that the watch has not shown yet.

    Attributes:
        pod: the pod as it was when that was decided.
        node: the node.
        verdict: what it claims.
        expiry: takes it back when no binding comes; None where one was asked for at once.
        task: writes the binding; None before that is asked for.
        callers: how many Bind calls wait for it.
        left_at: when the last of them went, by the event loop's clock.
    """

    pod: Pod
    node: str
    verdict: BindVerdict
    expiry: asyncio.TimerHandle | None = None
    task: asyncio.Task[BindVerdict] | None = None
    callers: int = 0
    left_at: float = 0.0

    def is_wanted(self) -> bool:
        """Return whether a kube-scheduler waits for it, or did until a moment ago."""
        return self.callers > 0 or asyncio.get_running_loop().time() - self.left_at < LEFT_S


class Bindings:
    """The bindings under way, and those that were promised."""

    def __init__(
        self,
        state: State,
        pods: Pods,
        clock: Callable[[], float],
        readiness: Readiness,
        tasks: asyncio.TaskGroup,
    ) -> None:
        """Decide on a state, and have pods bound; `Extender` says what these are."""
        self._state = state
        self._pods = pods
        self._clock = clock
        self._readiness = readiness
        self._tasks = tasks
        self._log = log.bind()  # To look up what is configured takes as long as judging a pod.
        self._under_way: dict[str, _Taken] = {}

    def __len__(self) -> int:
        """Return how many are under way."""
        return len(self._under_way)

    async def bind(self, args: ExtenderBindingArgs) -> BindVerdict:
        """Bind a pod; return why not, or what it claims once it is bound.

        Raises:
            NotReady: the state is not good enough to decide on.
        """
        decided = await self._decide(args)
        if isinstance(decided, BindVerdict):
            return decided
        if decided.task is None:
            if decided.expiry is not None:
                decided.expiry.cancel()
            decided.task = self._tasks.create_task(self._write(decided))
        return await self._wait(decided, decided.task)

    async def reserve(self, args: ExtenderBindingArgs) -> BindVerdict:
        """Take a node for a pod until it is bound or `unreserve` is called, a minute at most.

        Raises:
            NotReady: the state is not good enough to decide on.
        """
        decided = await self._decide(args)
        if isinstance(decided, BindVerdict):
            return decided
        if decided.task is None and decided.expiry is None:
            later = asyncio.get_running_loop().call_later
            decided.expiry = later(RESERVED_S, self.unreserve, decided.pod.uid)
        return decided.verdict

    def unreserve(self, pod_uid: str) -> None:
        """Take back what `reserve` took; a binding under way goes on."""
        taken = self._under_way.get(pod_uid)
        if taken is not None and taken.task is None:
            if taken.expiry is not None:
                taken.expiry.cancel()
            del self._under_way[pod_uid]
            self._state.forget(pod_uid)

    async def drain(self) -> None:
        """Wait for the bindings under way, unless the API server stays down.

        A binding that is given up has its claim on it, in case it was carried out after all.
        """
        for pod_uid in tuple(self._under_way):
            self.unreserve(pod_uid)
        if tasks := [taken.task for taken in self._under_way.values() if taken.task]:
            _, late = await asyncio.wait(tasks, timeout=BIND_PATIENCE_S)
            for task in late:
                task.cancel()

    async def find_pod(self, name: PodName, uid: str) -> Pod:
        """Return a pod that kube-scheduler knows; it may not have come through our watch yet.

        Raises:
            ApiError: it cannot be read.
            InvalidInput: it is not written as a pod is.
            Gone: there is none any more; another pod may have its name.
        """
        if known := self._known(name, uid):
            return known
        pod = await self._pods.read_pod(name)
        if pod.uid != uid:
            raise Gone(f"{name} with UID {uid!r} was replaced")
        if known := self._known(name, uid):
            return known  # The watch was faster.
        if not pod.node and not self._state.pod_read(pod):
            raise Gone(f"{name} with UID {uid!r} is gone")
        return pod

    def _known(self, name: PodName, uid: str) -> Pod | None:
        """Return a pod that the watch has shown; None if another one has its name."""
        known = self._state.pods.get(name)
        return known if known is not None and known.uid == uid else None

    async def _decide(self, args: ExtenderBindingArgs) -> _Taken | BindVerdict:
        """Take the node for the pod, unless it is taken already; or return what to answer."""
        self._state.undecided.asked(args.node)
        try:
            decided = await self._take(args)
        finally:
            self._state.undecided.decided(args.node)
        if isinstance(decided, BindVerdict) and decided.refusal is not None:
            self._state.undecided.failed(args.node, self._clock())
        return decided

    async def _take(self, args: ExtenderBindingArgs) -> _Taken | BindVerdict:
        # A watch that broke a moment ago may be about to show a hold, or an entry of this owner.
        await up_to_date(self._readiness, self._state.ledger, self._clock)
        name = PodName(args.pod_namespace, args.pod_name)
        pod = self._known(name, args.pod_uid)
        if pod is None:
            try:
                pod = await self.find_pod(name, args.pod_uid)
            except (ApiError, InvalidInput, Gone) as exc:
                return BindVerdict(refusal=f"pod cannot be read: {exc}")
            # That may have taken long, or this process may have stood still.
            await up_to_date(self._readiness, self._state.ledger, self._clock)
            pod = self._known(name, args.pod_uid) or pod
        # From here to the assumption there is no await: no other decision comes between.
        if pod.node:
            is_there = pod.node == args.node
            return BindVerdict(refusal=None if is_there else f"already bound to {pod.node}")
        assumption = self._state.assumption(pod.uid)
        if assumption is not None:
            if assumption.node != args.node:
                return BindVerdict(refusal=f"being bound to {assumption.node}")
            # Else it is written, and the watch has not shown it yet.
            return self._under_way.get(pod.uid, BindVerdict())
        self._state.gangs.drop(pod)
        verdict = judge_bind(pod, args.node, self._state, self._clock())
        if verdict.refusal is not None:
            log.info("bind refused", pod=str(pod.name), node=args.node, why=verdict.refusal)
            return verdict
        self._state.assume(pod, args.node, verdict.claims)
        taken = _Taken(pod, args.node, verdict)
        self._under_way[pod.uid] = taken
        return taken

    async def _write(self, taken: _Taken) -> BindVerdict:
        pod, node, claims = taken.pod, taken.node, taken.verdict.claims
        why: list[object] = []
        try:
            with quarantined("bind", pod.name) as told:
                try:
                    await self._pods.bind(pod, node, claims, taken.is_wanted)
                except (ApiError, InvalidInput) as exc:
                    why.append(exc.reason if isinstance(exc, ApiError) else exc)
                    log.warning("binding failed", pod=str(pod.name), node=node, why=str(exc))
            if why := [*why, *told]:
                self._state.forget(pod.uid)
                self._state.undecided.failed(node, self._clock())
                return BindVerdict(refusal=f"binding failed: {why[0]}")
            self._state.confirm(pod.uid)
            # A line takes as long as judging the pod.
            tell = self._log.info if claims else self._log.debug
            tell("bound", pod=str(pod.name), node=node, claims=len(claims))
            return taken.verdict
        finally:
            del self._under_way[pod.uid]

    @staticmethod
    async def _wait(taken: _Taken, task: asyncio.Task[BindVerdict]) -> BindVerdict:
        taken.callers += 1
        try:
            done, _ = await asyncio.wait([task], timeout=BIND_PATIENCE_S)
        finally:
            taken.callers -= 1
            taken.left_at = asyncio.get_running_loop().time()
        if not done:
            return BindVerdict(refusal="binding not confirmed by the API server yet")
        return task.result()
