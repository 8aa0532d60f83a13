"""SchedPatches and resizes, on the real control plane, by the webhooks that the manifests ship."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes.client import AdmissionregistrationV1Api, AppsV1Api
from kubernetes.client.exceptions import ApiException

from hack.controlplane.kubeconfig import kubectl
from hack.controlplane.process import HeldPort
from hack.reserver_process import ReserverProcess, wait_for
from reserver.patches.slots import RETURN_AFTER_S
from reserver.webhook.certificate_secret import SECRET
from tests.e2e.apart.patching import (
    COMPONENT,
    HOME,
    UNREADABLE,
    Shop,
    configurations,
    create_at_once,
    dump,
    is_patched,
    is_trusted,
    manifest,
    play_kubelet,
    resize,
    served,
)
from tests.e2e.apart.yard import Cordoned, wait_begun
from tests.e2e.cluster import GROUP, Corner
from tests.e2e.conftest import account, install_crd
from tests.e2e.forms import OBJECT
from tests.e2e.test_status import wait_status
from tests.rights.audit import WEBHOOKS

pytestmark = pytest.mark.controlplane


@pytest.fixture(scope="module")
def hooks(
    kubeconfig: Path, api: Any, reserver_kubeconfig: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ReserverProcess]:
    """A reserver that serves the webhooks, with the rights that we ship for it."""
    assert reserver_kubeconfig.exists()  # Its roles are there.
    install_crd(api.api_client, "schedpatches.reserver.io", COMPONENT / "crd-patch.yaml")
    folder = tmp_path_factory.mktemp("webhooks")
    hooked = account(api, kubeconfig, "hooks", folder / "kubeconfig", WEBHOOKS)
    held = HeldPort()
    port = held.number
    for document in configurations(port):
        kubectl(kubeconfig, "apply", "-f", str(dump(folder / "hook.json", document)))
    kubectl(kubeconfig, "apply", "-f", str(dump(folder / "secret.json", UNREADABLE)))
    flag = f"--webhook-address=127.0.0.1:{port}"
    with ReserverProcess(hooked, folder / "log", flag) as process:
        wait_for(lambda: is_trusted(api, port), "the API server trusts the webhooks")
        yield process
    admission: Any = AdmissionregistrationV1Api(api.api_client)
    admission.delete_mutating_webhook_configuration("reserver")
    admission.delete_validating_webhook_configuration("reserver")


@pytest.fixture
def shop(corner: Corner, hooks: ReserverProcess) -> Shop:
    assert hooks.is_ready()
    return Shop(corner)


@pytest.fixture(scope="module")
def refused(hooks: ReserverProcess, kubeconfig: Path, api: Any) -> Iterator[tuple[Shop, float]]:
    """Three pods that were patched and then refused by a quota, and a moment before the first."""
    assert hooks.is_ready()
    corner = Corner(kubeconfig, "nobody", api)
    corner.open()
    shop = Shop(corner)
    shop.patch("some", 3)
    quota = {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}
    api.create_namespaced_resource_quota(corner.name, quota)
    wait_for(lambda: shop.is_refused("exceeded quota"), "the quota is in force")
    began = time.monotonic()
    for number in range(3):
        with pytest.raises(ApiException, match="exceeded quota"):
            shop.create(f"refused-{number}")
    api.delete_namespaced_resource_quota("none", corner.name)
    wait_for(lambda: not shop.is_refused("quota"), "the quota is no longer in force")
    yield shop, began
    corner.close()


@pytest.mark.release
@pytest.mark.usefixtures("refused")  # Which begins to wait.
async def test_of_two_hundred_creations_at_once_exactly_as_many_are_patched_as_it_says(
    shop: Shop, kubeconfig: Path, hooks: ReserverProcess
) -> None:
    shop.patch("some", 17)
    await create_at_once(kubeconfig, shop.corner.name, 200, "?dryRun=All")
    assert shop.status("some")["patchedPods"] == 0
    await create_at_once(kubeconfig, shop.corner.name, 200)
    marks = shop.marks()
    assert (len(marks), set(marks.values())) == (17, {1})
    shop.wait_patched("some", 17)
    assert shop.reason("some") == "AllPatched"
    assert hooks.metric('reserver_webhook_call_seconds_count{outcome="error",webhook="patch"}') == 0


def test_a_dry_run_shows_the_patch_and_takes_none(shop: Shop) -> None:
    shop.patch("one", 1)
    assert shop.shown_tolerations().count("one") == 1
    assert is_patched(shop.create("real"))
    assert not is_patched(shop.create("late"))


def test_several_patches_are_merged_by_name_and_what_contradicts_is_named(shop: Shop) -> None:
    shop.patch("b", 1, nodeSelector={"zone": "b"})
    shop.patch("a", 1, nodeSelector={"zone": "a"})
    shop.patch("c", 1)
    pod = shop.create("web-0")
    assert pod.spec.node_selector == {"zone": "a"}
    assert {"a", "c"} <= {each.key for each in pod.spec.tolerations}
    wait_for(lambda: shop.reason("b", "Conflicting") == "PodContradicts", "the conflict is told")
    assert shop.status("b")["patchedPods"] == 0


def deployment(corner: Corner) -> dict[str, Any]:
    """Return a Deployment of two pods that a SchedPatch selects."""
    spec = manifest("web")["spec"] | {
        "schedulerName": corner.scheduler,
        "nodeSelector": {GROUP: corner.name},
    }
    labels = {"service": "test"}
    template = {"metadata": {"labels": labels}, "spec": spec}
    return {
        "metadata": {"name": "web"},
        "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": template},
    }


def test_a_pod_of_a_deployment_moves_by_a_patch_and_a_deletion(shop: Shop) -> None:
    corner = shop.corner
    here, there = corner.add_nodes(2, cpu="4")
    apps: Any = AppsV1Api(corner.api.api_client)

    def nodes() -> dict[str, str]:
        listed = corner.api.list_namespaced_pod(corner.name, label_selector="service=test").items
        return {
            pod.metadata.name: pod.spec.node_name
            for pod in listed
            if pod.spec.node_name and pod.metadata.deletion_timestamp is None
        }

    with Cordoned(corner.api, {there}):
        apps.create_namespaced_deployment(corner.name, deployment(corner))
        wait_begun(corner, "service=test", here, 2)
    corner.create_pod("filler", {"cpu": "1"}, nodeSelector={"kubernetes.io/hostname": there})
    corner.wait_bound("filler")  # kube-scheduler reads that the node is open again.
    terms = [{"key": "kubernetes.io/hostname", "operator": "In", "values": [there]}]
    preferred = [{"weight": 100, "preference": {"matchExpressions": terms}}]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    shop.patch("to-there", 1, affinity=affinity)
    moved, kept = sorted(nodes())
    corner.api.delete_namespaced_pod(moved, corner.name, grace_period_seconds=0)
    wait_for(lambda: sorted(nodes().values()) == sorted([here, there]), "one pod has moved")
    assert nodes()[kept] == here
    shop.wait_patched("to-there", 1)
    apps.delete_namespaced_deployment("web", corner.name)


def test_a_patch_that_expired_long_ago_is_deleted(shop: Shop) -> None:
    shop.write("old", 1, expiresAt="2020-01-31T00:00:00Z")
    wait_for(lambda: shop.names() == [], "it is gone")


def wait_refused(kubeconfig: Path, corner: Corner, cpu: str, *words: str) -> None:
    """Wait until a resize from one CPU is refused with these words.

    The reserver of the webhooks may read the reservation later than the one that has accepted it.
    """

    def is_refused() -> bool:
        said = resize(kubeconfig, corner, cpu)
        if all(each in said for each in ("denied the request", *words)):
            return True
        resize(kubeconfig, corner, "1")
        return False

    wait_for(is_refused, f"it is refused with {words}")


def test_a_pod_does_not_grow_into_room_that_is_held(shop: Shop, kubeconfig: Path) -> None:
    corner = shop.corner
    (node,) = corner.add_nodes(1, cpu="4")
    corner.create_pod("web-0", {"cpu": "1"})
    corner.wait_bound("web-0")
    play_kubelet(corner, "web-0", "1")
    name = corner.reserve(OBJECT, node, "owner", cpu="2")
    wait_status(corner, OBJECT, name, phase="Active", backed=True)
    has = f"held by reservation {corner.name}/{name}: node {node} has 1 of cpu"
    needs = f"beside the 2 that are held, and pod {corner.name}/web-0 needs 2 more"
    wait_refused(kubeconfig, corner, "3", has, needs)
    assert "patched" in resize(kubeconfig, corner, "2")
    assert "denied the request" in resize(kubeconfig, corner, "2100m")  # It counts at once.
    corner.wait_held(node, cpu="500m")  # What the kubelet defers is in the accounts.
    corner.delete_object(name)
    wait_for(lambda: "patched" in resize(kubeconfig, corner, "3"), "nothing is held any more")


def test_a_resize_is_judged_by_what_it_asks_for_though_another_was_infeasible(
    shop: Shop, kubeconfig: Path
) -> None:
    corner = shop.corner
    (node,) = corner.add_nodes(1, cpu="4")
    corner.create_pod("web-0", {"cpu": "1"})
    corner.wait_bound("web-0")
    play_kubelet(corner, "web-0", "1")
    condition = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
    corner.api.patch_namespaced_pod_status(
        "web-0", corner.name, {"status": {"conditions": [condition]}}
    )
    name = corner.reserve(OBJECT, node, "owner", cpu="3")
    wait_status(corner, OBJECT, name, phase="Active", backed=True)
    wait_refused(kubeconfig, corner, "4", "held by reservation")
    corner.delete_object(name)


def test_no_pod_is_missed_while_the_certificate_is_replaced(
    shop: Shop, hooks: ReserverProcess
) -> None:
    shop.patch("all", 1000)
    port = int(hooks.webhook_url.rsplit(":", 1)[1])
    former = served(port)
    shop.corner.api.delete_namespaced_secret(SECRET, HOME)
    created: list[bool] = []

    def is_replaced() -> bool:
        created.append(is_patched(shop.create(f"web-{len(created)}")))
        return served(port) not in {former, ""}

    wait_for(is_replaced, "another certificate is served")
    for _ in range(20):
        is_replaced()
    assert all(created), Counter(created)


def test_pods_that_were_refused_afterwards_give_their_slots_back(
    refused: tuple[Shop, float],
) -> None:
    shop, began = refused
    are_patched = [is_patched(shop.create("early"))]
    assert not any(are_patched) or time.monotonic() >= began + RETURN_AFTER_S
    wait_for(lambda: time.monotonic() >= began + RETURN_AFTER_S, "the first may come back")

    def are_back() -> bool:
        are_patched.append(is_patched(shop.create(f"web-{len(are_patched)}")))
        return sum(are_patched) == 3

    wait_for(are_back, "all three slots are back")
    assert not is_patched(shop.create("beyond"))


def test_while_reserver_is_away_pods_are_created_unpatched_and_the_count_goes_on_after(
    shop: Shop, hooks: ReserverProcess
) -> None:
    shop.patch("some", 3)
    assert is_patched(shop.create("before"))
    assert hooks.stop()[0] == 0
    assert not is_patched(shop.create("meanwhile"))
    hooks.start()
    wait_for(lambda: served(int(hooks.webhook_url.rsplit(":", 1)[1])), "webhooks are served")
    after: list[bool] = []

    def are_patched() -> bool:
        after.append(is_patched(shop.create(f"after-{len(after)}")))
        return sum(after) == 2

    soon = RETURN_AFTER_S - 5  # What is not given back comes back only later.
    wait_for(are_patched, "the other two are patched", soon)
    assert not is_patched(shop.create("beyond"))
    shop.wait_patched("some", 3)
