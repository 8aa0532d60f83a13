"""Writes of surging pods: the copy, the mark of the leaving pod, the handover, the clean-up.

`scheduler-config/components/surge/policy.yaml` allows only these writes.

A move may end or be deleted at any moment, and Reserver may crash. So copies and marks name their
move in an annotation of the pod, and are removed once the move needs them no more.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import structlog

from reserver.base.quarantine import quarantined
from reserver.cluster.pod import Pod, PodName
from reserver.cluster.quantity import shorten
from reserver.errors import ApiError, Fault, InvalidInput
from reserver.k8s.client import ApiClient
from reserver.k8s.objects.objects import decode
from reserver.k8s.objects.pod_annotations import (
    COST_ANNOTATION,
    COST_BEFORE_ANNOTATION,
    SURGE_ANNOTATION,
)
from reserver.k8s.work_queue import WorkQueue
from reserver.moves import podmove
from reserver.moves.effects import HandOver, MarkLeaving, StartCopy
from reserver.moves.index import MoveIndex
from reserver.moves.model import Move
from reserver.moves.observation import EffectAnswer, EffectResult
from reserver.moves.phases import SURGE_PHASES
from reserver.moves.podmove import MoveObject, path, read_object
from reserver.moves.podmove_status import has_begun
from reserver.moves.surge_object import LOWEST_COST, SurgingPod, surge_of

log = structlog.get_logger(__name__)

_MOST_SAID = 300


def pods(namespace: str) -> str:
    """Return the path of the pods of a namespace."""
    return f"/api/v1/namespaces/{namespace}/pods"


async def carry_out(
    client: ApiClient, move: Move, effect: StartCopy | MarkLeaving | HandOver
) -> EffectResult:
    """Execute an effect; a repetition is harmless.

    Raises:
        ApiError: the effect may not have been executed, or another client has changed the object.
    """
    refused = EffectAnswer.HANDOVER_REFUSED
    try:
        match effect:
            case StartCopy():
                refused = EffectAnswer.COPY_REFUSED
                await client.create(pods(move.name.namespace), copy(move, effect))
            case MarkLeaving(pod=pod, seen=seen):
                cost = {COST_ANNOTATION: LOWEST_COST, SURGE_ANNOTATION: surge_of(move)}
                if seen.cost not in {"", LOWEST_COST}:
                    cost[COST_BEFORE_ANNOTATION] = seen.cost
                patch = {"resourceVersion": seen.revision, "annotations": cost}
                await client.patch(f"{pods(pod.namespace)}/{pod.name}", {"metadata": patch})
            case HandOver():
                path = f"{pods(effect.namespace)}/{effect.copy.name}"
                await client.patch(path, {"metadata": _handed_over(effect)})
    except ApiError as exc:
        if exc.is_conflict or exc.is_absent or not exc.is_definite:
            raise
        return EffectResult(refused, shorten(str(exc), _MOST_SAID))
    log.info("surge", move=str(move.name), did=type(effect).__name__)
    return EffectResult()


def copy(move: Move, start: StartCopy) -> dict[str, Any]:
    """Return a copy of a pod as its ReplicaSet would create it, without the withheld labels.

    Admission changes the copy like each pod, once: nothing is copied from the leaving pod. The
    PodMove owns the copy, so that the copy is deleted with it.
    """
    metadata = start.template.get("metadata", {})
    labels = {
        name: value
        for name, value in (metadata.get("labels") or {}).items()
        if name not in start.withheld
    }
    annotations = {**(metadata.get("annotations") or {}), SURGE_ANNOTATION: surge_of(move)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": start.copy.name,
            "namespace": start.copy.namespace,
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": [podmove.owner(move.name.name, move.uid)],
        },
        "spec": start.template.get("spec", {}),
    }


def _handed_over(effect: HandOver) -> Mapping[str, object]:
    """Return the metadata that makes a copy a pod of its ReplicaSet alone."""
    return {
        "resourceVersion": effect.copy.revision,
        "labels": dict(effect.labels),
        "annotations": {SURGE_ANNOTATION: None},
        "ownerReferences": [dict(effect.owner)],
    }


async def tidy(client: ApiClient, name: PodName, pod: SurgingPod) -> None:
    """Delete a copy that no move needs, or remove the mark of a pod that stays.

    Raises:
        ApiError: the pod has changed, or the API server refuses, or does not answer.
    """
    path, metadata = f"{pods(name.namespace)}/{name.name}", pod.metadata
    version = {"uid": metadata.uid, "resourceVersion": metadata.resource_version}
    if metadata.controller is None:
        move_uid = pod.annotations[SURGE_ANNOTATION].rpartition("/")[2]
        if all(each.uid != move_uid for each in metadata.owner_references or ()):
            return  # Another client has written the annotation.
        await client.delete(path, {"preconditions": version})
        log.info("copy removed", pod=str(name), surge=pod.annotations[SURGE_ANNOTATION])
        return
    restored: dict[str, str | None] = dict.fromkeys((SURGE_ANNOTATION, COST_BEFORE_ANNOTATION))
    if pod.annotations.get(COST_ANNOTATION) == LOWEST_COST:
        restored[COST_ANNOTATION] = pod.annotations.get(COST_BEFORE_ANNOTATION)
    changed = {"resourceVersion": metadata.resource_version, "annotations": restored}
    await client.patch(path, {"metadata": changed})
    log.info("mark removed", pod=str(name), surge=pod.annotations[SURGE_ANNOTATION])


_LOOK_AGAIN_S = 5.0

_AT_ONCE = 10
"""Most pods of a namespace that are checked before those of another, with three requests each: any
tenant may write the annotation, to thousands of pods."""


class SurgeRemains:
    """Removes copies and marks that no move needs.

    Attributes:
        queue: the pods to check.
    """

    def __init__(self, client: ApiClient, moves: MoveIndex) -> None:
        """Begin without pods."""
        self._client = client
        self._moves = moves
        self._surging: dict[PodName, frozenset[PodName]] = {}
        self._annotated: set[PodName] = set()
        self.queue = WorkQueue[PodName]("surges", group=lambda pod: pod.namespace, most=_AT_ONCE)

    def changed(self, before: Pod | None, after: Pod | None) -> None:
        """Queue a newly annotated pod."""
        was = before.surge if before is not None else ""
        if after is not None and after.surge and not after.terminating:
            self._annotated.add(after.name)
            if after.surge != was:
                self.queue.add(after.name)
        elif before is not None and was:
            self._annotated.discard(before.name)
            self.queue.discard(before.name)

    def touched(self, name: PodName) -> None:
        """Queue the pod and the copy of a PodMove that needs them no more, if it ever did.

        Only these two: however many pods are annotated with its name, others have done that.
        """
        known = self._moves.get(name)
        now = _surging(known.move) if known is not None and known.move is not None else frozenset()
        for pod in (self._surging.pop(name, frozenset()) - now) & self._annotated:
            self.queue.add(pod)
        if now:
            self._surging[name] = now

    async def work(self, names: list[PodName]) -> None:
        """Check pods; failures are retried later."""
        for name in names:
            with quarantined("move", str(name), partial(self._on_fault, name)):
                try:
                    await self._look(name)
                    self.queue.succeeded(name)
                except ApiError as exc:
                    if exc.is_absent:
                        self.queue.discard(name)
                    else:
                        self.queue.failed(name, exc)

    async def _look(self, name: PodName) -> None:
        pod = decode(SurgingPod, await self._client.get(f"{pods(name.namespace)}/{name.name}"))
        said = pod.annotations.get(SURGE_ANNOTATION, "")
        if not said or pod.metadata.deletion_timestamp is not None:
            return
        move_name, _, uid = said.rpartition("/")
        of = PodName(name.namespace, move_name)
        known = self._moves.get(of)
        if known is not None and (known.has_begun or (known.move and _needs(known.move, uid))):
            return
        if await self._is_needed(of, uid):  # The watch of PodMoves may be behind.
            self.queue.add(name, _LOOK_AGAIN_S)
            return
        await tidy(self._client, name, pod)

    async def _is_needed(self, of: PodName, uid: str) -> bool:
        if not of.name:
            return False
        try:
            item = decode(MoveObject, await self._client.get(path(of)))
        except ApiError as exc:
            if exc.is_absent:
                return False
            raise
        try:
            return _needs(read_object(item), uid)
        except InvalidInput:
            return has_begun(item.status)

    def _on_fault(self, name: PodName, fault: Fault) -> None:
        self.queue.failed(name, what=str(fault))


def _surging(move: Move) -> frozenset[PodName]:
    """Return the pod of a surging move, and the copy; nothing for another move."""
    if move.status.phase not in SURGE_PHASES:
        return frozenset()
    return frozenset({move.pod, PodName(move.name.namespace, move.copy_name)})


def _needs(move: Move, uid: str) -> bool:
    return move.uid == uid and move.status.phase in SURGE_PHASES
