"""On which nodes a pod fits that uses volumes."""

from __future__ import annotations

from typing import Any

import pytest

from reserver.k8s.objects.objects import decode, encode
from reserver.k8s.objects.pods import PodObject
from reserver.k8s.objects.storage import ClaimObject, StorageClassObject, VolumeObject
from tests.builders import NAMESPACE
from tests.unit.scheduling.documents import ZONE, ZONES, Cluster, Json, on, pod_json, term


def claim(name: str = "data", **rest: Any) -> Json:
    bound = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}} if "volume" in rest else {}
    metadata = {"name": name, "namespace": NAMESPACE, **bound, **rest.pop("metadata", {})}
    spec = {"volumeName": rest.pop("volume", ""), "storageClassName": rest.pop("of", None)}
    return {"metadata": metadata, "spec": spec | rest.pop("spec", {}), **rest}


def using(name: str = "data") -> Json:
    return {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]}


WAITING = "waiting for ephemeral volume controller to create the persistentvolumeclaim"
EPHEMERAL: Json = {"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]}
BINDING, ZONED = "VolumeBinding", "VolumeZone"
IN_A = {"nodeAffinity": {"required": {"nodeSelectorTerms": [term((ZONE, "In", "a"))]}}}
SELECTED: Json = {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "b1"}}}
_OWNER = {"kind": "Pod", "name": "asking", "uid": "uid-asking", "controller": True}
OWNED = {"metadata": {"ownerReferences": [_OWNER]}}
AFFINITY = "node(s) didn't match PersistentVolume's node affinity"
GONE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
UNBOUND = "pod has unbound immediate PersistentVolumeClaims"


def with_storage(claims: list[Json], spec: Json, labels: Json) -> Cluster:
    cluster = Cluster(*ZONES)
    storage = cluster.state.snapshot.storage
    for one in claims:
        value = decode(ClaimObject, encode(one)).value()
        storage.claims[value.name] = value
    volume = {"metadata": {"name": "pv", "labels": labels}, "spec": spec}
    storage.volumes["pv"] = decode(VolumeObject, encode(volume)).value()
    for name, mode in (("now", "Immediate"), ("later", "WaitForFirstConsumer")):
        document = {"metadata": {"name": name}, "volumeBindingMode": mode}
        storage.classes[name] = decode(StorageClassObject, encode(document)).value()
    return cluster


@pytest.mark.parametrize(
    ("claims", "spec", "labels", "nodes", "words"),
    [
        ([claim(volume="pv")], {}, {}, "a1 a2 b1 nowhere", []),
        ([claim(volume="pv")], IN_A, {}, "a1 a2", [AFFINITY]),
        (
            [claim(volume="pv")],
            {},
            {ZONE: "a"},
            "a1 a2 nowhere",
            ["node(s) had no available volume zone"],
        ),
        ([claim(volume="pv")], {}, {ZONE: "a__b"}, "a1 a2 b1 nowhere", []),
        ([claim(volume="pv")], {}, {ZONE: "a__"}, "a1 a2 b1 nowhere", []),
        (
            [claim(volume="pv")],
            {},
            {"failure-domain.beta.kubernetes.io/zone": "a"},
            "a1 a2 nowhere",
            ["node(s) had no available volume zone"],
        ),
        ([claim(volume="no")], {}, {}, "", [GONE, 'persistentvolume "no" not found']),
        ([], {}, {}, "", ['persistentvolumeclaim "data" not found']),
        ([claim(of="now")], {}, {}, "", [UNBOUND]),
        ([claim()], {}, {}, "", [UNBOUND]),
        ([claim(of="unknown")], {}, {}, "", [UNBOUND]),
        ([claim(of="later")], {}, {}, "a1 a2 b1 nowhere", []),
        ([claim(of="later", spec={"volumeName": "pv"})], {}, {}, "", [UNBOUND]),
        (
            [claim(of="later", **SELECTED)],
            {},
            {},
            "b1",
            ["node(s) didn't find available persistent volumes to bind"],
        ),
        (
            [claim(volume="pv", status={"phase": "Lost"})],
            {},
            {},
            "",
            ['persistentvolumeclaim "data" bound to non-existent persistentvolume "pv"'],
        ),
        (
            [claim(volume="pv", metadata={"deletionTimestamp": "2030-01-01T00:00:00Z"})],
            {},
            {},
            "",
            ['persistentvolumeclaim "data" is being deleted', UNBOUND],
        ),
    ],
)
def test_a_pod_goes_where_its_volume_can_be_reached(
    claims: list[Json], spec: Json, labels: Json, nodes: str, words: list[str]
) -> None:
    cluster = with_storage(claims, spec, labels)
    asking = pod_json(**using())
    assert cluster.fitting(asking) == nodes
    if words:
        refused = "a1" if "a1" not in nodes else "b1"
        assert set(cluster.why(asking, refused)) <= set(words)
        assert cluster.why(asking, refused)


@pytest.mark.parametrize(
    ("claims", "words"),
    [
        (
            [],
            f'{WAITING} "asking-v"',
        ),
        (
            [claim("asking-v", of="later")],
            "PVC shop/asking-v was not created for pod shop/asking (pod is not owner)",
        ),
        ([claim("asking-v", of="later", **OWNED)], ""),
    ],
)
def test_an_ephemeral_claim_is_the_pods_own(claims: list[Json], words: str) -> None:
    cluster = with_storage(claims, {}, {})
    assert cluster.why(pod_json(**EPHEMERAL), "a1") == ([words] if words else [])


def test_a_claim_for_one_pod_is_used_by_one() -> None:
    exclusive = claim(volume="pv", spec={"accessModes": ["ReadWriteOncePod"], "volumeName": "pv"})
    cluster = with_storage([exclusive], {}, {})
    asking = pod_json(**using())
    assert cluster.fitting(asking) == "a1 a2 b1 nowhere"
    other = on("a1", **using())
    cluster.state.pod_seen(decode(PodObject, encode(other)).value())
    assert cluster.fitting(asking) == ""
    cluster.state.pod_gone(decode(PodObject, encode(other)).value().name)
    assert cluster.fitting(asking) == "a1 a2 b1 nowhere"
