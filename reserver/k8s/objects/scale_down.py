"""The node annotations that keep autoscalers from removing a node."""

from __future__ import annotations

from collections.abc import Mapping

KEPT = "reserver.io/kept"
"""On a Node that Reserver keeps: which of the annotations below it has set, with commas between."""

KEEPING = (
    "cluster-autoscaler.kubernetes.io/scale-down-disabled",
    "karpenter.sh/do-not-disrupt",
)
"""What says that a node is not to be removed: to the Cluster Autoscaler (eligibility.go of
cluster-autoscaler/core/scaledown), to Karpenter (pkg/controllers/state/statenode.go)."""

_KEEP = "true"


def is_kept(annotations: Mapping[str, str] | None) -> bool:
    """Return whether Reserver keeps a node that has these annotations."""
    return KEPT in (annotations or {})


def changes(annotations: Mapping[str, str], *, is_needed: bool) -> dict[str, str | None]:
    """Return what Reserver changes of a node's annotations; None removes one.

    What somebody else has set is left alone, and so is what somebody has changed since. A node
    `is_needed` if something is held there, or it is kept for pods that are there.
    """
    if is_needed == is_kept(annotations):
        return {}
    if is_needed:
        unset = [name for name in KEEPING if name not in annotations]
        return {KEPT: ",".join(unset), **dict.fromkeys(unset, _KEEP)}
    own = [name for name in annotations[KEPT].split(",") if name in KEEPING]
    return {KEPT: None, **{name: None for name in own if annotations.get(name) == _KEEP}}
