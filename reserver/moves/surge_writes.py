"""Writes of pods that surge: the copy, the mark of the pod that leaves, the handover, and the rest.

`scheduler-config/components/surge/policy.yaml` allows these and no others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import structlog

from reserver.cluster.pod import PodName
from reserver.cluster.quantity import shorten
from reserver.errors import ApiError
from reserver.k8s.client import ApiClient
from reserver.k8s.objects.pod_annotations import (
    COST_ANNOTATION,
    COST_BEFORE_ANNOTATION,
    SURGE_ANNOTATION,
)
from reserver.moves import podmove
from reserver.moves.effects import HandOver, MarkLeaving, StartCopy
from reserver.moves.model import Move
from reserver.moves.observation import EffectAnswer, EffectResult
from reserver.moves.surge_object import LOWEST_COST, SurgingPod, surge_of

log = structlog.get_logger(__name__)

_MOST_SAID = 300


def pods(namespace: str) -> str:
    """Return the path of the pods of a namespace."""
    return f"/api/v1/namespaces/{namespace}/pods"


async def carry_out(
    client: ApiClient, move: Move, effect: StartCopy | MarkLeaving | HandOver
) -> EffectResult:
    """Carry out an effect; it does no harm if it was carried out before.

    Raises:
        ApiError: it may not have been carried out, or what it changes was changed by somebody else.
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
    """Return a copy of a pod as its ReplicaSet would make it, without the labels to be withheld.

    What admission adds to each pod it adds to the copy as well, once, and nothing of the pod that
    leaves is carried along. Whoever deletes the PodMove deletes the copy.
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
    """Return what makes a copy a pod of its ReplicaSet, and of nobody else."""
    return {
        "resourceVersion": effect.copy.revision,
        "labels": dict(effect.labels),
        "annotations": {SURGE_ANNOTATION: None},
        "ownerReferences": [dict(effect.owner)],
    }


async def tidy(client: ApiClient, name: PodName, pod: SurgingPod) -> None:
    """Remove a copy that no move needs; of a pod that stays, remove the mark.

    Raises:
        ApiError: the pod was changed meanwhile, or the API server refuses, or does not answer.
    """
    path, metadata = f"{pods(name.namespace)}/{name.name}", pod.metadata
    version = {"uid": metadata.uid, "resourceVersion": metadata.resource_version}
    if metadata.controller is None:
        move_uid = pod.annotations[SURGE_ANNOTATION].rpartition("/")[2]
        if all(each.uid != move_uid for each in metadata.owner_references or ()):
            return  # Somebody else has written the annotation.
        await client.delete(path, {"preconditions": version})
        log.info("copy removed", pod=str(name), surge=pod.annotations[SURGE_ANNOTATION])
        return
    restored: dict[str, str | None] = dict.fromkeys((SURGE_ANNOTATION, COST_BEFORE_ANNOTATION))
    if pod.annotations.get(COST_ANNOTATION) == LOWEST_COST:
        restored[COST_ANNOTATION] = pod.annotations.get(COST_BEFORE_ANNOTATION)
    changed = {"resourceVersion": metadata.resource_version, "annotations": restored}
    await client.patch(path, {"metadata": changed})
    log.info("mark removed", pod=str(name), surge=pod.annotations[SURGE_ANNOTATION])
