"""The writes of pods for decisions: bind, nominate, retry, delete; and a pending binding."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Protocol

import structlog

from reserver.base.pacer import Backoff
from reserver.cluster.pod import GRACE_S, Pod, PodName
from reserver.errors import ApiError, InvalidInput
from reserver.k8s.client import STRATEGIC_PATCH, ApiClient
from reserver.k8s.objects.objects import decode, encode
from reserver.k8s.objects.pod_annotations import CLAIMS_ANNOTATION, RETRY_ANNOTATION
from reserver.k8s.objects.pods import BoundPod, PodObject
from reserver.k8s.objects.times import show_moment
from reserver.scheduling.bind import BindVerdict
from reserver.scheduling.verdicts import Activate, Effect, Nominate, Recall
from reserver.stores.status import MayWrite, always

log = structlog.get_logger(__name__)

_AT_ONCE = 4
"""Most pods of a PodGroup that are nominated concurrently."""

_MOST_FAILURES = 4
"""Server errors of a binding after which Reserver reads the pod."""


class PodWrites:
    """The writes of pods for decisions."""

    def __init__(
        self, client: ApiClient, clock: Callable[[], float], may_delete: MayWrite = always
    ) -> None:
        """Write through a client; `clock` gives unix seconds.

        `may_delete` returns whether this process decides, on a state that etcd confirms.
        """
        self._client = client
        self._clock = clock
        self._may_delete = may_delete

    async def read_pod(self, name: PodName) -> Pod:
        """Return the present version of a pod from the API server.

        Raises:
            ApiError: the pod does not exist, or there is no answer.
            InvalidInput: the pod is malformed.
        """
        return decode(PodObject, await self._client.get(pod_path(name))).value()

    async def bind(
        self, pod: Pod, node: str, claims: tuple[str, ...], is_wanted: Callable[[], Awaitable[bool]]
    ) -> None:
        """Bind a pod in the version that was judged, and record its claims, in one write.

        Return only when the result is certain, however long that takes: a request without an answer
        is sent again, as the API server executes at most one. Once the binding is no longer wanted,
        the pod is only read.

        Args:
            node: the node.
            claims: the identities of the claimed reservations.
            is_wanted: returns whether the caller still wants the binding, with an up-to-date state.

        Raises:
            ApiError: the pod is not bound, and will not be.
        """
        failure: ApiError | None = None
        may_have_happened, backoff = False, Backoff(0.1, 5.0)
        for attempt in count(1):
            has_to_look = True
            if failure is None or await is_wanted():
                failure = await self._try_to_bind(pod, node, claims)
                if failure is None:
                    return
                if failure.is_absent:
                    raise failure  # The pod is gone, bound or not.
                is_refusal = failure.is_definite and not failure.is_conflict
                if is_refusal and not may_have_happened:
                    raise failure
                may_have_happened = may_have_happened or not failure.is_definite
                has_failed_often = failure.status and attempt >= _MOST_FAILURES
                has_to_look = bool(failure.is_definite or has_failed_often)
            bound = await self._is_bound(pod, node) if has_to_look else None
            if bound:
                return
            if bound is False:
                raise failure
            log.warning("binding not confirmed yet", pod=str(pod.name), why=str(failure))
            await backoff.sleep()

    async def _try_to_bind(self, pod: Pod, node: str, claims: tuple[str, ...]) -> ApiError | None:
        try:
            body = _binding(pod, node, claims)
            await self._client.create(f"{pod_path(pod.name)}/binding", body)
        except ApiError as exc:
            return exc
        return None

    async def carry_out(self, effect: Effect) -> None:
        """Have kube-scheduler retry a pod, or delete borrowers.

        Retries use `pods/status`, which accepts annotations too (podStatusStrategy in
        pkg/registry/core/pod/strategy.go): the right to patch pods would allow to change images.

        Raises:
            ApiError: the API server refused, or did not answer.
        """
        if isinstance(effect, Nominate):
            for start in range(0, len(effect.first), _AT_ONCE):
                some = effect.first[start : start + _AT_ONCE]
                await asyncio.gather(*(self._nominate(pod, node) for pod, node in some))
            for pod, node in ((effect.pod, effect.node), *effect.last):
                await self._nominate(pod, node)
        elif isinstance(effect, Activate):
            await self._nominate(effect.pod, effect.node)
            await self._nominate(effect.pod, None)
        elif isinstance(effect, Recall):
            await self.recall(effect.borrowers)
        else:
            annotations = {RETRY_ANNOTATION: f"{self._clock():.3f}"}
            await self._patch_status(effect.pod, {"metadata": {"annotations": annotations}})

    async def _nominate(self, pod: Pod, node: str | None) -> None:
        await self._patch_status(pod, {"status": {"nominatedNodeName": node}})

    async def recall(self, borrowers: Iterable[Pod]) -> None:
        """Delete borrowers.

        Raises:
            ApiError: a deletion failed; the others succeeded, unless the API server is away, or
                another process may decide by now.
        """
        refused: ApiError | None = None
        for each in borrowers:
            if not await self._may_delete():
                raise ApiError(0, "NotReady", "reserver does not see the cluster as it is now")
            try:
                await self._delete(each)
            except ApiError as exc:
                if exc.is_away:
                    raise
                refused = exc
        if refused is not None:
            raise refused

    async def _delete(self, borrower: Pod) -> None:
        """Delete a borrower as kube-scheduler deletes its victims, with a condition (KEP-3329)."""
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "RecalledByReserver",
            "message": "a reservation needs the room that it has borrowed",
            "lastTransitionTime": show_moment(self._clock()),
        }
        options = {"preconditions": {"uid": borrower.uid}, "gracePeriodSeconds": GRACE_S}
        try:
            patch = _for_uid(borrower, {"status": {"conditions": [condition]}})
            await self._client.patch(f"{pod_path(borrower.name)}/status", patch, STRATEGIC_PATCH)
            await self._client.delete(pod_path(borrower.name), options)
        except ApiError as exc:
            if not exc.is_absent:
                raise

    async def _patch_status(self, pod: Pod, patch: Mapping[str, Mapping[str, object]]) -> None:
        await self._client.patch(f"{pod_path(pod.name)}/status", _for_uid(pod, patch))

    async def _is_bound(self, pod: Pod, node: str) -> bool | None:
        """Return whether a pod is bound to a node by now; None if unknown."""
        try:
            now = decode(BoundPod, await self._client.get(pod_path(pod.name)))
        except ApiError as exc:
            return False if exc.is_absent else None
        except InvalidInput:
            return None
        return now.metadata.uid == pod.uid and now.spec.node_name == node


def pod_path(name: PodName) -> str:
    """Return the path of a pod."""
    return f"/api/v1/namespaces/{name.namespace}/pods/{name.name}"


def _for_uid(pod: Pod, patch: Mapping[str, Mapping[str, object]]) -> dict[str, object]:
    """Return a merge patch that the API server refuses for another pod of the same name."""
    return {**patch, "metadata": {**patch.get("metadata", {}), "uid": pod.uid}}


def _binding(pod: Pod, node: str, claims: tuple[str, ...]) -> dict[str, object]:
    metadata: dict[str, object] = {
        "name": pod.name.name,
        "namespace": pod.name.namespace,
        "uid": pod.uid,
    }
    if pod.revision:  # So that a changed pod is judged again.
        metadata["resourceVersion"] = str(pod.revision)
    if claims:
        metadata["annotations"] = {CLAIMS_ANNOTATION: encode(claims).decode()}
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": metadata,
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }


LEFT_S = 2.0
"""Seconds for which a binding without an answer is repeated after its last Bind call has ended. The
kube-scheduler that wanted it may have ended; another one, with its own Reserver, needs about as
long to become the leader (docs/adr/0013)."""


class Pods(Protocol):
    """The reads and writes that bindings need (`PodWrites`)."""

    async def read_pod(self, name: PodName) -> Pod:
        """Return the present version of a pod."""

    async def bind(
        self, pod: Pod, node: str, claims: tuple[str, ...], is_wanted: Callable[[], Awaitable[bool]]
    ) -> None:
        """Bind an unchanged pod; return only when the binding is certain."""


@dataclass(slots=True)
class PendingBinding:
    """A pod that takes a node, which the watch has not shown yet.

    Attributes:
        pod: the judged version of the pod, which is bound.
        node: the node.
        verdict: its claims, or the refusal of its changed version.
        expiry: takes the node of `reserve` back without a Bind call; None for a Bind call.
        task: writes the binding; None before a Bind call.
        callers: the number of Bind calls that wait for it.
        left_at: the end of the last Bind call, in seconds of the event loop's clock.
    """

    pod: Pod
    node: str
    verdict: BindVerdict
    expiry: asyncio.TimerHandle | None = None
    task: asyncio.Task[BindVerdict] | None = None
    callers: int = 0
    left_at: float = 0.0

    def is_wanted(self) -> bool:
        """Return whether a Bind call waits for it, or did until `LEFT_S` ago."""
        return self.callers > 0 or asyncio.get_running_loop().time() - self.left_at < LEFT_S
