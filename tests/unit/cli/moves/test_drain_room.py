"""Drains of pods that fit on no other node, because of room or volumes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from reserver.cli.failure import Failed
from reserver.rebalance.capacity import Held
from tests.unit.cli.moves.api import Api, drain, specs
from tests.unit.moves.test_drain import pod

COLLECTIONS = {
    "/api/v1/nodes": "Node",
    "/api/v1/pods": "Pod",
    "/api/v1/namespaces": "Namespace",
    "/api/v1/persistentvolumeclaims": "PersistentVolumeClaim",
    "/api/v1/persistentvolumes": "PersistentVolume",
    "/apis/policy/v1/poddisruptionbudgets": "PodDisruptionBudget",
    "/apis/scheduling.k8s.io/v1/priorityclasses": "PriorityClass",
    "/apis/storage.k8s.io/v1/storageclasses": "StorageClass",
}


def cluster(*pods: dict[str, Any], free: str = "1") -> dict[str, Any]:
    """Return the lists of a cluster: worker-1 has these pods, worker-2 so many free CPUs."""
    nodes = [
        {"metadata": {"name": name}, "status": {"allocatable": {"cpu": cpu, "pods": "110"}}}
        for name, cpu in (("worker-1", "8"), ("worker-2", free))
    ]
    kinds: dict[str, Any] = {
        path: {"kind": f"{kind}List", "items": []} for path, kind in COLLECTIONS.items()
    }
    kinds["/api/v1/nodes"]["items"] = nodes
    kinds["/api/v1/pods"]["items"] = list(pods)
    return kinds


def wants(name: str, cpu: str = "1") -> dict[str, Any]:
    """Return a pod of worker-1 that requests so much."""
    requests = {"requests": {"cpu": cpu}}
    containers = [{"name": "main", "resources": requests}]
    return pod(name) | {"spec": {"nodeName": "worker-1", "containers": containers}}


class Cluster(Api):
    """An API server that also serves all that a search for room on other nodes reads."""

    def __init__(self, *pods: dict[str, Any], free: str) -> None:
        super().__init__(*pods)
        self.lists = cluster(*pods, free=free)

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> bytes:
        if path in self.lists and "fieldSelector" not in (params or {}):
            return json.dumps(self.lists[path]).encode()
        return await super().get(path, params)


async def nothing_held() -> Held:
    return {}


async def half_held() -> Held:
    return {"worker-2": {"cpu": 500}}


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_drain_without_room_names_the_pods_and_changes_nothing(*, dry_run: bool) -> None:
    api = Cluster(wants("a"), wants("b"), wants("c", "100m"), free="1200m")
    with pytest.raises(Failed) as failed:
        drain(api, held=nothing_held, dry_run=dry_run)
    said = str(failed.value).splitlines()
    assert said[0] == ("shop/b has no room elsewhere: 0/1 nodes are available: 1 Insufficient cpu.")
    assert "unchanged" in said[1] or dry_run
    assert "--wait-for-room" in said[1]
    assert (specs(api), api.nodes["/api/v1/nodes/worker-1"]) == ([], {})


def test_what_is_reserved_elsewhere_is_no_room() -> None:
    with pytest.raises(Failed, match="shop/a has no room elsewhere"):
        drain(Cluster(wants("a"), free="1"), held=half_held)
    drain(api := Cluster(wants("a"), free="1500m"), held=half_held)
    assert len(specs(api)) == 1
    drain(Cluster(wants("a"), free="0"))  # --wait-for-room


def test_who_may_not_look_at_the_cluster_drains_all_the_same(
    capsys: pytest.CaptureFixture[str],
) -> None:
    drain(api := Api(wants("a")), held=nothing_held)
    assert len(specs(api)) == 1
    assert "cannot look for room elsewhere" in capsys.readouterr().err


def with_volume(name: str) -> dict[str, Any]:
    """Return a pod that uses the PersistentVolumeClaim `data`."""
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    return pod(name, "StatefulSet") | {"spec": {"nodeName": "worker-1", "volumes": [volume]}}


def lists(*nodes: str) -> dict[str, Any]:
    """Return two nodes, and the volume of the claim `data`, which only these nodes can use."""
    terms = [{"matchExpressions": [{"key": "host", "operator": "In", "values": list(nodes)}]}]
    volume = {
        "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
        "claimRef": {"namespace": "shop", "name": "data"},
    }
    bound = {"pv.kubernetes.io/bind-completed": "yes"}
    claim = {
        "metadata": {"name": "data", "namespace": "shop", "annotations": bound},
        "spec": {"volumeName": "pv-data"},
    }
    labelled = [{"name": n, "labels": {"host": n}} for n in ("worker-1", "worker-2")]
    return {
        "/api/v1/namespaces/shop/persistentvolumeclaims": {
            "kind": "PersistentVolumeClaimList",
            "items": [claim],
        },
        "/api/v1/persistentvolumes": {
            "kind": "PersistentVolumeList",
            "items": [{"metadata": {"name": "pv-data"}, "spec": volume}],
        },
        "/api/v1/nodes": {
            "kind": "NodeList",
            "items": [{"metadata": each} for each in labelled],
        },
    }


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_drain_says_which_volumes_stay_before_it_cordons(*, dry_run: bool) -> None:
    api = Api(pod("a"), with_volume("db-0"))
    api.others |= lists("worker-1")
    with pytest.raises(Failed) as failed:
        drain(api, dry_run=dry_run)
    why = (
        "shop/db-0: its volume pv-data (claim data) is on worker-1 only; evict it by kubectl drain"
    )
    assert why in str(failed.value)
    assert (specs(api), api.nodes["/api/v1/nodes/worker-1"]) == ([], {})


def test_a_drain_says_which_pod_has_more_volumes_than_a_seat_takes() -> None:
    full = with_volume("db-0")
    claims = [{"persistentVolumeClaim": {"claimName": f"d{n}"}} for n in range(33)]
    full["spec"]["volumes"] = claims
    api = Api(full)
    api.others |= lists("worker-2")
    said = "shop/db-0: it uses 33 PersistentVolumeClaims, and a seat takes 32 at most"
    with pytest.raises(Failed, match=said):
        drain(api)
    assert (specs(api), api.nodes["/api/v1/nodes/worker-1"]) == ([], {})


def test_a_drain_moves_pods_whose_volumes_another_node_can_use() -> None:
    api = Api(with_volume("db-0"))
    api.others |= lists("worker-1", "worker-2")
    drain(api)
    assert [each["pod"]["name"] for each in specs(api)] == ["db-0"]


def test_who_may_not_look_at_volumes_drains_all_the_same(
    capsys: pytest.CaptureFixture[str],
) -> None:
    drain(api := Api(with_volume("db-0")))
    assert len(specs(api)) == 1
    assert "cannot look at volumes" in capsys.readouterr().err
