"""Plans move no pod to a node that its volumes are not for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reserver.cluster.constraints import NodeTerm
from reserver.cluster.labels import equals
from reserver.cluster.pod import ClaimUse, PodName
from reserver.cluster.storage import Storage, Volume, VolumeClaim
from reserver.rebalance.cluster_state import ClusterState
from reserver.rebalance.defragment import defragment
from reserver.rebalance.makeroom import make_room
from reserver.rebalance.planning_snapshot import planning_snapshot
from tests.builders import node, pod
from tests.unit.rebalance.scenes import cluster_of, moves, unprotected

ZONE = "topology.kubernetes.io/zone"
A, B, C = (
    node(each, cpu="4", labels={"host": each, ZONE: "z2" if each == "a" else "z1"})
    for each in "abc"
)
DATA = PodName("shop", "data")
LOCAL = Volume(name="pv", node_terms=(NodeTerm(labels=equals({"host": "b"})),))
ZONAL = Volume(name="pv", zones=((ZONE, frozenset({"z1"})),))
ANYWHERE = Volume(name="pv")


def with_volume(volume: Volume) -> ClusterState:
    """Return a cluster in which the shortest plan moves the pod with the volume off b."""
    storage = Storage()
    storage.claims[DATA] = VolumeClaim(name=DATA, is_bound=True, volume="pv")
    storage.volumes["pv"] = volume
    database = replace(pod("db", node="b", cpu="1"), volume_claims=(ClaimUse("data"),))
    others = (pod("p", node="a", cpu="2"), pod("q", node="a", cpu="1"), pod("s", node="c", cpu="4"))
    return replace(cluster_of(A, B, C, database, *others), storage=storage)


@pytest.mark.parametrize(
    ("volume", "expected"),
    [
        pytest.param(LOCAL, [("p", "a", "b"), ("q", "a", "b")], id="on one node"),
        pytest.param(ZONAL, [("p", "a", "b"), ("q", "a", "b")], id="in another zone"),
        pytest.param(ANYWHERE, [("db", "b", "a")], id="anywhere"),
    ],
)
def test_a_pod_stays_where_its_volume_is(
    volume: Volume, expected: list[tuple[str, str, str]]
) -> None:
    cluster = with_volume(volume)
    assert moves(defragment(planning_snapshot(cluster, unprotected))) == expected
    asking = planning_snapshot(cluster, unprotected, wanted=[pod("big", cpu="4")])
    assert moves(make_room(asking)) == expected
