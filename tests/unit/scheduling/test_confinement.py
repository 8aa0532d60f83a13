"""The volumes that keep a pod on its nodes: only its own claims' volumes are looked for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reserver.cluster.pod import ClaimUse
from reserver.k8s.objects.objects import decode, encode
from reserver.k8s.objects.storage import ClaimObject, VolumeObject
from reserver.scheduling.node_rules import confinement
from reserver.scheduling.state import State
from tests.builders import node, pod, state_of
from tests.unit.scheduling.documents import Json, term

WITH = {"uid": "uid-data"}
OWN: Json = {"namespace": "shop", "name": "data"}
SAID = "its volume pv (claim data) is on w2 only"
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}


def world(claim_ref: Json | None, metadata: Json, host: str = "w2") -> State:
    """Return three nodes, a volume on one of them, and the claim `data`, which names it."""
    state = state_of(*(node(f"w{n}", cpu="4", labels={"host": f"w{n}"}) for n in range(3)))
    storage = state.snapshot.storage
    where = {"required": {"nodeSelectorTerms": [term(("host", "In", host))]}}
    spec = {"nodeAffinity": where, "claimRef": claim_ref}
    made = {"metadata": {"name": "pv"}, "spec": spec}
    storage.volumes["pv"] = decode(VolumeObject, encode(made)).value()
    made = {
        "metadata": {"name": "data", "namespace": "shop", **metadata},
        "spec": {"volumeName": "pv"},
    }
    claim = decode(ClaimObject, encode(made)).value()
    storage.claims[claim.name] = claim
    return state


def said(state: State) -> str:
    """Return what keeps a pod on its nodes that uses the claim, but for w2."""
    snapshot = state.snapshot
    rows = snapshot.exists.copy()
    rows[snapshot.row("w2")] = False
    using = replace(pod("web-0", node="w1"), volume_claims=(ClaimUse("data"),))
    return confinement(using, snapshot, rows)


@pytest.mark.parametrize("annotations", [{}, BOUND], ids=["unbound", "says that it is bound"])
@pytest.mark.parametrize(
    ("claim_ref", "metadata", "expected"),
    [
        (OWN, {}, SAID),
        (OWN, WITH, SAID),
        (OWN | WITH, WITH, SAID),
        (OWN | WITH, {}, SAID),
        (OWN | {"uid": "another"}, WITH, ""),
        (OWN | {"namespace": "bank"}, WITH, ""),
        (OWN | {"namespace": "bank"} | WITH, WITH, ""),
        (OWN | {"name": "other"}, {}, ""),
        ({"name": "data"}, {}, ""),
        ({}, {}, ""),
        (None, WITH, ""),
    ],
)
def test_where_a_volume_is_is_said_to_the_claim_that_it_belongs_to(
    claim_ref: Json | None, metadata: Json, annotations: Json, expected: str
) -> None:
    state = world(claim_ref, metadata | {"annotations": annotations})
    assert said(state) == expected


def test_a_volume_that_others_can_use_keeps_nobody() -> None:
    assert said(world(OWN | WITH, WITH, host="w0")) == ""
