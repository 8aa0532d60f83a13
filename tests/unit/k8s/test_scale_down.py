"""The annotations that protect a node from scale-down, and annotations of other clients."""

from __future__ import annotations

import pytest

from reserver.k8s.objects.nodes import KEPT, NodeObject, keeping_changes
from reserver.k8s.objects.objects import decode, encode

CA, KARPENTER = (
    "cluster-autoscaler.kubernetes.io/scale-down-disabled",
    "karpenter.sh/do-not-disrupt",
)
BOTH = f"{CA},{KARPENTER}"

BEGINS = {
    "nobody has set any": ({}, {KEPT: BOTH, CA: "true", KARPENTER: "true"}),
    "somebody has set one": ({CA: "true", "x": "y"}, {KEPT: KARPENTER, KARPENTER: "true"}),
    "somebody wants it removed": ({CA: "false"}, {KEPT: KARPENTER, KARPENTER: "true"}),
    "somebody has set both": ({CA: "true", KARPENTER: "false"}, {KEPT: ""}),
    "it is kept": ({KEPT: CA, CA: "true"}, {}),
    "somebody has removed ours since": ({KEPT: BOTH}, {}),
}
ENDS = {
    "ours": ({KEPT: BOTH, CA: "true", KARPENTER: "true"}, {KEPT: None, CA: None, KARPENTER: None}),
    "one was somebody else's": (
        {KEPT: KARPENTER, CA: "true", KARPENTER: "true"},
        {KEPT: None, KARPENTER: None},
    ),
    "somebody has changed ours": ({KEPT: CA, CA: "false"}, {KEPT: None}),
    "somebody has removed ours": ({KEPT: CA}, {KEPT: None}),
    "all were somebody else's": ({KEPT: "", CA: "true"}, {KEPT: None}),
    "it says what is not ours": (
        {KEPT: f"{CA},other", CA: "true", "other": "true"},
        {KEPT: None, CA: None},
    ),
    "it is not kept": ({CA: "true"}, {}),
}


@pytest.mark.parametrize("found", BEGINS)
def test_what_nobody_has_set_is_set_when_a_hold_begins(found: str) -> None:
    annotations, wanted = BEGINS[found]
    assert keeping_changes(annotations, is_needed=True) == wanted


@pytest.mark.parametrize("found", ENDS)
def test_what_reserver_has_set_is_removed_when_the_last_hold_ends(found: str) -> None:
    annotations, wanted = ENDS[found]
    assert keeping_changes(annotations, is_needed=False) == wanted


def test_a_node_says_whether_it_is_kept() -> None:
    for found, is_kept in (({KEPT: ""}, True), ({CA: "true"}, False), (None, False)):
        metadata = {"name": "worker-1", "annotations": found}
        assert decode(NodeObject, encode({"metadata": metadata})).value().is_kept is is_kept
