"""The SchedPatch that sends the replacement of a pod that moves to a node."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from reserver.k8s.objects.objects import LabelledMetadata, WireStruct
from reserver.patches.codec import KIND, MOST_WEIGHT, LabelsSelector, PatchSpec
from reserver.patches.model import NODE_AFFINITY, PREFERRED, PatchName
from reserver.stores.object.codec import API_VERSION


class _Spec(WireStruct, frozen=True):
    node_name: str = ""


class MovingPod(WireStruct, frozen=True):
    """A pod that moves, as the API server has it."""

    metadata: LabelledMetadata = LabelledMetadata()
    spec: _Spec = _Spec()


def patch_of(
    pod: MovingPod, name: PatchName, *, to: str, ttl: str, owner: Mapping[str, object]
) -> dict[str, Any]:
    """Return a SchedPatch for one pod with the labels of another: its replacement has them, too.

    It prefers and demands nothing, or the replacement could find no place at all.

    Args:
        pod: that leaves.
        to: the node to go to; empty for any but the one that the pod leaves.
        ttl: as a duration; it patches none after that.
        owner: the object that the SchedPatch goes with, as an entry of ``ownerReferences``.
    """
    where = {"operator": "In", "values": [to]}
    if not to:
        where = {"operator": "NotIn", "values": [pod.spec.node_name]}
    term = {"matchFields": [{"key": "metadata.name", **where}]}
    preferred = [{"weight": MOST_WEIGHT, "preference": term}]
    spec = PatchSpec(
        selector=LabelsSelector(match_labels=pod.metadata.labels),
        max_count=1,
        affinity={NODE_AFFINITY: {PREFERRED: preferred}},
        ttl=ttl,
    )
    metadata = {"namespace": name.namespace, "name": name.name, "ownerReferences": [owner]}
    written = msgspec.to_builtins(spec)
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": written}


def trial_pod(leaving: bytes) -> dict[str, Any]:
    """Return a pod like the one that leaves, to be created as a dry run.

    It has no affinity: an earlier move may have given it the same.

    Args:
        leaving: as the API server has it.
    """
    pod = json.loads(leaving)
    kept = ("labels", "annotations", "namespace")
    metadata = {key: value for key, value in pod["metadata"].items() if key in kept}
    left_out = ("nodeName", "affinity", "ephemeralContainers")
    spec = {key: value for key, value in pod["spec"].items() if key not in left_out}
    metadata["generateName"] = "reserver-move-"
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def is_patched(pod: bytes, patch: Mapping[str, Any]) -> bool:
    """Return whether a pod has what a SchedPatch of `patch_of` gives; a dry run leaves no mark."""
    (wanted,) = patch["spec"]["affinity"][NODE_AFFINITY][PREFERRED]
    affinity = json.loads(pod)["spec"].get("affinity", {})
    return wanted in affinity.get(NODE_AFFINITY, {}).get(PREFERRED, ())
