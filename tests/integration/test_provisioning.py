"""ProvisioningRequests of hold.reserver.io, on the embedded cluster with their CRD."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from reserver import app
from reserver.errors import ConfigurationError
from reserver.settings.serve import Settings
from reserver.stores.object.codec import SET_LABEL, UNFINISHED_ANNOTATION
from reserver_demo.apiserver import deletion, resources, server
from reserver_demo.apiserver.resources import RESOURCES
from reserver_demo.cluster import EmbeddedCluster
from tests.integration.provisioning import REQUESTS, RESERVATIONS, Shop, may_go, pod, pod_templates
from tests.waiting import until

CRD = Path(__file__).parents[1] / "e2e/crd-provisioning.yaml"
PODS = "/api/v1/namespaces/shop/pods"
CONSUME = "autoscaling.x-k8s.io/consume-provisioning-request"


@pytest.fixture
def with_crd(monkeypatch: pytest.MonkeyPatch) -> None:
    served = (*RESOURCES, resources._custom(yaml.safe_load(CRD.read_text())), pod_templates())
    for module in (server, deletion):
        monkeypatch.setattr(module, "RESOURCES", served)


@pytest.fixture
async def shop(with_crd: None, tmp_path: Path) -> AsyncIterator[Shop]:  # noqa: ARG001
    async with EmbeddedCluster() as cluster:
        for node in ("worker-1", "worker-2"):
            await cluster.create_node(node)
        for namespace in ("reserver-system", "shop"):
            body = {"metadata": {"name": namespace}}
            await cluster.client.send("POST", "/api/v1/namespaces", body)
        cluster.write_kubeconfig(tmp_path / "kubeconfig")
        yield Shop(cluster, tmp_path / "kubeconfig")


async def test_room_is_held_for_the_pods_that_name_a_request_and_for_nobody_else(
    shop: Shop,
) -> None:
    await shop.template()
    async with shop.serving() as running:
        await shop.request(worker=8)
        found = await shop.until("Provisioned", "CapacityIsFound")
        assert found["message"].startswith("room for 8 pods is held until 20")
        assert found["observedGeneration"] == 1
        assert (await shop.conditions())["Accepted"]["status"] == "True"
        ((name, held),) = (await shop.reservations()).items()
        assert name.startswith("job-")
        (owner,) = held["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["controller"]) == (
            "ProvisioningRequest",
            "job",
            True,
        )
        everywhere = {"worker-1", "worker-2"}
        assert await may_go(running, pod("stranger")) == set()
        assert await may_go(running, pod("other", **{CONSUME: "others"})) == set()
        assert await may_go(running, pod("worker", **{CONSUME: "job"})) == everywhere


async def test_what_a_request_holds_goes_with_it(shop: Shop) -> None:
    await shop.template()
    await shop.template("driver", cpu="500m")
    async with shop.serving() as running:
        await shop.request(others={"driver": 1})
        await shop.until("Provisioned", "CapacityIsFound")
        assert len(await shop.reservations()) == 2
        await shop.send("DELETE", f"{REQUESTS}/job")
        await shop.until_reservations(lambda there: not there)
        await until(lambda: not len(running.assembly.ledger))


async def test_all_pod_sets_are_held_or_none_and_the_request_waits_for_room(shop: Shop) -> None:
    await shop.template()
    await shop.template("large", cpu="4")
    await shop.send(
        "POST", PODS, pod("one") | {"spec": {**pod("one")["spec"], "nodeName": "worker-1"}}
    )
    async with shop.serving():
        await shop.request(worker=1, others={"large": 1})
        await shop.request("never", worker=1, others={"large": 2}, noRetry="true")
        await shop.until("Failed", "QuotaExceeded", "never")
        await shop.until("Provisioned", "CapacityIsFound")
        assert len(await shop.reservations()) == 2
        await shop.request("late", worker=1, others={"driver": 1})
        await shop.until("Provisioned", "PodTemplateNotFound", "late", status="False")
        await shop.template("driver", cpu="2")
        await shop.until("Provisioned", "CapacityIsNotFound", "late", status="False")
        assert len(await shop.reservations()) == 2
        await shop.send("DELETE", f"{REQUESTS}/job")
        await shop.until("Provisioned", "CapacityIsFound", "late")


@pytest.mark.parametrize(
    ("parameters", "reason", "says"),
    [
        ({"colour": "red"}, "InvalidSpec", "spec.parameters.colour"),
        ({"validFor": "soon"}, "InvalidSpec", "spec.parameters.validFor"),
        ({"worker": 1001}, "InvalidSpec", "spec.podSets[0].count"),
        ({"worker": 9, "noRetry": "true"}, "QuotaExceeded", "cpu"),
    ],
)
async def test_what_cannot_be_held_fails_and_says_why(
    shop: Shop, parameters: dict[str, Any], reason: str, says: str
) -> None:
    await shop.template()
    async with shop.serving():
        await shop.request(**parameters)
        assert says in (await shop.until("Failed", reason))["message"]
        assert not await shop.reservations()


async def test_a_booking_ends_with_its_time(shop: Shop) -> None:
    await shop.template()
    async with shop.serving():
        await shop.request(validFor="2s")
        found = await shop.until("BookingExpired", "BookingExpired")
        assert found["message"].startswith("0 of 3 pods had come by 20")
        assert (await shop.conditions())["Provisioned"]["status"] == "True"
        await shop.until_reservations(lambda there: not there)


async def test_capacity_is_revoked_when_a_node_goes_and_no_other_has_the_room(shop: Shop) -> None:
    await shop.template(nodeSelector={"kubernetes.io/hostname": "worker-1"})
    async with shop.serving():
        await shop.request()
        await shop.until("Provisioned", "CapacityIsFound")
        await shop.send("DELETE", "/api/v1/nodes/worker-1")
        found = await shop.until("CapacityRevoked", "NodeLost")
        assert "has gone" in found["message"]
        await shop.until_reservations(lambda there: not there)


async def test_the_next_reserver_goes_on_without_a_second_set(shop: Shop) -> None:
    await shop.template()
    async with shop.serving():
        await shop.request()
        await shop.until("Provisioned", "CapacityIsFound")
        before = await shop.reservations()
    async with shop.serving() as running:
        await shop.request("other", worker=1)
        await shop.until("Provisioned", "CapacityIsFound", "other")
        assert len(running.assembly.ledger) == 2
    after = await shop.reservations()
    uids = {item["metadata"]["uid"] for item in before.values()}
    assert uids < {item["metadata"]["uid"] for item in after.values()}


async def test_a_set_that_a_crash_left_unfinished_is_taken_back_and_written_anew(
    shop: Shop,
) -> None:
    await shop.template()
    await shop.template("driver", cpu="500m")
    await shop.request(others={"driver": 1})
    uid = (await shop.send("GET", f"{REQUESTS}/job"))["metadata"]["uid"]
    owner: dict[str, Any] = {"apiVersion": "autoscaling.x-k8s.io/v1", "kind": "ProvisioningRequest"}
    owner |= {"name": "job", "uid": uid, "controller": True}
    half = {
        "metadata": {
            "name": f"job-{uid[:8]}-00",
            "labels": {SET_LABEL: "half"},
            "annotations": {UNFINISHED_ANNOTATION: "2"},
            "ownerReferences": [owner],
        },
        "spec": {
            "owners": [{"controller": {"kind": "ProvisioningRequest", "name": "job"}}],
            "resources": {"cpu": "500m"},
            "retain": True,
        },
    }
    left = await shop.send("POST", RESERVATIONS, half)
    async with shop.serving():
        await shop.until("Provisioned", "CapacityIsFound")
        there = await shop.reservations()
        assert len(there) == 2
        assert left["metadata"]["uid"] not in {i["metadata"]["uid"] for i in there.values()}
        sets = {item["metadata"]["labels"][SET_LABEL] for item in there.values()}
        assert len(sets) == 1


async def test_a_request_of_another_class_is_left_alone(shop: Shop) -> None:
    await shop.template()
    async with shop.serving():
        await shop.request("theirs", of_class="check-capacity.autoscaling.x-k8s.io")
        await shop.request()
        await shop.until("Provisioned", "CapacityIsFound")
        assert not await shop.conditions("theirs")
        assert len(await shop.reservations()) == 1


async def test_without_their_crd_nothing_is_started(tmp_path: Path) -> None:
    async with EmbeddedCluster() as cluster:
        cluster.write_kubeconfig(tmp_path / "kubeconfig")
        settings = Settings(
            kubeconfig=tmp_path / "kubeconfig", http_port=0, provisioning_requests=True
        )
        with pytest.raises(ConfigurationError, match="install their CRD"):
            async with app.running(settings):
                pass
