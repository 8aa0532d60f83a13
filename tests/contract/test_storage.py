"""Claims, volumes and storage classes: defaults, and subresources that are written apart."""

from collections.abc import AsyncIterator

import pytest

from tests.contract.api import Api, Json

CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
VOLUMES = "/api/v1/persistentvolumes"


@pytest.fixture
async def storage_class(api: Api) -> AsyncIterator[str]:
    """The path of a storage class that is gone after the test."""
    body = {"metadata": {"name": api.namespace}, "provisioner": "example.com/disk"}
    made = await api.post(CLASSES, body)
    assert made.status == 201
    assert (made.body["reclaimPolicy"], made.body["volumeBindingMode"]) == ("Delete", "Immediate")
    path = f"{CLASSES}/{api.namespace}"
    yield path
    await api.delete(path)


async def test_a_storage_class_stays_what_it_is(api: Api, storage_class: str) -> None:
    answer = await api.patch(storage_class, {"provisioner": "example.com/other"})
    assert answer.outline == (422, "Invalid")
    assert answer.body["details"]["causes"][0]["field"] == "provisioner"
    answer = await api.patch(storage_class, {"metadata": {"labels": {"a": "b"}}})
    assert answer.body["metadata"]["labels"] == {"a": "b"}


def _claim() -> Json:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}}
    return {"metadata": {"name": "data"}, "spec": spec | {"storageClassName": "none-such"}}


async def test_a_claim_begins_pending(api: Api) -> None:
    made = await api.post(api.path("persistentvolumeclaims"), _claim())
    assert (made.status, made.body["status"]) == (201, {"phase": "Pending"})
    assert made.body["spec"]["volumeMode"] == "Filesystem"
    assert made.body["spec"]["resources"]["requests"] == {"storage": "1Gi"}


async def test_a_claims_status_and_the_rest_are_written_apart(api: Api) -> None:
    await api.post(api.path("persistentvolumeclaims"), _claim())
    path = api.path("persistentvolumeclaims", "data")
    change = {"metadata": {"annotations": {"a": "b"}}, "status": {"phase": "Lost"}}
    main = await api.patch(path, change)
    assert main.body["status"]["phase"] == "Pending"
    assert main.body["metadata"]["annotations"]["a"] == "b"
    status = await api.patch(f"{path}/status", {"status": {"phase": "Lost"}})
    assert status.body["status"]["phase"] == "Lost"


async def test_a_volume_says_which_nodes_reach_it(api: Api) -> None:
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]
    spec: Json = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "none-such",
        "csi": {"driver": "example.com", "volumeHandle": "one"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
    }
    made = await api.post(VOLUMES, {"metadata": {"name": api.namespace}, "spec": spec})
    assert made.status == 201
    assert made.body["spec"]["nodeAffinity"] == spec["nodeAffinity"]
    assert made.body["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    assert (await api.delete(f"{VOLUMES}/{api.namespace}")).status == 200
