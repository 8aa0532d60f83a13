"""`move`, `drain` and `moves` as they write PodMoves, beside an API server in memory."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from reserver.cli import move, moves, podmoves
from reserver.cli.drain import drained
from reserver.cli.failure import ExitStatus, Failed
from reserver.cli.main import app
from reserver.cli.output import Output
from reserver.cluster.pod import PodName
from reserver.errors import ApiError
from reserver.k8s.objects.objects import ResourceMetadata
from reserver.moves.drain import DrainOptions
from reserver.moves.manifests import SharedFields, manifest
from reserver.moves.phases import MoveMode
from reserver.moves.podmove import MoveObject, read_object
from reserver.patches.codec import PatchObject
from reserver.patches.codec import read_object as read_patch
from reserver.patches.model import PREFERRED, SchedPatch
from reserver.rebalance.capacity import Held
from tests.unit.moves.test_drain import pod

META: dict[str, Any] = {
    "name": "a",
    "namespace": "shop",
    "creation_timestamp": "2026-01-01T00:00:00Z",
}
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
MOVES = "/apis/reserver.io/v1alpha1/namespaces/shop/podmoves"
GROUPS = "/apis/reserver.io/v1alpha1/podmovegroups"
PATCHES = "/apis/reserver.io/v1alpha1/namespaces/shop/schedpatches"


class Api:
    """Nodes, pods and PodMoves; each PodMove has its end at once."""

    def __init__(
        self,
        *pods: dict[str, Any],
        most: int = 99,
        phase: str = "Succeeded",
        landed: str = "worker-2",
        reason: str = "",
    ) -> None:
        self.pods = pods
        self.nodes: dict[str, Any] = {"/api/v1/nodes/worker-1": {}}
        self.moves: dict[str, dict[str, Any]] = {}
        self.others: dict[str, Any] = {}
        self.groups: list[Any] = []
        self.no_group: ApiError | None = None
        self.active = "True"
        self.patches: bool | ApiError = True
        self.patch_read: SchedPatch
        self.gone: list[str] = []
        self.most, self.phase, self.landed, self.reason = most, phase, landed, reason

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> bytes:
        if path == "/api/v1/pods":
            assert params == {"fieldSelector": "spec.nodeName=worker-1"}
            return json.dumps({"kind": "PodList", "items": self.pods}).encode()
        if path.endswith("/podmoves"):
            items = [each for name, each in self.moves.items() if name.startswith(f"{path}/")]
            return json.dumps({"items": items}).encode()
        if path in self.moves or path in self.others:
            return json.dumps(self.moves.get(path) or self.others[path]).encode()
        return json.dumps(self._node(path)).encode()

    async def create(self, path: str, body: object) -> bytes:
        assert isinstance(body, dict)
        if path == PATCHES:
            return self._patch(json.loads(json.dumps(body)))
        if path == "/api/v1/namespaces/shop/pods?dryRun=All":
            return self._try(body)
        if path == GROUPS:
            if self.no_group:
                raise self.no_group
            assert not self.moves, "it is written before its members"
            self.groups.append(json.loads(json.dumps(body)))
            return b"{}"
        namespace = body["metadata"]["namespace"]
        assert path == MOVES.replace("shop", namespace)
        number = len(self.moves)
        if number >= self.most:
            raise ApiError(403, "Forbidden", "exceeded quota")
        name = body["metadata"].get("name") or f"{body['metadata']['generateName']}{number}"
        metadata = {"name": name, "namespace": namespace, "uid": f"uid-{number}"}
        metadata["creationTimestamp"] = "2026-01-01T00:00:00Z"
        made = body | {"metadata": metadata}
        made = json.loads(json.dumps(made))
        raw = msgspec.Raw(msgspec.json.encode(made["spec"]))
        read_object(MoveObject(metadata=ResourceMetadata(**META), spec=raw))  # Or it is refused.
        status: dict[str, Any] = {"phase": self.phase, "message": "said", "to": "worker-2"}
        status["reason"] = self.reason
        status["replacement"] = {"node": self.landed}
        self.moves[f"{path}/{name}"] = made | {"status": status}
        return json.dumps(made).encode()

    async def patch(self, path: str, body: object) -> bytes:
        assert isinstance(body, dict)
        if body["spec"] == {"paused": False}:
            assert self.others.keys() & {f"{PATCHES}/web-0-0"}, "it goes on without its patch"
        there = self.moves[path] if path in self.moves else self._node(path)
        there.setdefault("spec", {}).update(body["spec"])
        return json.dumps(there).encode()

    async def delete(self, path: str, options: object) -> bytes:
        self.gone.append(path)
        if path in self.others:
            del self.others[path]
            return b"{}"
        assert options == {"preconditions": {"uid": self.moves[path]["metadata"]["uid"]}}
        del self.moves[path]
        return b"{}"

    def _patch(self, body: dict[str, Any]) -> bytes:
        metadata = ResourceMetadata(namespace="shop", creation_timestamp=META["creation_timestamp"])
        raw = msgspec.Raw(msgspec.json.encode(body["spec"]))
        self.patch_read = read_patch(PatchObject(metadata=metadata, spec=raw))
        active = {"type": "Active", "status": self.active, "reason": "Said", "message": "so"}
        path = f"{PATCHES}/{body['metadata']['name']}"
        self.others[path] = body | {"status": {"conditions": [active]}}
        return b"{}"

    def _try(self, pod: dict[str, Any]) -> bytes:
        """Return what webhooks make of a pod, or refuse it."""
        assert set(pod["metadata"]) == {"labels", "generateName"}
        assert set(pod["spec"]) == {"containers"}
        if isinstance(self.patches, ApiError):
            raise self.patches
        affinity = {"affinity": self.patch_read.injected.affinity} if self.patches else {}
        return json.dumps(pod | {"spec": pod["spec"] | affinity}).encode()

    def _node(self, path: str) -> dict[str, Any]:
        if path not in self.nodes:
            raise ApiError(404, "NotFound", f'"{path.rpartition("/")[2]}" not found')
        found: dict[str, Any] = self.nodes[path]
        return found


def drain(api: Api, allowed: DrainOptions = DrainOptions(), **flags: Any) -> None:  # noqa: B008 - frozen
    given = {"wait": True, "dry_run": False} | flags
    form = given.pop("form", Output.TABLE)
    terms = SharedFields(timeout="5m", mode=given.pop("mode", MoveMode.RESERVE_FIRST))
    asyncio.run(drained(api, "worker-1", allowed, terms, form, **given))


def specs(api: Api) -> list[dict[str, Any]]:
    return [each["spec"] for each in api.moves.values()]


def test_a_drain_cordons_and_moves_all_pods_as_one_group(
    capsys: pytest.CaptureFixture[str],
) -> None:
    api = Api(pod("a"), pod("b"), pod("d", "DaemonSet"))
    drain(api, DrainOptions(ignores_daemon_sets=True))
    assert api.nodes["/api/v1/nodes/worker-1"]["spec"] == {"unschedulable": True}
    first, second = specs(api)
    assert first["group"] == second["group"]
    assert (first["group"]["size"], first["timeout"]) == (2, "5m")
    assert [each["pod"] for each in (first, second)] == [
        {"name": "a", "uid": "uid-a"},
        {"name": "b", "uid": "uid-b"},
    ]
    assert capsys.readouterr().out.splitlines() == [
        "shop/d stays: its DaemonSet would recreate it here",
        "shop/a to worker-2 Succeeded: said",
        "shop/b to worker-2 Succeeded: said",
        "worker-1 drained",
    ]


def test_a_node_is_not_drained_while_another_move_has_one_of_its_pods(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The other move may wait for its window for weeks."""
    with pytest.raises(Failed, match=r"^shop/a to worker-2 Aborted: said$"):
        drain(Api(pod("a"), phase="Aborted", reason="MovedAlready"))
    assert capsys.readouterr().out == ""
    drain(Api(pod("a"), phase="Aborted", reason="PodGone"))
    assert capsys.readouterr().out.endswith("worker-1 drained\n")


def test_a_trial_of_a_drain_names_its_pods_or_says_that_there_are_none(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for pods, said, told in (((pod("a"),), "shop/a would move\n", ""),
                             ((), "", "reserver: worker-1: no pod would move\n")):  # fmt: skip
        api = Api(*pods)
        drain(api, dry_run=True)
        assert capsys.readouterr() == (said, told)
        assert (specs(api), api.nodes["/api/v1/nodes/worker-1"].get("spec", {})) == ([], {})


def test_a_drain_that_surges_evicts_only_what_no_controller_makes_again() -> None:
    api = Api(pod("a"), pod("bare", ""))
    drain(api, DrainOptions(evicts_unmanaged=True), mode=MoveMode.SURGE_FIRST)
    assert [(each["pod"]["name"], each["mode"]) for each in specs(api)] == [
        ("a", "SurgeFirst"),
        ("bare", "EvictOnly"),
    ]


@pytest.mark.parametrize("other", ["--evict-only", "--by-patch"])
def test_a_surge_takes_a_seat(other: str) -> None:
    done = CliRunner().invoke(app, ["move", "shop/web-0", "--surge", other])
    assert done.exit_code == ExitStatus.USAGE
    assert f"--surge: starts a copy on a held seat, and {other} holds none" in done.stderr


@pytest.mark.parametrize(("phase", "is_told"), [("Evicting", False), ("Succeeded", True)])
def test_once_a_move_has_ended_it_is_said_why_its_pod_did_not_surge(
    phase: str, *, is_told: bool
) -> None:
    move: dict[str, Any] = {"metadata": META | {"namespace": "shop"}}
    move |= {"spec": {"pod": {"name": "db-0"}}}
    move["status"] = {"phase": phase, "message": "said", "fallback": "only ReplicaSets' pods do"}
    told = "; it did not surge: only ReplicaSets' pods do" if is_told else ""
    assert podmoves.summary(move) == f"shop/db-0 {phase}: said{told}"


def elsewhere(name: str) -> dict[str, Any]:
    """Return a pod of another namespace."""
    made = pod(name)
    return made | {"metadata": made["metadata"] | {"namespace": "blog"}}


def test_a_drain_of_pods_of_several_namespaces_says_first_which_moves_are_its_group() -> None:
    api = Api(pod("a"), elsewhere("a"))
    drain(api)
    (group,) = api.groups
    names = [each["metadata"]["name"] for each in api.moves.values()]
    assert group["spec"]["members"] == [
        {"namespace": "blog", "name": names[0], "uid": "uid-a"},
        {"namespace": "shop", "name": names[1], "uid": "uid-a"},
    ]
    for spec in specs(api):
        assert spec["group"] == {
            "name": group["metadata"]["name"],
            "size": 2,
            "acrossNamespaces": True,
        }


CANNOT = 'podmovegroups.reserver.io is forbidden: User "jane" cannot create resource'


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ApiError(404, "NotFound", "no such resource"), "no PodMoveGroups.*of this version"),
        (ApiError(403, "Forbidden", CANNOT), "ClusterRole reserver-move-groups"),
    ],
)
def test_without_the_right_to_declare_a_group_nothing_is_written(
    error: ApiError, told: str
) -> None:
    api = Api(pod("a"), elsewhere("b"))
    api.no_group = error
    with pytest.raises(Failed, match=told):
        drain(api)
    assert api.moves == {}
    drain(Api(pod("a"), pod("b")))  # Of one namespace no right is needed.


def test_two_drains_are_two_groups() -> None:
    api = Api(pod("a"))
    drain(api)
    drain(api)
    first, second = specs(api)
    assert first["group"]["name"] != second["group"]["name"]


def test_what_a_drain_must_not_move_is_named_and_nothing_is_moved() -> None:
    api = Api(pod("a"), pod("b", ""))
    with pytest.raises(Failed, match="shop/b: no controller would replace it") as failed:
        drain(api)
    assert "nothing is moved; worker-1 is unchanged" in str(failed.value)
    assert specs(api) == []
    assert api.nodes["/api/v1/nodes/worker-1"] == {}


def cluster(*pods: dict[str, Any], free: str = "1") -> dict[str, Any]:
    """Return worker-1 with these pods, and worker-2 with so many CPUs, in lists."""
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
    """The same, and all that a look for room elsewhere reads."""

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


class Pressed(Api):
    """Somebody presses Ctrl-C once a number of PodMoves is written, or when they are listed."""

    def __init__(self, *pods: dict[str, Any], at: int) -> None:
        super().__init__(*pods, phase="Pending")
        self.at = at

    async def create(self, path: str, body: object) -> bytes:
        if len(self.moves) == self.at:
            raise asyncio.CancelledError
        return await super().create(path, body)

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> bytes:
        if path.endswith("/podmoves"):
            raise asyncio.CancelledError
        return await super().get(path, params)


def test_an_interrupted_drain_says_what_it_leaves_and_how_to_go_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    api = Pressed(pod("a"), pod("b"), at=9)
    with pytest.raises(asyncio.CancelledError):
        drain(api)
    names = [each["metadata"]["name"] for each in api.moves.values()]
    stays = "worker-1 stays cordoned (kubectl uncordon worker-1)"
    assert capsys.readouterr().err.splitlines()[1:] == [
        f"reserver: {stays}, and 2 moves go on without this command",
        "reserver: to follow: reserver moves -n shop -w",
        f"reserver: to cancel: kubectl delete podmoves -n shop {names[0]} {names[1]}",
    ]


def test_a_drain_that_is_interrupted_as_it_writes_takes_back_what_it_wrote(
    capsys: pytest.CaptureFixture[str],
) -> None:
    api = Pressed(pod("a"), pod("b"), at=1)
    with pytest.raises(asyncio.CancelledError):
        drain(api)
    assert api.moves == {}
    assert "nothing is moved; worker-1 stays cordoned" in capsys.readouterr().err


def test_an_interrupted_move_says_that_it_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    api = Pressed(at=9)

    async def interrupted() -> None:
        body = manifest(PodName("shop", "a"), SharedFields())
        await podmoves.follow(api, [await podmoves.create(api, body)], Output.TABLE, wait=True)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(interrupted())
    said = capsys.readouterr().err
    assert "the move goes on without this command" in said
    assert "kubectl delete podmoves -n shop a-0" in said


def with_volume(name: str) -> dict[str, Any]:
    """Return a pod that uses the claim data."""
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    return pod(name, "StatefulSet") | {"spec": {"nodeName": "worker-1", "volumes": [volume]}}


def lists(*nodes: str) -> dict[str, Any]:
    """Return two nodes, and the volume of the claim data, which only these can use."""
    terms = [{"matchExpressions": [{"key": "host", "operator": "In", "values": list(nodes)}]}]
    volume = {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}
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


def test_a_pod_that_comes_just_before_the_cordon_is_judged_as_well() -> None:
    class Late(Api):
        async def patch(self, path: str, body: object) -> bytes:
            self.pods = (*self.pods, pod("late", ""))
            return await super().patch(path, body)

    with pytest.raises(Failed, match="worker-1 stays cordoned"):
        drain(Late(pod("a")))


def test_pods_that_nobody_makes_again_are_evicted_once_the_others_have_landed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    api = Api(pod("a", ""), pod("b"))
    drain(api, DrainOptions(evicts_unmanaged=True))
    managed, alone = specs(api)
    printed = Api(pod("a", ""), pod("b"))
    capsys.readouterr()
    drain(printed, DrainOptions(evicts_unmanaged=True), form=Output.JSON)
    assert json.loads(capsys.readouterr().out)["items"] == list(printed.moves.values())
    assert managed["pod"]["name"] == "b"
    assert (alone["mode"], "group" in alone) == ("EvictOnly", False)


def test_if_one_move_cannot_be_written_the_others_are_taken_back() -> None:
    api = Api(pod("a"), pod("b"), pod("c"), most=2)
    with pytest.raises(Failed, match=r"shop/c: .*exceeded quota"):
        drain(api)
    assert api.moves == {}


def test_a_dry_run_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    api = Api(pod("a"))
    drain(api, dry_run=True)
    assert (api.nodes["/api/v1/nodes/worker-1"], api.moves) == ({}, {})
    assert capsys.readouterr().out == "shop/a would move\n"


def test_a_node_that_is_not_there_is_told() -> None:
    api = Api()
    api.nodes.clear()
    with pytest.raises(Failed, match="there is no node 'worker-1'"):
        drain(api)


def test_moves_that_fail_are_named_once_with_their_reason(
    capsys: pytest.CaptureFixture[str],
) -> None:
    api = Api(pod("a"), phase="Failed")
    with pytest.raises(Failed, match="shop/a to worker-2 Failed: said") as failed:
        drain(api)
    assert capsys.readouterr().out == ""
    assert failed.value.status is ExitStatus.REFUSED


def test_a_move_says_where_to_and_how(capsys: pytest.CaptureFixture[str]) -> None:
    api = Api()
    terms = SharedFields(timeout="30m", grace_period_s=5)
    body = manifest(PodName("shop", "web-0"), terms, to="worker-2", mode=MoveMode.EVICT_ONLY)
    made = asyncio.run(podmoves.create(api, body))
    asyncio.run(podmoves.follow(api, [made], Output.TABLE, wait=False))
    assert specs(api) == [
        {
            "pod": {"name": "web-0"},
            "to": {"node": "worker-2"},
            "mode": "EvictOnly",
            "timeout": "30m",
            "deleteOptions": {"gracePeriodSeconds": 5},
        }
    ]
    assert capsys.readouterr().out == "shop/web-0 written as web-0-0\n"


def test_moves_are_listed_for_people_and_programs(capsys: pytest.CaptureFixture[str]) -> None:
    api = Api(pod("a"))
    drain(api)
    capsys.readouterr()
    found = asyncio.run(podmoves.listed(api, "shop"))
    podmoves.show(found, Output.TABLE, everywhere=True)
    assert capsys.readouterr().out.splitlines() == [
        "NAMESPACE   NAME   POD   PHASE       REASON   FROM   TO",
        "shop        a-0    a     Succeeded                   worker-2",
    ]
    podmoves.show(found, Output.JSON)
    assert json.loads(capsys.readouterr().out)["items"] == found


@pytest.mark.parametrize(
    ("form", "lines"),
    [
        (Output.NAME, ["a-0", "a-0"]),
        (Output.JSON, ['{"apiVersion": ', '{"apiVersion": ']),
        (Output.TABLE, ["NAME", "a-0", "shop/a to worker-2 Failed: said"]),
    ],
)
def test_each_change_of_a_move_is_printed_as_it_happens(
    capsys: pytest.CaptureFixture[str], form: Output, lines: list[str]
) -> None:
    class Changing(Api):
        phases = iter(("Succeeded", "Failed"))

        async def get(self, path: str, params: Mapping[str, str] | None = None) -> bytes:
            phase = next(self.phases, None)
            if phase is None:
                raise ApiError(503, "ServiceUnavailable", "it ends here")
            self.moves[f"{MOVES}/a-0"]["status"]["phase"] = phase
            return await super().get(path, params)

    api = Changing()
    asyncio.run(podmoves.create(api, manifest(PodName("shop", "a"), SharedFields())))
    with pytest.raises(Failed, match="it ends here"):
        asyncio.run(moves.follow(api, "shop", form, everywhere=False, look_s=0))
    out = capsys.readouterr().out.splitlines()
    assert [line[: len(start)] for line, start in zip(out, lines, strict=True)] == lines


def test_of_a_move_that_follows_another_it_is_shown_which_and_whose_pod_has_come(
    capsys: pytest.CaptureFixture[str],
) -> None:
    spec = {"pod": {"name": "web-0", "after": "first"}, "to": {"node": "worker-2"}}
    move: dict[str, Any] = {"metadata": {"name": "second", "namespace": "shop"}, "spec": spec}
    waits = move | {"status": {"phase": "Pending", "reason": "WaitsForMove", "message": "m"}}
    moves = move | {"status": {"phase": "Evicting", "pod": "web-1", "from": "worker-3"}}
    podmoves.show([waits, moves], Output.WIDE)
    assert capsys.readouterr().out.splitlines() == [
        "NAME     POD     PHASE      REASON         FROM       TO         AFTER   OPENS   MESSAGE",
        "second   web-0   Pending    WaitsForMove              worker-2   first           m",
        "second   web-1   Evicting                  worker-3   worker-2   first",
    ]
    assert podmoves.summary(moves) == "shop/web-1 Evicting"


def test_a_move_is_paused_and_resumed() -> None:
    api = Api(pod("a"))
    drain(api)
    asyncio.run(podmoves.pause(api, "shop", "a-0", paused=True))
    assert specs(api)[0]["paused"] is True


def test_of_moves_that_are_paused_a_program_gets_the_objects_and_one_that_is_not_there_is_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    api = Api(pod("a"), pod("b"))
    drain(api)
    capsys.readouterr()
    names = ["a-0", "ghost", "b-1"]
    with pytest.raises(Failed, match="there is no PodMove shop/ghost"):
        asyncio.run(moves._pause_each(api, "shop", names, Output.TABLE, paused=True))
    assert capsys.readouterr().out == "a-0 paused\nb-1 paused\n"
    asyncio.run(moves._pause_each(api, "shop", names[::2], Output.JSON, paused=True))
    told = json.loads(capsys.readouterr().out)
    assert (told["kind"], told["items"]) == ("List", list(api.moves.values()))
    assert [each["spec"]["paused"] for each in told["items"]] == [True, True]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ('podmoves.reserver.io "a-0" not found', "there is no PodMove shop/a-0"),
        ("the server could not find the requested resource", "apply scheduler-config/components"),
    ],
)
def test_what_cannot_be_paused_says_why(said: str, told: str) -> None:
    class Without(Api):
        async def patch(self, path: str, body: object) -> bytes:  # noqa: ARG002
            raise ApiError(404, "NotFound", said)

    with pytest.raises(Failed, match=told) as caught:
        asyncio.run(podmoves.pause(Without(pod("a")), "shop", "a-0", paused=True))
    assert caught.value.status is ExitStatus.REFUSED


def test_without_the_crd_it_is_told_what_to_apply() -> None:
    class Without(Api):
        async def create(self, path: str, body: object) -> bytes:
            raise ApiError(404, "NotFound", f"no {path} for {body}")

    with pytest.raises(Failed, match="apply scheduler-config/components/moves"):
        drain(Without(pod("a")))


# By a SchedPatch


def by_patch(api: Api, to: str = "worker-2", **how: Any) -> None:
    labels = {"app": "web", "pod-template-hash": "5d8f7c9b9d"}
    spec: dict[str, Any] = {"nodeName": "worker-1", "containers": [{"name": "main"}]}
    spec |= {"affinity": {"nodeAffinity": {}}, "ephemeralContainers": []}
    found = {"metadata": {"uid": "u", "labels": labels}, "spec": spec, "status": {}}
    api.others["/api/v1/namespaces/shop/pods/web-0"] = found
    leaving, terms = PodName("shop", "web-0"), SharedFields(timeout="5m")
    given = {"wait": True} | how
    asyncio.run(move.moved_by_patch(api, leaving, to, terms, Output.TABLE, **given))


@pytest.mark.parametrize(
    ("to", "operator", "node"), [("worker-2", "In", "worker-2"), ("", "NotIn", "worker-1")]
)
def test_a_move_by_patch_goes_on_once_the_patch_is_active_and_the_patch_ends_with_it(
    to: str, operator: str, node: str
) -> None:
    api = Api()
    by_patch(api, to)
    (spec,) = specs(api)
    assert (spec["mode"], spec["paused"], spec["pod"]["uid"]) == ("EvictOnly", False, "u")
    patch = api.patch_read
    assert (patch.max_count, patch.expires_at) == (1, 1_767_225_600 + 300)
    assert patch.matches({"app": "web", "pod-template-hash": "5d8f7c9b9d"}, 0)
    assert not patch.matches({"app": "web", "pod-template-hash": "other"}, 0)
    (term,) = patch.injected.affinity["nodeAffinity"][PREFERRED]
    (field,) = term["preference"]["matchFields"]
    assert (field["operator"], field["values"]) == (operator, [node])
    assert api.gone == [f"{PATCHES}/web-0-0"]


def test_without_waiting_the_patch_stays_and_belongs_to_the_move() -> None:
    api = Api()
    by_patch(api, wait=False)
    (owner,) = api.others[f"{PATCHES}/web-0-0"]["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("PodMove", "web-0-0", "uid-0")
    assert api.gone == []


def test_nothing_is_evicted_while_nobody_patches_pods() -> None:
    api = Api()
    api.active = "False"
    with pytest.raises(Failed, match="web-0-0 patches no pods; Said: so"):
        by_patch(api, patience_s=0.01)
    assert specs(api) == []


def test_nothing_is_evicted_in_a_namespace_whose_pods_are_not_patched() -> None:
    api = Api()
    api.patches = False
    with pytest.raises(
        Failed, match=r"namespace shop; nothing was evicted.*reserver.io/webhooks=false"
    ):
        by_patch(api)
    assert specs(api) == []


def test_where_no_pod_may_be_tried_the_move_goes_on_and_its_end_is_judged() -> None:
    api = Api()
    api.patches = ApiError(403, "Forbidden", "exceeded quota")
    by_patch(api)
    assert [spec["paused"] for spec in specs(api)] == [False]


@pytest.mark.parametrize("to", ["worker-2", ""])
def test_a_replacement_that_its_scheduler_puts_elsewhere_is_told(to: str) -> None:
    api = Api(landed="worker-3" if to else "worker-1")
    with pytest.raises(Failed, match="its scheduler chose that"):
        by_patch(api, to)
