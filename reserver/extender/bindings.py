"""Pending bindings: each is decided, then assumed, then written by the API server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import count

import structlog

from reserver.base.quarantine import quarantined
from reserver.cluster.pod import Pod, PodName
from reserver.errors import ApiError, Gone, InvalidInput, NotReady
from reserver.extender.pod_writes import PendingBinding, Pods
from reserver.extender.protocol import ExtenderBindingArgs
from reserver.k8s.objects.limits import POD
from reserver.scheduling.bind import BindVerdict, judge_bind
from reserver.scheduling.in_flight import AssumedPod
from reserver.scheduling.state import Readiness, State, require_ready, up_to_date

log = structlog.get_logger(__name__)

BIND_PATIENCE_S = 25.0
"""Longest wait of a Bind call for the API server, in seconds: less than the extender's httpTimeout.
The binding itself continues; kube-scheduler's next Bind call for the pod joins it."""

RESERVED_S = 60.0
"""Seconds for which `reserve` takes a node for an unbound pod."""

MOST_TRIES = 4
"""Most decisions for one binding of a pod that changes each time before the write."""


class Bindings:
    """The pending bindings, and the nodes taken by `reserve`."""

    def __init__(
        self,
        state: State,
        pods: Pods,
        clock: Callable[[], float],
        readiness: Readiness,
        tasks: asyncio.TaskGroup,
    ) -> None:
        """Begin without bindings; for the arguments see `Extender`."""
        self._state = state
        self._pods = pods
        self._clock = clock
        self._readiness = readiness
        self._tasks = tasks
        self._log = log.bind()  # Reading the logging configuration takes as long as a decision.
        self._under_way: dict[str, PendingBinding] = {}

    def __len__(self) -> int:
        """Return the number of pending bindings."""
        return len(self._under_way)

    async def bind(self, args: ExtenderBindingArgs) -> BindVerdict:
        """Bind a pod; return a refusal, or the claims once it is bound.

        Raises:
            NotReady: the state is not up to date.
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
            NotReady: the state is not up to date.
        """
        decided = await self._decide(args)
        if isinstance(decided, BindVerdict):
            return decided
        if decided.task is None and decided.expiry is None:
            later = asyncio.get_running_loop().call_later
            decided.expiry = later(RESERVED_S, self.unreserve, decided.pod.uid)
        return decided.verdict

    def unreserve(self, pod_uid: str) -> None:
        """Take back the node of `reserve`; a binding whose write has begun continues."""
        taken = self._under_way.get(pod_uid)
        if taken is not None and taken.task is None:
            self._drop(taken)
            self._state.forget(pod_uid)

    def _drop(self, taken: PendingBinding) -> None:
        if taken.expiry is not None:
            taken.expiry.cancel()
        del self._under_way[taken.pod.uid]

    async def drain(self) -> None:
        """Wait for the pending bindings, unless the API server stays down.

        A cancelled binding request carries its claim, in case it was executed after all.
        """
        for pod_uid in tuple(self._under_way):
            self.unreserve(pod_uid)
        if tasks := [taken.task for taken in self._under_way.values() if taken.task]:
            _, late = await asyncio.wait(tasks, timeout=BIND_PATIENCE_S)
            for task in late:
                task.cancel()

    async def find_pod(self, name: PodName, uid: str) -> Pod:
        """Return a pod that kube-scheduler names; Reserver's watch may not have shown it yet.

        Raises:
            ApiError: the pod cannot be read.
            InvalidInput: the pod is malformed.
            Gone: the pod is deleted; another pod may have its name.
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
        """Return a pod that the watch has shown; None without one of that UID."""
        known = self._state.pods.get(name)
        return known if known is not None and known.uid == uid else None

    async def _decide(self, args: ExtenderBindingArgs) -> PendingBinding | BindVerdict:
        """Assume the pod on the node, or join its pending binding; else return the answer."""
        self._state.inflight_binds.asked(args.node)
        try:
            decided = await self._take(args)
        finally:
            self._state.inflight_binds.decided(args.node)
        if isinstance(decided, BindVerdict) and decided.refusal is not None:
            self._state.inflight_binds.failed(args.node, self._clock())
        return decided

    async def _take(self, args: ExtenderBindingArgs) -> PendingBinding | BindVerdict:
        # A watch that broke a moment ago may be about to show a hold, or an entry of this owner.
        await up_to_date(self._readiness, self._state.ledger, self._clock)
        name = PodName(args.pod_namespace, args.pod_name)
        pod = self._known(name, args.pod_uid)
        if pod is None:
            try:
                pod = await self.find_pod(name, args.pod_uid)
            except (ApiError, InvalidInput, Gone) as exc:
                return BindVerdict(refusal=f"pod cannot be read: {exc}")
            # The read may have taken long, or this process may have been paused.
            await up_to_date(self._readiness, self._state.ledger, self._clock)
            pod = self._known(name, args.pod_uid) or pod
        # No await from here to the assumption: no other decision comes between.
        if pod.node:
            is_there = pod.node == args.node
            return BindVerdict(refusal=None if is_there else f"already bound to {pod.node}")
        assumption = self._state.assumption(pod.uid)
        if assumption is not None:
            return self._joined(assumption, pod, args.node)
        self._state.gangs.drop(pod)
        verdict = judge_bind(pod, args.node, self._state, self._clock())
        if verdict.refusal is not None:
            log.info("bind refused", pod=str(pod.name), node=args.node, why=verdict.refusal)
            return verdict
        self._state.assume(pod, args.node, verdict.claims)
        taken = PendingBinding(pod, args.node, verdict)
        self._under_way[pod.uid] = taken
        return taken

    def _joined(self, assumption: AssumedPod, pod: Pod, node: str) -> PendingBinding | BindVerdict:
        """Return the pending binding of an assumed pod, or the answer."""
        if assumption.node != node:
            return BindVerdict(refusal=f"being bound to {assumption.node}")
        taken = self._under_way.get(pod.uid)
        if taken is None:
            return BindVerdict()  # The binding is written; the watch has not shown it yet.
        if taken.task is None and pod.revision > taken.pod.revision:
            self._judge_again(taken, pod)
            if taken.verdict.refusal is not None:
                self._drop(taken)
                return taken.verdict
        return taken

    async def _write(self, taken: PendingBinding) -> BindVerdict:
        name, uid, node = taken.pod.name, taken.pod.uid, taken.node
        why: list[object] = []
        try:
            with quarantined("bind", name) as faults:
                try:
                    await self._bind(taken)
                except (ApiError, InvalidInput, NotReady) as exc:
                    why.append(exc.reason if isinstance(exc, ApiError) else exc)
                    log.warning("binding failed", pod=str(name), node=node, why=str(exc))
            if why := [*why, *faults]:
                taken.verdict = BindVerdict(refusal=f"binding failed: {why[0]}")
            if taken.verdict.refusal is not None:
                self._state.forget(uid)
                self._state.inflight_binds.failed(node, self._clock())
                return taken.verdict
            self._state.confirm(uid)
            # A log line takes as long as a decision.
            claims = len(taken.verdict.claims)
            write = self._log.info if claims else self._log.debug
            write("bound", pod=str(name), node=node, claims=claims)
            return taken.verdict
        finally:
            del self._under_way[uid]

    async def _bind(self, taken: PendingBinding) -> None:
        """Bind a pod in the version that was judged; judge it again if it has changed.

        Raises:
            ApiError: the pod is not bound, and will not be.
            InvalidInput: the changed pod is malformed.
            NotReady: etcd does not answer, and may come back with other data. Or while it was asked
                another process may have begun to decide.
        """
        for tries in count(1):
            if not await self._readiness.agrees():
                require_ready(self._readiness)
                raise NotReady("etcd cannot be asked")
            if not taken.is_wanted():
                raise NotReady("its Bind call has ended")
            try:
                is_wanted, claims = partial(self._is_wanted, taken), taken.verdict.claims
                most = max(len(claims), POD.claims)
                named = (*claims, *taken.verdict.editions)[:most]
                await self._pods.bind(taken.pod, taken.node, named, is_wanted)
            except ApiError as exc:
                if not exc.is_conflict or tries == MOST_TRIES:
                    raise
                pod = await self._changed(taken)
                if pod is None:
                    raise
                self._judge_again(taken, pod)
                if taken.verdict.refusal is None:
                    continue
            return

    async def _changed(self, taken: PendingBinding) -> Pod | None:
        """Return the present version of a pod; None unless it has changed and is unbound."""
        pod = await self._pods.read_pod(taken.pod.name)
        try:
            await up_to_date(self._readiness, self._state.ledger, self._clock)
        except NotReady:
            return None
        known = self._known(pod.name, pod.uid)
        if known is not None and known.revision > pod.revision:
            pod = known
        is_same = pod.uid == taken.pod.uid and not pod.node
        return pod if is_same and pod.revision != taken.pod.revision else None

    def _judge_again(self, taken: PendingBinding, pod: Pod) -> None:
        """Repeat a decision for a changed pod, without an await in between.

        If it is refused now, the pod is not assumed any more.
        """
        self._state.forget(pod.uid)
        taken.pod, taken.verdict = pod, judge_bind(pod, taken.node, self._state, self._clock())
        if taken.verdict.refusal is None:
            self._state.assume(pod, taken.node, taken.verdict.claims)
        why = taken.verdict.refusal
        log.info("judged again, pod has changed", pod=str(pod.name), node=taken.node, why=why)

    async def _is_wanted(self, taken: PendingBinding) -> bool:
        """Return whether a request without an answer may be sent again.

        A restored API server may show another cluster than the one of the decision.
        """
        with suppress(NotReady):
            await self._readiness.caught_up()
            return await self._readiness.agrees() and taken.is_wanted()
        return False

    @staticmethod
    async def _wait(taken: PendingBinding, task: asyncio.Task[BindVerdict]) -> BindVerdict:
        taken.callers += 1
        try:
            done, _ = await asyncio.wait([task], timeout=BIND_PATIENCE_S)
        finally:
            taken.callers -= 1
            taken.left_at = asyncio.get_running_loop().time()
        if not done:
            return BindVerdict(refusal="binding not confirmed by the API server yet")
        return task.result()
