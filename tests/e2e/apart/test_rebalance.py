"""`reserver rebalance run` with the rights that we ship; a controller replaces what it evicts."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.client import AppsV1Api, CoordinationV1Api, PolicyV1Api

from hack.controlplane.kubeconfig import service_account_kubeconfig
from hack.reserver_process import ReserverProcess, wait_for
from reserver.client import CallFailed, Client, MakeRoom, PodOwner, Spec
from reserver.cluster.pod import PodName
from reserver.rebalance.ways import Compat
from tests.e2e.apart.yard import cordon, keep
from tests.e2e.cluster import FORMS, GROUP, Corner
from tests.e2e.conftest import MOVES, RBAC, ROOT, grant

pytestmark = pytest.mark.controlplane

ACCOUNT = "reserver-rebalance"
WITHIN = "rebalancing-within"
WITHIN_RBAC = ROOT / "scheduler-config/components/rebalance/rbac.yaml"


class Shop:
    """Nodes, and Deployments whose pods land there.

    Attributes:
        corner: of the cluster.
        nodes: their names.
    """

    def __init__(self, corner: Corner, kubeconfig: Path, folder: Path) -> None:
        self.corner = corner
        self.nodes = corner.add_nodes(3, cpu="4")
        self._kubeconfig = kubeconfig
        self._policy = folder / "policy.yaml"
        self._apps: Any = AppsV1Api(corner.api.api_client)
        self._budgets: Any = PolicyV1Api(corner.api.api_client)

    def deploy(self, name: str, replicas: int, **spec: Any) -> None:
        """Create a Deployment, and return once its pods are bound."""
        labels = {"app": name}
        container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "500m"}}}
        template = {
            "metadata": {"labels": labels},
            "spec": {
                "schedulerName": self.corner.scheduler,
                "nodeSelector": {GROUP: self.corner.name},
                "terminationGracePeriodSeconds": 0,
                "containers": [container],
                **spec,
            },
        }
        body = {
            "metadata": {"name": name},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": labels},
                "template": template,
            },
        }
        self._apps.create_namespaced_deployment(self.corner.name, body)
        self.wait_ready(name, replicas)

    def wait_ready(self, name: str, replicas: int) -> None:
        def is_ready() -> bool:
            found = self._apps.read_namespaced_deployment_status(name, self.corner.name).status
            return bool(found.ready_replicas == replicas == found.replicas)

        wait_for(is_ready, f"{replicas} pods of {name} are ready")

    def keep(self, name: str, available: int) -> None:
        """Create a PodDisruptionBudget, and return once it allows what it does."""
        keep(self._budgets, self.corner.name, name, available)

    def pods(self) -> dict[str, tuple[str, str]]:
        """Return node and application of each pod, by UID."""
        return {
            pod.metadata.uid: (pod.spec.node_name, (pod.metadata.labels or {}).get("app", ""))
            for pod in self.corner.api.list_namespaced_pod(self.corner.name).items
            if pod.metadata.deletion_timestamp is None
        }

    def count(self, name: str) -> Counter[str]:
        """Return how many pods of an application each node has."""
        return Counter(node for node, app in self.pods().values() if app == name)

    def cordon(self, node: str, *, is_cordoned: bool = True) -> None:
        cordon(self.corner.api, {node}, is_cordoned=is_cordoned)

    def write(self, policy_file: Path, **plugins: Any) -> None:
        """Write a policy of these plugins, for this corner alone."""
        selector = f"{GROUP}={self.corner.name}"
        balance = {"RemoveDuplicates", "LowNodeLoad"} & plugins.keys()
        profile = {
            "name": "e2e",
            "pluginConfig": [
                {"name": "DefaultEvictor", "args": {"nodeSelector": selector}},
                *({"name": name, "args": args} for name, args in plugins.items()),
            ],
            "plugins": {
                "balance": {"enabled": sorted(balance)},
                "deschedule": {"enabled": sorted(plugins.keys() - balance)},
            },
        }
        policy = {
            "apiVersion": "descheduler/v1alpha2",
            "kind": "DeschedulerPolicy",
            "nodeSelector": selector,
            "profiles": [profile],
        }
        policy_file.write_text(yaml.safe_dump(policy))

    def command(self, policy_file: Path) -> list[str]:
        """Return what runs a round by a policy."""
        command = [sys.executable, "-m", "reserver", "rebalance", "run", "--without-holds"]
        command += ["--kubeconfig", str(self._kubeconfig)]
        return [*command, "--policy-config-file", str(policy_file)]

    def run(self, *flags: str, **plugins: Any) -> str:
        """Run a round by a policy of these plugins; return what it says."""
        self.write(self._policy, **plugins)
        command = [*self.command(self._policy), *flags]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr[-4000:]
        return done.stdout + done.stderr

    def plan(self, *flags: str, **plugins: Any) -> tuple[int, dict[str, Any]]:
        """Plan by a policy of these plugins; return the exit status and the plan."""
        self.write(self._policy, **plugins)
        command = self.command(self._policy)
        command[command.index("run")] = "plan"
        command += ["-o", "json", "--detailed-exitcode", *flags]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.stdout, done.stderr[-4000:]
        return done.returncode, json.loads(done.stdout)


@pytest.fixture
def shop(corner: Corner, rebalance_kubeconfig: Path, tmp_path: Path) -> Iterator[Shop]:
    made = Shop(corner, rebalance_kubeconfig, tmp_path)
    yield made
    apps: Any = AppsV1Api(corner.api.api_client)
    apps.delete_collection_namespaced_deployment(corner.name)


def crowd(shop: Shop) -> None:
    """Have six pods of one Deployment on one node, and the other nodes empty and open."""
    for node in shop.nodes[1:]:
        shop.cordon(node)
    shop.deploy("web", 6)
    for node in shop.nodes[1:]:
        shop.cordon(node, is_cordoned=False)
    assert shop.count("web") == {shop.nodes[0]: 6}


@pytest.mark.parametrize("compat", ["sound", "upstream"])
def test_rounds_end_in_rest_and_no_pod_moves_twice(shop: Shop, compat: str) -> None:
    crowd(shop)
    rounds = []
    for _ in range(3):
        before = shop.pods()
        said = shop.run("--compat", compat, RemoveDuplicates={})
        shop.wait_ready("web", 6)
        rounds.append(len(before.keys() - shop.pods().keys()))
        assert f"{rounds[-1]} pods evicted, 0 could not be" in said
        if not rounds[-1]:
            break
    assert rounds == [4, 0]
    assert sorted(shop.count("web").values()) == [2, 2, 2]


def test_a_plan_of_the_live_cluster_names_all_moves_and_makes_none(shop: Shop) -> None:
    crowd(shop)
    before = shop.pods()
    status, plan = shop.plan(RemoveDuplicates={})
    assert (status, Counter(move["to"] for move in plan["moves"])) == (
        2,
        dict.fromkeys(shop.nodes[1:], 2),
    )
    assert {move["from"] for move in plan["moves"]} == {shop.nodes[0]}
    assert {
        move["to"] for move in shop.plan("--compat=upstream", RemoveDuplicates={})[1]["moves"]
    } == {None}
    assert shop.plan(PodLifeTime={"maxPodLifeTimeSeconds": 9999})[0] == 0
    assert shop.pods() == before


def test_each_eviction_is_an_event_on_its_pod(shop: Shop) -> None:
    crowd(shop)
    pods = shop.pods()
    said = shop.run(RemoveDuplicates={})
    events = [
        event
        for event in shop.corner.api.list_namespaced_event(shop.corner.name).items
        if event.reporting_component == "sigs.k8s.io.descheduler"
    ]
    found = {(event.reason, event.action, event.type) for event in events}
    assert found == {("RemoveDuplicates", "Descheduled", "Normal")}, said
    assert len({event.involved_object.uid for event in events} & pods.keys()) == 4


def test_a_dry_run_evicts_nothing(shop: Shop) -> None:
    crowd(shop)
    before = shop.pods()
    assert "4 pods would be evicted" in shop.run("--dry-run", RemoveDuplicates={})
    assert shop.pods() == before


@pytest.mark.parametrize("compat", ["sound", "upstream"])
def test_a_disruption_budget_is_kept_at_every_moment(shop: Shop, compat: str) -> None:
    """Upstream's way wants all four at once; each waits until the one before it is replaced."""
    crowd(shop)
    shop.keep("web", available=5)
    least = 6

    def watched() -> bool:
        nonlocal least
        ready = sum(
            any(each.type == "Ready" and each.status == "True" for each in pod.status.conditions)
            for pod in shop.corner.api.list_namespaced_pod(shop.corner.name).items
            if pod.status.conditions and pod.metadata.deletion_timestamp is None
        )
        least = min(least, ready)
        return False

    assert not watched()
    said = shop.run("--compat", compat, RemoveDuplicates={})
    shop.wait_ready("web", 6)
    watched()
    assert least >= 5
    evicted = {"sound": "1 pods evicted, 0 could not be", "upstream": "4 pods evicted, 0 could"}
    assert evicted[compat] in said


def test_a_policy_that_cannot_be_read_evicts_nothing(shop: Shop, tmp_path: Path) -> None:
    policy = tmp_path / "broken.yaml"
    policy.write_text("apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\nprofiles: 7\n")
    command = shop.command(policy)
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, "profiles" in done.stderr) == (2, True), done.stderr


@pytest.fixture(scope="session")
def within_kubeconfig(kubeconfig: Path, api: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An account with the rights of `reserver serve` and of rebalancing within it."""
    path = tmp_path_factory.mktemp("within") / "kubeconfig"
    return _account(api, kubeconfig, WITHIN, path, WITHIN_RBAC)


@pytest.fixture(scope="session")
def room_kubeconfig(kubeconfig: Path, api: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As that, with the rights to move pods as well."""
    path = tmp_path_factory.mktemp("room") / "kubeconfig"
    return _account(api, kubeconfig, "room-within", path, WITHIN_RBAC, MOVES / "rbac.yaml")


def _account(api: Any, kubeconfig: Path, name: str, path: Path, *components: Path) -> Path:
    grant(api, {"apiVersion": "v1", "kind": "ServiceAccount", **_named(name)})
    for file in (RBAC, *components):
        for document in yaml.safe_load_all(file.read_text()):
            if document["kind"] == "ServiceAccount":
                continue
            document["metadata"]["name"] = f"{name}-{document['metadata']['name']}"
            if "roleRef" in document:
                document["roleRef"]["name"] = f"{name}-{document['roleRef']['name']}"
                document["subjects"][0]["name"] = name
            grant(api, document)
    service_account_kubeconfig(kubeconfig, "reserver-system", name, path)
    return path


def _named(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "reserver-system"}}


def _children(process: ReserverProcess) -> list[int]:
    number = process.process.pid
    return list(map(int, Path(f"/proc/{number}/task/{number}/children").read_text().split()))


async def _plan(process: ReserverProcess, shop: Shop, policy: str) -> None:
    """Ask for plans over gRPC, and for what is none."""
    async with Client(process.grpc_address) as client:
        plan, said = client.rebalance.plan, list[str]()
        found = await plan(policy, progress=said.append)
        assert said == ["reading the cluster", "planning"]
        assert {move.pod.namespace for move in found.moves} == {shop.corner.name}
        assert len(found.moves) == 6
        assert {move.source for move in found.moves} == set(shop.nodes[:2])
        assert shop.nodes[2] not in {move.target for move in found.moves}  # All of it is held.
        found = await plan(policy, Compat.UPSTREAM)
        assert {move.target for move in found.moves} == {None}
        with pytest.raises(CallFailed, match="profiles"):
            await plan("apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\nprofiles: 7\n")
        with pytest.raises(CallFailed, match="DEADLINE"):
            await plan(policy, deadline_s=0.2)
    wait_for(lambda: len(_children(process)) == 1, "nobody plans for who no longer waits")


async def _plan_room(process: ReserverProcess, shop: Shop) -> None:
    """Ask over gRPC for room for a pod that waits, for more than there is, and for nobody."""
    here, (first, second, _) = shop.corner.name, shop.nodes
    placement = {"nodeSelector": {GROUP: here}}
    owners = (PodOwner(here, "huge-0"),)
    huge = Spec(owners=owners, resources={"cpu": "5"}, placement=placement)
    async with Client(process.grpc_address) as client:
        room = MakeRoom(pods=[(here, "big")], reservations={"huge": huge})
        found = await client.rebalance.plan(make_room=room)
        assert [(move.source, move.target) for move in found.moves] == [(second, first)] * 2
        assert found.landings == ((PodName(here, "big"), second),)
        assert [kept.pod for kept in found.kept] == [PodName(here, "huge")]
        assert 0 < found.fewest_moves <= 2
        with pytest.raises(CallFailed) as caught:
            await client.rebalance.plan(make_room=MakeRoom(pods=[(here, "gone")]))
        says = {"makeRoom.pods[0]": f"{here}/gone is not there; leave it out"}
        assert caught.value.fields == says


def test_serve_rebalances_in_a_process_that_knows_what_is_held_and_ends_with_it(
    shop: Shop, within_kubeconfig: Path, tmp_path: Path
) -> None:
    crowd(shop)
    shop.corner.reserve(FORMS[0], shop.nodes[2], "someone", cpu="4")
    shop.corner.wait_held(shop.nodes[2])
    policy = tmp_path / "within.yaml"
    shop.write(policy, RemoveDuplicates={})
    flags = [f"--rebalance-policy={policy}", "--rebalance-interval=1s"]
    flags += ["--grpc-address=127.0.0.1:0"]
    with ReserverProcess(within_kubeconfig, tmp_path / "log", *flags) as process:

        def is_spread() -> bool:
            return sorted(shop.count("web").values()) == [2, 4]

        wait_for(is_spread, "pods went where nothing is held")
        assert shop.nodes[2] not in shop.count("web")
        evicted = 'result="success",strategy="RemoveDuplicates"} 2.0'
        wait_for(lambda: evicted in process.get("/metrics")[1], "its metrics are ours")
        shop.write(tmp_path / "aged.yaml", PodLifeTime={"maxPodLifeTimeSeconds": 1})
        asyncio.run(_plan(process, shop, (tmp_path / "aged.yaml").read_text()))
        (child,) = _children(process)
        os.kill(child, signal.SIGKILL)
        wait_for(lambda: _children(process) not in ([], [child]), "another one has taken its place")
        assert process.metric("reserver_rebalance_process_ended_total") == 1
        (child,) = _children(process)
        process.kill()
        wait_for(lambda: not Path(f"/proc/{child}").exists(), "it has ended as well")
        process.start()
        wait_for(lambda: len(_children(process)) == 1, "it runs again")
        (child,) = _children(process)
    assert not Path(f"/proc/{child}").exists()


def test_serve_would_make_room_for_a_pod_that_fits_nowhere(
    shop: Shop, room_kubeconfig: Path, tmp_path: Path
) -> None:
    """A dry run: another Reserver carries PodMoves out here, and would take them as its own."""
    crowd(shop)
    first, second, third = shop.nodes
    for node in (first, third):
        shop.cordon(node)
    shop.deploy("api", 2)
    assert shop.count("api") == {second: 2}
    shop.corner.create_pod("big", {"cpu": "4"})
    shop.corner.wait_refused("big")
    shop.cordon(first, is_cordoned=False)
    before = shop.pods()
    flags = ["--rebalance-make-room", "--rebalance-mode=reserve-first", "--pod-moves"]
    flags += ["--rebalance-dry-run", "--rebalance-interval=1s", "--grpc-address=127.0.0.1:0"]
    with ReserverProcess(room_kubeconfig, tmp_path / "log", *flags) as process:

        def would() -> set[tuple[str, str, str]]:
            """Return pod, node and target of all that would move for room."""
            lines = (tmp_path / "log").read_text().splitlines()  # The last one may be written now.
            whole = [json.loads(line) for line in lines if line[:1] + line[-1:] == "{}"]
            found = [line for line in whole if line.get("strategy") == "MakeRoom"]
            return {(line["pod"], line["node"], line["to"]) for line in found}

        wait_for(lambda: len(would()) == 3, "a round has made room")
        here = shop.corner.name
        assert (f"{here}/big", "", second) in would()
        assert Counter(each[1:] for each in would()) == {("", second): 1, (second, first): 2}
        asyncio.run(_plan_room(process, shop))
    assert shop.pods() == before


def test_a_metrics_api_that_is_not_there_is_an_error_that_says_so(shop: Shop) -> None:
    crowd(shop)
    before = shop.pods()
    with pytest.raises(AssertionError, match="is metrics-server installed"):
        shop.run(LowNodeLoad={"lowThresholds": {"cpu": 20}, "highThresholds": {"cpu": 80}})
    assert shop.pods() == before


def test_with_an_interval_a_policy_that_changes_is_read_anew_and_a_broken_one_is_told(
    shop: Shop, tmp_path: Path
) -> None:
    crowd(shop)
    policy = tmp_path / "changing.yaml"
    policy.write_text("apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\nprofiles: []\n")
    flags = ["--descheduling-interval", "1s", "--leader-elect", "--health-address", "127.0.0.1:0"]
    with subprocess.Popen(
        [*shop.command(policy), *flags], stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        url = next(line.split()[1] for line in process.stderr if line.startswith("health"))
        draining = threading.Thread(target=process.stderr.read)
        draining.start()

        def metrics() -> dict[str, float]:
            with urllib.request.urlopen(f"{url}/metrics") as answer:
                lines = answer.read().decode().splitlines()
            found = (line.rpartition(" ") for line in lines if not line.startswith("#"))
            return {name: float(value) for name, _, value in found}

        done = 'reserver_rebalance_rounds_total{outcome="done"}'
        wait_for(lambda: metrics().get(done, 0) > 0, "there was a round")
        shop.write(policy, RemoveDuplicates={})
        wait_for(lambda: sorted(shop.count("web").values()) == [2, 2, 2], "the pods are spread")
        counted = metrics()
        evicted = [name for name in counted if name.startswith("descheduler_pods_evicted_total")]
        assert sum(counted[name] for name in evicted) == 4
        assert all('result="success",strategy="RemoveDuplicates"' in name for name in evicted)
        policy.write_text("kind: Nonsense")
        broken = "reserver_rebalance_policy_broken"
        wait_for(lambda: metrics()[broken] == 1, "the broken policy is told")
        process.terminate()
        draining.join(timeout=60)
    assert process.returncode == 0
    api: Any = CoordinationV1Api(shop.corner.api.api_client)
    assert not api.read_namespaced_lease(ACCOUNT, "reserver-system").spec.holder_identity
