"""The SchedPatch that directs the replacement of a moved pod to a node."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from reserver.k8s.objects.objects import LabelledMetadata, WireStruct
from reserver.k8s.objects.selectors import StrictSelector
from reserver.patches.codec import KIND, MOST_WEIGHT, PatchSpec
from reserver.patches.model import NODE_AFFINITY, PREFERRED, PatchName
from reserver.stores.object.codec import API_VERSION


class _Spec(WireStruct, frozen=True):
    node_name: str = ""


class MovingPod(WireStruct, frozen=True):
    """A moved pod on the wire."""

    metadata: LabelledMetadata = LabelledMetadata()
    spec: _Spec = _Spec()


def patch_of(
    pod: MovingPod, name: PatchName, *, to: str, ttl: str, owner: Mapping[str, object]
) -> dict[str, Any]:
    """Return a SchedPatch for one pod with the labels of a moved pod, as its replacement has them.

    It only prefers nodes: a required term could leave the replacement without any node.

    Args:
        pod: the moved pod.
        to: the target node; empty for any node but the pod's.
        ttl: the lifetime of the SchedPatch, as a duration.
        owner: the owner of the SchedPatch, as an entry of ``ownerReferences``.
    """
    where = {"operator": "In", "values": [to]}
    if not to:
        where = {"operator": "NotIn", "values": [pod.spec.node_name]}
    term = {"matchFields": [{"key": "metadata.name", **where}]}
    preferred = [{"weight": MOST_WEIGHT, "preference": term}]
    spec = PatchSpec(
        selector=StrictSelector(match_labels=pod.metadata.labels),
        max_count=1,
        affinity={NODE_AFFINITY: {PREFERRED: preferred}},
        ttl=ttl,
    )
    metadata = {"namespace": name.namespace, "name": name.name, "ownerReferences": [owner]}
    written = msgspec.to_builtins(spec)
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": written}


def trial_pod(leaving: bytes) -> dict[str, Any]:
    """Return a pod like a moved pod, to create as a dry run.

    It has no affinity, as an earlier move may have added the same terms.

    Args:
        leaving: the JSON of the moved pod.
    """
    pod = json.loads(leaving)
    kept = ("labels", "annotations", "namespace")
    metadata = {key: value for key, value in pod["metadata"].items() if key in kept}
    left_out = ("nodeName", "affinity", "ephemeralContainers")
    spec = {key: value for key, value in pod["spec"].items() if key not in left_out}
    metadata["generateName"] = "reserver-move-"
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def is_patched(pod: bytes, patch: Mapping[str, Any]) -> bool:
    """Return whether a pod has the term of a SchedPatch of `patch_of`; a dry run leaves no mark."""
    (wanted,) = patch["spec"]["affinity"][NODE_AFFINITY][PREFERRED]
    affinity = json.loads(pod)["spec"].get("affinity", {})
    return wanted in affinity.get(NODE_AFFINITY, {}).get(PREFERRED, ())
