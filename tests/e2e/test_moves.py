"""PodMoves, with controllers that make the pods again: no pod leaves before its seat is held."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import yaml
from aiohttp import web
from kubernetes.client import AppsV1Api, BatchV1Api, CustomObjectsApi, PolicyV1Api
from kubernetes.client.exceptions import ApiException

from hack.chaos.mishaps import Forward, Mishaps
from hack.chaos.proxy import Proxy
from hack.controlplane.cluster import ControlPlane, service_account_kubeconfig
from hack.reserver_process import ReserverProcess, wait_for
from reserver.client import Client, MoveSpec
from tests.e2e.cluster import GROUP, OBJECTS, Corner
from tests.e2e.conftest import MOVES, RBAC, grant, scheduling

pytestmark = pytest.mark.controlplane

SCHEDULER = "with-moves"
ACCOUNT = "mover"
MOVER = f"reserver-{ACCOUNT}"
"""Its service account in these tests; the rights that it has without moves are tested apart."""
ENDED = {"Succeeded", "Failed", "Aborted"}


class Deadly(Mishaps):
    """Kills Reserver at a write of a move, once, before it is carried out or after.

    Attributes:
        at: how the path of that write ends; empty for none.
        is_done: whether it is carried out.
        kill: ends Reserver.
        may_evict: evictions wait for it.
        writes: what was written of moves, in order.
    """

    def __init__(self) -> None:
        super().__init__(seed=0)
        self.at = ""
        self.is_done = False
        self.kill: Callable[[], None] = lambda: None
        self.may_evict = Event()
        self.may_evict.set()
        self.writes: list[str] = []

    async def write(self, forward: Forward, request: web.BaseRequest) -> web.Response:
        self.writes.append(request.path)
        if request.path.endswith("/eviction"):
            await asyncio.to_thread(self.may_evict.wait)
        if not self.at or not request.path.endswith(self.at):
            return await forward()
        self.at = ""
        answer = await forward() if self.is_done else web.Response(status=500)
        self.kill()
        return answer


@pytest.fixture(scope="session")
def mover_kubeconfig(
    kubeconfig: Path,
    api: Any,
    reserver_kubeconfig: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """A service account with Reserver's rights and those of components/moves, and no others."""
    assert reserver_kubeconfig.exists()  # Its roles are there.
    for file in (RBAC, MOVES / "rbac.yaml"):
        for document in yaml.safe_load_all(file.read_text()):
            is_role = document["kind"].endswith("Role")
            if not is_role:
                document["metadata"]["name"] = f"{document['metadata']['name']}-{ACCOUNT}"
            for subject in document.get("subjects", ()):
                subject["name"] = f"{subject['name']}-{ACCOUNT}"
            if file != RBAC or not is_role:
                grant(api, document)
    path = tmp_path_factory.mktemp("mover") / "kubeconfig"
    service_account_kubeconfig(kubeconfig, "reserver-system", MOVER, path)
    return path


@pytest.fixture(scope="module")
def mishaps() -> Deadly:
    """What happens to the writes of moves."""
    return Deadly()


@pytest.fixture(scope="module")
def mover(
    control_plane: ControlPlane,
    mover_kubeconfig: Path,
    mishaps: Deadly,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ReserverProcess]:
    """Reserver with --pod-moves, and a kube-scheduler that asks it."""
    folder = tmp_path_factory.mktemp("mover")
    with Proxy(mover_kubeconfig, mishaps) as proxy:
        proxy.write_kubeconfig(folder / "kubeconfig")
        with (
            ReserverProcess(
                folder / "kubeconfig", folder / "log", "--pod-moves", "--grpc-address=127.0.0.1:0"
            ) as process,
            scheduling(control_plane, process, SCHEDULER),
        ):
            yield process


class Moving:
    """PodMoves of a corner of the cluster."""

    def __init__(self, corner: Corner) -> None:
        self.corner = corner
        self._objects: Any = CustomObjectsApi(corner.api.api_client)

    def move(self, name: str, pod: str | dict[str, str], **spec: Any) -> str:
        body = {
            "apiVersion": "/".join(OBJECTS),
            "kind": "PodMove",
            "metadata": {"name": name},
            "spec": {"pod": pod if isinstance(pod, dict) else {"name": pod}, **spec},
        }
        where = (*OBJECTS, self.corner.name, "podmoves")
        self._objects.create_namespaced_custom_object(*where, body)
        return name

    def status(self, name: str) -> dict[str, Any]:
        where = (*OBJECTS, self.corner.name, "podmoves", name)
        found: dict[str, Any] = self._objects.get_namespaced_custom_object(*where)
        status: dict[str, Any] = found.get("status", {})
        return status

    def wait_phase(self, name: str, *phases: str, reason: str = "") -> dict[str, Any]:
        found: dict[str, Any] = {}

        def has_come() -> bool:
            nonlocal found
            found = self.status(name)
            is_right = found.get("phase") in phases and reason in {"", found.get("reason")}
            return is_right or found.get("phase") in ENDED

        wait_for(has_come, f"{name} is {phases} {reason}", 20)
        assert found["phase"] in phases, found
        assert reason in {"", found["reason"]}, found
        return found

    def written(self) -> list[dict[str, Any]]:
        where = (*OBJECTS, self.corner.name, "podmoves")
        found: list[dict[str, Any]] = self._objects.list_namespaced_custom_object(*where)["items"]
        return found

    def change(self, name: str, **spec: Any) -> None:
        where = (*OBJECTS, self.corner.name, "podmoves", name)
        self._objects.patch_namespaced_custom_object(*where, {"spec": spec})

    def exists(self, name: str) -> bool:
        return name in [item["metadata"]["name"] for item in self.written()]

    def delete(self, name: str) -> None:
        where = (*OBJECTS, self.corner.name, "podmoves", name)
        self._objects.delete_namespaced_custom_object(*where)

    def seats(self) -> list[str]:
        where = (*OBJECTS, self.corner.name, "reservations")
        items = self._objects.list_namespaced_custom_object(*where)["items"]
        return [item["metadata"]["name"] for item in items]

    def wait_released(self) -> None:
        wait_for(lambda: not self.seats(), "no seat is left", 30)


class Yard(Moving):
    """Nodes of four cores, workloads on them, and moves."""

    def __init__(self, corner: Corner) -> None:
        super().__init__(corner)
        self.nodes = corner.add_nodes(2, cpu="4")
        self.group = {"name": corner.name, "size": 2}
        self._side = corner.add_nodes(2, cpu="500m")
        client = corner.api.api_client
        self.apps: Any = AppsV1Api(client)
        self.jobs: Any = BatchV1Api(client)
        self._budgets: Any = PolicyV1Api(client)

    # Workloads

    def template(self, name: str, cpu: str = "2", **spec: Any) -> dict[str, Any]:
        container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu}}}
        return {
            "metadata": {"labels": {"app": name}},
            "spec": {
                "schedulerName": self.corner.scheduler,
                "nodeSelector": {GROUP: self.corner.name},
                "terminationGracePeriodSeconds": 0,
                "containers": [container],
                **spec,
            },
        }

    def workload(self, name: str, replicas: int = 1, cpu: str = "2") -> dict[str, Any]:
        return {
            "metadata": {"name": name},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"app": name}},
                "template": self.template(name, cpu),
            },
        }

    def deploy(self, name: str, node: str, replicas: int = 1, cpu: str = "2") -> str:
        """Create a Deployment whose pods land on a node; return the name of one of them."""
        with self.only(node):
            body = self.workload(name, replicas, cpu)
            self.apps.create_namespaced_deployment(self.corner.name, body)
            self.wait_on(name, node, replicas)
        return str(self.pods(name)[0].metadata.name)

    def deploy_stateful(self, name: str, node: str) -> None:
        """Create a StatefulSet whose pod lands on a node."""
        with self.only(node):
            body = self.workload(name)
            body["spec"]["serviceName"] = name
            self.apps.create_namespaced_stateful_set(self.corner.name, body)
            self.wait_on(name, node)

    def only(self, node: str) -> Any:
        """Let pods land on one node alone, until the block ends."""
        return Cordoned(self.corner.api, {*self.nodes, *self._side} - {node})

    def scale(self, name: str, replicas: int) -> None:
        body = {"spec": {"replicas": replicas}}
        self.apps.patch_namespaced_deployment_scale(name, self.corner.name, body)

    def pods(self, name: str) -> list[Any]:
        """Return the pods of a workload that are not leaving."""
        found = self.corner.api.list_namespaced_pod(
            self.corner.name, label_selector=f"app={name}"
        ).items
        return [pod for pod in found if pod.metadata.deletion_timestamp is None]

    def nodes_of(self, name: str) -> list[str]:
        """Return the nodes of the pods of a workload that have one."""
        return [pod.spec.node_name for pod in self.pods(name) if pod.spec.node_name]

    def wait_on(self, name: str, node: str, replicas: int = 1, seconds: float = 60) -> None:
        def is_there() -> bool:
            nodes = [pod.spec.node_name for pod in self.pods(name)]
            return nodes == [node] * replicas

        wait_for(is_there, f"{name} is on {node}", seconds)

    def keep(self, name: str) -> None:
        """Create a PodDisruptionBudget that allows no eviction, and wait until it is counted."""
        spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": name}}}
        where = self.corner.name
        self._budgets.create_namespaced_pod_disruption_budget(
            where, {"metadata": {"name": name}, "spec": spec}
        )

        def is_counted() -> bool:
            found = self._budgets.read_namespaced_pod_disruption_budget_status(name, where)
            return bool(found.status and found.status.expected_pods)

        wait_for(is_counted, "the budget knows its pods")

    def wait_seated(self, name: str, pod: str, **spec: Any) -> None:
        """Move a pod, and return once it has its seat: it waits for one of its group."""
        here, _ = self._side
        late = self.deploy("late", here, cpu="100m")
        self.move("late", late, to={"nodeSelector": {"e2e": self.corner.name}}, group=self.group)
        self.move(name, pod, group=self.group, **spec)
        self.wait_phase(name, "Evicting", reason="WaitsForGroup")

    def let_go(self) -> None:
        """Let the one that it waits for have its seat as well."""
        _, there = self._side
        self.corner.api.patch_node(there, {"metadata": {"labels": {"e2e": self.corner.name}}})


class Cordoned:
    """Nodes that take no pods, until the block ends."""

    def __init__(self, api: Any, nodes: set[str]) -> None:
        self._api = api
        self._nodes = nodes

    def __enter__(self) -> None:
        self._cordon(is_cordoned=True)

    def __exit__(self, *_: object) -> None:
        self._cordon(is_cordoned=False)

    def _cordon(self, *, is_cordoned: bool) -> None:
        for node in self._nodes:
            self._api.patch_node(node, {"spec": {"unschedulable": is_cordoned}})


@pytest.fixture
def yard(kubeconfig: Path, api: Any, mover: ReserverProcess) -> Iterator[Yard]:
    assert mover.is_ready()
    with opened(kubeconfig, SCHEDULER, api) as made:
        yield made


@contextmanager
def opened(kubeconfig: Path, scheduler: str, api: Any) -> Iterator[Yard]:
    """A corner of the cluster with workloads; all of it is gone afterwards."""
    corner = Corner(kubeconfig, scheduler, api)
    corner.open()
    made = Yard(corner)
    try:
        yield made
    finally:
        for kind in ("deployment", "stateful_set"):
            getattr(made.apps, f"delete_collection_namespaced_{kind}")(corner.name)
        made.jobs.delete_collection_namespaced_job(corner.name, propagation_policy="Background")
        corner.close()


def test_fragments_become_room_for_a_pod_that_fits_nowhere(yard: Yard) -> None:
    d, e = yard.nodes
    yard.deploy("a", d)
    b = yard.deploy("b", e)
    yard.corner.create_pod("big", {"cpu": "4"})
    yard.corner.wait_refused("big")
    yard.move("b", b, to={"node": d})
    status = yard.wait_phase("b", "Succeeded", reason="Landed")
    assert (status["from"], status["to"], status["replacement"]["node"]) == (e, d, d)
    yard.wait_on("b", d)
    assert yard.corner.wait_bound("big") == e
    yard.wait_released()


def test_a_move_takes_a_pod_of_a_deployment_to_the_node_that_is_named(yard: Yard) -> None:
    first, second = yard.nodes
    pod = yard.deploy("web", first)
    yard.move("web", pod, to={"node": second}, ttlSecondsAfterFinished=2)
    status = yard.wait_phase("web", "Succeeded", reason="Landed")
    assert status["podUID"] != status["replacement"]["uid"]
    assert status["evictedAt"] <= status["finishedAt"]
    yard.wait_on("web", second)
    events = [event for reason in ("Landed", "Moved") for event in yard.corner.events(reason)]
    assert any(second in message for message in events), events
    yard.wait_released()
    wait_for(lambda: not yard.exists("web"), "it is deleted when its time is over", 20)


def test_a_pod_of_a_statefulset_keeps_its_name(yard: Yard) -> None:
    first, second = yard.nodes
    yard.deploy_stateful("db", first)
    before = yard.pods("db")[0].metadata.uid
    yard.move("db", "db-0")
    status = yard.wait_phase("db", "Succeeded", reason="Landed")
    assert (status["podUID"], status["replacement"]["name"]) == (before, "db-0")
    yard.wait_on("db", second)


def test_a_pod_of_a_job_moves(yard: Yard) -> None:
    first, second = yard.nodes
    with yard.only(first):
        template = yard.template("sums", restartPolicy="Never")
        body = {"metadata": {"name": "sums"}, "spec": {"template": template}}
        yard.jobs.create_namespaced_job(yard.corner.name, body)
        yard.wait_on("sums", first)
    yard.move("sums", yard.pods("sums")[0].metadata.name)
    yard.wait_phase("sums", "Succeeded", reason="Landed")
    yard.wait_on("sums", second)


def test_who_takes_every_hole_does_not_take_the_seat(yard: Yard) -> None:
    """The room is just enough; others ask for it all the while, before and after the eviction."""
    first, second = yard.nodes
    pod = yard.deploy("web", first, cpu="4")
    body = yard.workload("greedy", replicas=6, cpu="1")
    yard.wait_seated("web", pod)
    yard.apps.create_namespaced_deployment(yard.corner.name, body)
    wait_for(lambda: len(yard.pods("greedy")) == 6, "there are six")
    for greedy in yard.pods("greedy"):
        yard.corner.wait_refused(greedy.metadata.name)
    yard.let_go()
    yard.wait_phase("web", "Succeeded", reason="Landed")
    yard.wait_on("web", second)
    bound = partial(yard.nodes_of, "greedy")
    wait_for(lambda: bound().count(first) == 4, "they take what was left behind")
    assert second not in bound()


def test_a_round_of_rebalancing_holds_the_seats_of_its_plan_before_it_evicts(
    yard: Yard, mishaps: Deadly, rebalance_kubeconfig: Path, tmp_path: Path
) -> None:
    """Others ask for all room that there is, from before the eviction until it has landed."""
    first, second = yard.nodes
    yard.deploy("web", first, replicas=2)
    policy = tmp_path / "policy.yaml"
    policy.write_text(yaml.safe_dump(spreading(f"{GROUP}={yard.corner.name}")))
    command = [sys.executable, "-m", "reserver", "rebalance", "run", "--without-holds"]
    command += ["--mode", "reserve-first", "--policy-config-file", str(policy)]
    command += ["--kubeconfig", str(rebalance_kubeconfig)]
    mishaps.may_evict.clear()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert "1 PodMoves written, 0 pods evicted, 0 could not be" in done.stdout, done.stderr
        (written,) = yard.written()
        name, spec = written["metadata"]["name"], written["spec"]
        assert (spec["to"], spec["group"]["size"]) == ({"node": second}, 1)
        yard.wait_phase(name, "Evicting")
        greedy = yard.workload("greedy", replicas=6, cpu="1")
        yard.apps.create_namespaced_deployment(yard.corner.name, greedy)
        bound = partial(yard.nodes_of, "greedy")
        wait_for(lambda: bound() == [second, second], "they have what is not held")
        (refused, *_) = [pod for pod in yard.pods("greedy") if not pod.spec.node_name]
        yard.corner.wait_refused(refused.metadata.name, "held by reservation")
        assert yard.nodes_of("web") == [first, first]
    finally:
        mishaps.may_evict.set()
    yard.wait_phase(name, "Succeeded", reason="Landed")
    wait_for(lambda: len(bound()) == 4, "they have what was left behind")
    assert sorted(yard.nodes_of("web")) == sorted((first, second))
    assert Counter(bound()) == {first: 2, second: 2}
    yard.wait_released()


def spreading(selector: str) -> dict[str, Any]:
    """Return a policy that spreads equal pods over the nodes with some labels."""
    config = {"DefaultEvictor": {"nodeSelector": selector}, "RemoveDuplicates": {}}
    profile = {
        "name": "e2e",
        "pluginConfig": [{"name": name, "args": args} for name, args in config.items()],
        "plugins": {"balance": {"enabled": ["RemoveDuplicates"]}},
    }
    version, kind = "descheduler/v1alpha2", "DeschedulerPolicy"
    return {
        "apiVersion": version,
        "kind": kind,
        "nodeSelector": selector,
        "profiles": [profile],
    }


def test_for_a_pod_that_its_budget_keeps_no_seat_is_taken(yard: Yard) -> None:
    first, second = yard.nodes
    pod = yard.deploy("web", first)
    yard.keep("web")
    yard.move("web", pod, timeout="3s")
    yard.wait_phase("web", "Pending", reason="BudgetBlocks")
    assert not yard.seats()
    yard.corner.create_pod("other", {"cpu": "4"})
    assert yard.corner.wait_bound("other") == second
    yard.wait_phase("web", "Failed", reason="DeadlineExceeded")
    assert yard.pods("web")[0].metadata.name == pod


def test_a_seat_whose_node_dies_evicts_nobody(yard: Yard) -> None:
    first, second = yard.nodes
    pod = yard.deploy("web", first)
    yard.wait_seated("web", pod, to={"node": second})
    yard.corner.api.delete_node(second)
    yard.nodes.remove(second)
    yard.corner.nodes.remove(second)
    yard.wait_phase("web", "Failed", reason="SeatImpossible")
    yard.wait_released()
    assert yard.status("late")["reason"] == "GroupFailed"
    assert yard.pods("web")[0].metadata.name == pod


def test_a_deployment_that_is_scaled_to_zero_meanwhile_ends_the_move(yard: Yard) -> None:
    first, _ = yard.nodes
    pod = yard.deploy("web", first)
    yard.wait_seated("web", pod)
    yard.scale("web", 0)
    yard.wait_phase("web", "Succeeded", reason="NotReplaced")
    wait_for(lambda: not [name for name in yard.seats() if "web" in name], "its seat is released")


def test_a_statefulset_that_is_scaled_to_zero_meanwhile_ends_the_move(yard: Yard) -> None:
    first, _ = yard.nodes
    yard.deploy_stateful("db", first)
    yard.wait_seated("db", "db-0")
    scale = {"spec": {"replicas": 0}}
    yard.apps.patch_namespaced_stateful_set_scale("db", yard.corner.name, scale)
    yard.wait_phase("db", "Succeeded", reason="NotReplaced")


def test_a_move_that_is_deleted_leaves_no_seat(yard: Yard) -> None:
    first, _ = yard.nodes
    pod = yard.deploy("web", first)
    yard.wait_seated("web", pod)
    assert yard.seats()
    yard.delete("web")
    yard.delete("late")
    yard.wait_released()
    assert yard.pods("web")[0].metadata.name == pod


@pytest.mark.parametrize(
    ("at", "is_done"), [("/reservations", True), ("/eviction", False), ("/eviction", True)]
)
def test_reserver_is_killed_at_a_write_of_a_move_and_goes_on(
    yard: Yard, mover: ReserverProcess, mishaps: Deadly, at: str, *, is_done: bool
) -> None:
    """Every write is in tests/unit/kube/migration; here those where most could go wrong."""
    first, second = yard.nodes
    pod = yard.deploy("web", first)
    mishaps.writes.clear()
    mishaps.kill, mishaps.at, mishaps.is_done = mover.process.kill, at, is_done
    yard.move("web", pod, to={"node": second})
    mover.wait_ended()
    mover.start()
    yard.wait_phase("web", "Succeeded", reason="Landed")
    yard.wait_on("web", second)
    yard.wait_released()
    evictions = [path for path in mishaps.writes if path.endswith("/eviction")]
    assert len(evictions) == (2 if at == "/eviction" and not is_done else 1), mishaps.writes


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no pod": ({"pod": {"name": ""}}, "spec.pod.name"),
    "a node and labels": ({"to": {"node": "a", "nodeSelector": {"b": "c"}}}, "spec.to"),
    "an endless move": ({"timeout": "25h"}, "spec.timeout"),
    "no time": ({"timeout": "0s"}, "spec.timeout"),
    "a group without seats": (
        {"mode": "EvictOnly", "group": {"name": "drain", "size": 2}},
        "spec.group",
    ),
    "a group of nobody": ({"group": {"name": "drain", "size": 0}}, "spec.group.size"),
    "an unknown mode": ({"mode": "Now"}, "spec.mode"),
    "a grace period of a week": (
        {"deleteOptions": {"gracePeriodSeconds": 604_800}},
        "spec.deleteOptions.gracePeriodSeconds",
    ),
}


def test_over_grpc_a_move_is_written_paused_and_called_off(
    yard: Yard, mover: ReserverProcess
) -> None:
    """With Reserver's own rights: what the caller may is asked before."""
    yard.corner.create_pod("web-0", {"cpu": "1"})

    async def calls() -> None:
        async with Client(mover.grpc_address) as client:
            spec = MoveSpec(pod="web-0", paused=True)
            (move,) = await client.moves.create(yard.corner.name, {"away": spec})
            assert move.spec == replace(spec, timeout=timedelta(minutes=10))
            resumed = await client.moves.resume(yard.corner.name, "away", uid=move.uid)
            assert resumed.spec is not None
            assert not resumed.spec.paused
            await client.moves.delete(yard.corner.name, "away", uid=move.uid)

    asyncio.run(calls())
    assert not yard.exists("away")


@pytest.mark.parametrize("case", REFUSED)
def test_what_can_be_refused_at_once_is_refused_with_the_name_of_the_field(
    corner: Corner, case: str
) -> None:
    spec, field = REFUSED[case]
    with pytest.raises(ApiException) as refusal:
        Moving(corner).move("bad", **({"pod": {"name": "web-0"}} | spec))
    causes = json.loads(refusal.value.body or "")["details"]["causes"]
    assert (refusal.value.status, field in [cause["field"] for cause in causes]) == (422, True)


def test_of_a_move_only_whether_it_is_paused_and_kept_may_change(corner: Corner) -> None:
    moving = Moving(corner)
    moving.move("web", "web-0", to={"node": "a"}, timeout="1h30m")
    moving.change("web", paused=True, ttlSecondsAfterFinished=60)
    for change in ({"pod": {"name": "web-1"}}, {"to": None}, {"timeout": "2h"}):
        with pytest.raises(ApiException, match="cannot be changed"):
            moving.change("web", **change)
