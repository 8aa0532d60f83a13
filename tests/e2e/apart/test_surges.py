"""PodMoves whose pods surge, on real Kubernetes: its ReplicaSets, EndpointSlices and policies."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from threading import Event, Thread
from typing import Any, Self

import pytest
import yaml
from kubernetes.client import AdmissionregistrationV1Api, CoreV1Api
from kubernetes.client.exceptions import ApiException
from kubernetes.config import new_client_from_config
from kubernetes.watch import Watch

from hack.chaos.moving.deadly import Deadly
from hack.reserver_process import ReserverProcess, wait_for
from tests.e2e.apart.conftest import ACCOUNT
from tests.e2e.apart.yard import Yard, is_ready
from tests.e2e.conftest import ROOT

POLICY = ROOT / "scheduler-config/components/surge/policy.yaml"
USER = "system:serviceaccount:reserver-system:reserver"
SURGE = "reserver.io/surge"
CREATE = "POST /api/v1/namespaces/NAME/pods"
MARK = "PATCH /api/v1/namespaces/NAME/pods/NAME"
HAND = f"{MARK} handover"
KILLS = [(CREATE, True), (MARK, False), (HAND, False), (HAND, True), ("", False)]
"""Writes at which Reserver is killed, and whether they are carried out before."""

pytestmark = pytest.mark.controlplane


@pytest.fixture(scope="module", autouse=True)
def policy(api: Any, mover_kubeconfig: Any) -> Iterator[None]:
    """The policy that we ship, for the service account of these tests."""
    admission: Any = AdmissionregistrationV1Api(api.api_client)
    made, binding = yaml.safe_load_all(POLICY.read_text().replace(USER, f"{USER}-{ACCOUNT}"))
    admission.create_validating_admission_policy(made)
    admission.create_validating_admission_policy_binding(binding)
    core = partial(_create, mover_kubeconfig, "default", {"metadata": {"name": "no-copy"}})
    wait_for(lambda: "may create only copies" in core(), "the policy is enforced", 60)
    yield
    admission.delete_validating_admission_policy_binding(binding["metadata"]["name"])
    admission.delete_validating_admission_policy(made["metadata"]["name"])


def _create(kubeconfig: Any, namespace: str, pod: dict[str, Any]) -> str:
    """Try to create a pod as Reserver; return why not, empty if it would be."""
    core: Any = _core(kubeconfig)
    body = {"spec": {"containers": [{"name": "main", "image": "none"}]}} | pod
    try:
        core.create_namespaced_pod(namespace, body, dry_run="All")
    except ApiException as exc:
        return str(exc.body)
    return ""


def _core(kubeconfig: Any) -> Any:
    return CoreV1Api(new_client_from_config(str(kubeconfig)))


class ReadyPods:
    """Counts the pods that a Service of `app=NAME` would send requests to, at each write of one."""

    def __init__(self, yard: Yard, kubeconfig: Any, name: str) -> None:
        self._namespace, self._name = yard.corner.name, name
        self._core = _core(kubeconfig)
        self._over = Event()
        self.counts: list[int] = []
        self._thread = Thread(target=self._watch)

    def __enter__(self) -> Self:
        self._thread.start()
        wait_for(lambda: self.counts and self.counts[-1] == 1, "one pod is ready")
        self.counts[:] = [1]
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        label = f"app={self._name}"
        found = self._core.list_namespaced_pod(self._namespace, label_selector=label)
        ready = {pod.metadata.uid for pod in found.items if is_ready(pod)}
        version = found.metadata.resource_version
        self.counts.append(len(ready))
        while not self._over.is_set():
            stream = Watch().stream(
                self._core.list_namespaced_pod,
                self._namespace,
                label_selector=label,
                resource_version=version,
                timeout_seconds=2,
            )
            for event in stream:
                pod = event["object"]
                version = pod.metadata.resource_version
                is_there = event["type"] != "DELETED" and is_ready(pod)
                (ready.add if is_there else ready.discard)(pod.metadata.uid)
                self.counts.append(len(ready))


def test_a_deployment_of_one_moves_without_a_gap_though_reserver_is_killed(
    yard: Yard, mover: ReserverProcess, mishaps: Deadly, kubeconfig: Any
) -> None:
    """Its budget allows no eviction. Reserver is killed at each write of its pods."""
    pod = yard.deploy("web", yard.nodes[0])
    yard.keep("web")
    written: list[str] = []
    with ReadyPods(yard, kubeconfig, "web") as ready:
        for number, (kind, is_done) in enumerate(KILLS):
            source = yard.pods("web")[0].spec.node_name
            target = next(node for node in yard.nodes if node != source)
            here, over = Event(), Event()
            mishaps.arm(partial(_stand_still, here, over), is_done=is_done, apart=Not(kind))
            name = f"web-{number}"
            yard.move(name, pod, to={"node": target}, mode="SurgeFirst")
            if kind:
                wait_for(here.is_set, f"Reserver writes {kind}")
                mover.kill()
                over.set()
                mover.start()
            status = yard.wait_phase(name, "Succeeded", reason="Landed")
            mishaps.disarm()
            written += mishaps.writes
            assert "fallback" not in status
            yard.wait_on("web", target)
            pod = status["replacement"]["name"]
            yard.wait_released()
    assert min(ready.counts) >= 1, ready.counts
    assert max(ready.counts) == 2
    assert not any(path.endswith("/eviction") for path in written)
    (left,) = yard.corner.api.list_namespaced_pod(yard.corner.name, label_selector="app=web").items
    assert [owner.kind for owner in left.metadata.owner_references] == ["ReplicaSet"]
    assert not _surges(left)


def _stand_still(here: Event, over: Event) -> None:
    here.set()
    over.wait(60)


class Not:
    """All kinds of writes but one."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def __contains__(self, kind: object) -> bool:
        return kind != self._kind

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def test_a_move_that_is_deleted_or_fails_takes_its_copy_along(yard: Yard) -> None:
    """An hour without a failure is asked for before the copy counts as ready.

    Of a move that is gone Kubernetes collects the copy, of one that has failed Reserver deletes it.
    """
    pod = yard.deploy("web", yard.nodes[0])
    body = {"spec": {"minReadySeconds": 3600, "progressDeadlineSeconds": 7200}}
    yard.apps.patch_namespaced_deployment("web", yard.corner.name, body)

    def is_known() -> bool:
        found = yard.apps.read_namespaced_deployment("web", yard.corner.name)
        return bool(found.status.observed_generation == found.metadata.generation)

    wait_for(is_known, "its ReplicaSet knows")
    yard.move("web", pod, mode="SurgeFirst")
    yard.wait_phase("web", "Surging", reason="WaitsForCopy")
    assert len(yard.pods("web")) == 2
    yard.delete("web")
    wait_for(lambda: [each.metadata.name for each in yard.pods("web")] == [pod], "it is removed")
    yard.wait_released()
    yard.move("again", pod, mode="SurgeFirst")
    yard.wait_phase("again", "Surging", reason="WaitsForCopy")
    yard.roll_out("web")
    yard.wait_phase("again", "Failed", reason="SurgeOvertaken", says="is being rolled out")
    wait_for(lambda: not any(map(_surges, yard.pods("web"))), "the copy is removed")
    yard.wait_released()


def _surges(pod: Any) -> bool:
    return SURGE in (pod.metadata.annotations or {})


def test_pods_that_the_policy_keeps_from_surging_are_evicted_and_it_says_so(yard: Yard) -> None:
    first, second = yard.nodes
    pod = yard.deploy("web", first, volumes=[{"name": "logs", "hostPath": {"path": "/var/log"}}])
    yard.move("web", pod, to={"node": second}, mode="SurgeFirst")
    status = yard.wait_phase("web", "Succeeded", reason="Landed")
    assert "privileged or use what is their host's" in status["fallback"]
    surged = next(each for each in status["conditions"] if each["type"] == "Surged")
    assert (surged["status"], surged["reason"]) == ("False", "FellBack")
    yard.deploy_stateful("db", first)
    yard.move("db", "db-0", mode="SurgeFirst")
    assert "only pods of ReplicaSets surge" in yard.wait_phase("db", "Succeeded")["fallback"]


def test_a_drain_surges_what_can_and_says_what_did_not(yard: Yard, kubeconfig: Any) -> None:
    """A budget forbids to evict the Deployment's pod; the StatefulSet's pods have no budget."""
    first, second = yard.nodes
    yard.deploy("web", first)
    yard.keep("web")
    yard.deploy_stateful("db", first)
    words = ["drain", first, "--surge", "--kubeconfig", str(kubeconfig)]
    command = [sys.executable, "-m", "reserver", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False)
    assert done.returncode == 0, done.stderr
    *_, said = done.stdout.splitlines()
    assert said == f"{first} drained"
    (told,) = [line for line in done.stdout.splitlines() if "did not surge" in line]
    assert f"/db-0 to {second} Succeeded" in told
    yard.wait_on("web", second)
    yard.wait_on("db", second)
    yard.wait_released()


def test_the_policy_bounds_what_reserver_creates_changes_and_deletes(
    yard: Yard, mover_kubeconfig: Any
) -> None:
    namespace = yard.corner.name
    owner = {"apiVersion": "reserver.io/v1alpha1", "kind": "PodMove", "name": "m", "uid": "u"}
    about = {"name": "c", "annotations": {SURGE: "m/u"}, "ownerReferences": [owner]}
    try_ = partial(_create, mover_kubeconfig)
    assert try_(namespace, {"metadata": about}) == ""
    assert "system namespaces" in try_("kube-system", {"metadata": about})
    owned = {**about, "ownerReferences": [{**owner, "controller": True}]}
    assert "only copies" in try_(namespace, {"metadata": owned})
    spec = {"containers": [{"name": "main", "image": "none"}], "hostPID": True}
    assert "host's" in try_(namespace, {"metadata": about, "spec": spec})
    pod = yard.deploy("web", yard.nodes[0])
    core = _core(mover_kubeconfig)
    for metadata, why in (
        ({"labels": {"app": "other"}}, "labels and owners"),
        ({"annotations": {"example.com/other": "x"}}, "its own annotations"),
    ):
        with pytest.raises(ApiException, match=why):
            core.patch_namespaced_pod(pod, namespace, {"metadata": metadata}, dry_run="All")
    image = {"spec": {"containers": [{"name": "main", "image": "other"}]}}
    with pytest.raises(ApiException, match="what a pod runs"):
        core.patch_namespaced_pod(pod, namespace, image, dry_run="All")
    with pytest.raises(ApiException, match="may delete only copies"):
        core.delete_namespaced_pod(pod, namespace, dry_run="All")
