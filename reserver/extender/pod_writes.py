"""Writes pods as decisions ask for it: bind, nominate, retry; and a binding under way."""

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

log = structlog.get_logger(__name__)

_AT_ONCE = 4
"""How many pods of a PodGroup are nominated at a time."""

_MOST_FAILURES = 4
"""How often a binding may fail with a server error before Reserver looks at the pod."""


class PodWrites:
    """The writes to pods that decisions ask for."""

    def __init__(self, client: ApiClient, clock: Callable[[], float]) -> None:
        """Write through a client; `clock` gives unix seconds."""
        self._client = client
        self._clock = clock

    async def read_pod(self, name: PodName) -> Pod:
        """Return a pod as the API server has it now.

        Raises:
            ApiError: there is none, or no answer.
            InvalidInput: it cannot be read.
        """
        return decode(PodObject, await self._client.get(pod_path(name))).value()

    async def bind(
        self, pod: Pod, node: str, claims: tuple[str, ...], is_wanted: Callable[[], Awaitable[bool]]
    ) -> None:
        """Bind a pod as it was judged and record its claims, in one write of the API server.

        Returns only when it is known to have happened, however long that takes: a request without
        an answer is sent again, because the API server carries out at most one of them. When it is
        not wanted any more, the pod is only looked at.

        Args:
            node: where to.
            claims: identities of the reservations that it claims.
            is_wanted: whether the caller still wants it, and knows all that would tell against it.

        Raises:
            ApiError: it has not happened and will not.
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
                    raise failure  # The pod is gone, whatever became of it before.
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
        """Have kube-scheduler try a pod again.

        All goes through `pods/status`, which takes annotations, too (podStatusStrategy in
        pkg/registry/core/pod/strategy.go): the right to patch pods could swap their images.

        Raises:
            ApiError: the API server refused (409: another pod has its name), or did not answer.
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
            ApiError: one could not be deleted; the others were, unless the API server is away.
        """
        refused: ApiError | None = None
        for each in borrowers:
            try:
                await self._delete(each)
            except ApiError as exc:
                if exc.is_away:
                    raise
                refused = exc
        if refused is not None:
            raise refused

    async def _delete(self, borrower: Pod) -> None:
        """Delete a borrower as kube-scheduler deletes its victims: with a condition (KEP-3329)."""
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
        """Return whether a request was carried out after all; None while that is unknown."""
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
    if pod.revision:  # A pod that has grown since, or is no owner any more, is judged again.
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
"""How long a binding without an answer is repeated after the last Bind call for it has gone, in
seconds. The kube-scheduler that wanted it may have ended; another one, with a Reserver of its own,
needs about as long to take the lead (docs/adr/0013)."""


class Pods(Protocol):
    """What bindings need of the API server (`PodWrites`)."""

    async def read_pod(self, name: PodName) -> Pod:
        """Return a pod as it is now."""

    async def bind(
        self, pod: Pod, node: str, claims: tuple[str, ...], is_wanted: Callable[[], Awaitable[bool]]
    ) -> None:
        """Bind a pod that has not changed; return only when it is known to have happened."""


@dataclass(slots=True)
class PendingBinding:
    """A node that a pod takes, and that the watch has not shown yet.

    Attributes:
        pod: the pod as it was when that was decided, and as which it is bound.
        verdict: what it claims; or why it does not get the node after all, once it has changed.
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
