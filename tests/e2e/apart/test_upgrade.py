"""An upgrade and the way back, by the files of both versions: no hold is lost for a moment.

As in `test_kept`, no scheduler runs here. A newer version is this one with more fields.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hack.controlplane.cluster import ControlPlane
from hack.reserver_process import ReserverProcess, wait_for
from tests.e2e.apart.test_kept import (
    GROUP,
    HELD,
    HOME,
    MERGE,
    ROOT,
    Cluster,
    bind,
    companion,
    old_version,
    seat,
)
from tests.e2e.apart.versions import RULES, Operator, newer_version, serving

pytestmark = [pytest.mark.controlplane, pytest.mark.timeout(300)]

BEFORE = "5333c49f"
"""The last commit before ConfigMaps had fields of a newer version."""

OWNERS = [{"pod": {"name": "web", "namespace": "shop"}}]
HELD_ON = ("object", "claimed", "json", "yaml")
"""The names of nodes with a hold of the same name."""

PODS = "/api/v1/namespaces/shop/pods"
STORE = f"/api/v1/namespaces/{HOME}/configmaps/reservations"

KEYS = {
    "json": json.dumps(seat("json", owners=OWNERS)),
    "yaml": f"owners: [{{pod: {{name: web}}}}]\nnode: yaml\nresources: {{cpu: {HELD}}}\nttl: 2h\n",
}
OF_NEWER = {
    "newer": seat("newer", tenancy="gold", slotsPerPod=2),
    "restricted": seat(
        "restricted", owners=[{"pod": {"name": "one", "namespace": "shop"}, "tier": 1}]
    ),
}
"""Entries with fields that only a newer version has; one of them resembles a field of ours."""

SCHEDULE = {"cron": "0 3 * * *", "duration": "1h"}
OBJECTS: dict[str, dict[str, Any]] = {
    "lends": seat("lends", lend={"belowPriority": 0}),
    "recurs": {key: each for key, each in seat("recurs").items() if key != "ttl"}
    | {"schedule": SCHEDULE},
}
"""Objects whose fields the last version lacks: it would recall no loan, and hold at all times."""

MOVE = {
    "apiVersion": "reserver.io/v1alpha1",
    "kind": "PodMove",
    "metadata": {"name": "away"},
    "spec": {"pod": {"name": "leaves"}, "to": {"node": "to"}, "timeout": "30m"},
}
MOVES = f"{GROUP}/namespaces/shop/podmoves"


def begin_move(world: Cluster) -> dict[str, Any]:
    """Have a pod leave its node; return the next one of its workload, not yet created."""
    labels = {"app": "web"}
    container = {"name": "c", "image": "none", "resources": {"requests": {"cpu": HELD}}}
    spec = {"containers": [container]}
    workload = {
        "metadata": {"name": "web"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }
    made = world.send("POST", "/apis/apps/v1/namespaces/shop/replicasets", workload)
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "controller": True}
    owners = [reference | {"uid": made["metadata"]["uid"]}]

    def pod(name: str, **more: str) -> dict[str, Any]:
        metadata = {"name": name, "labels": labels, "ownerReferences": owners}
        return {"metadata": metadata, "spec": spec | more}

    world.send("POST", PODS, pod("leaves", nodeName="from"))
    world.send("POST", PODS, pod("waits"))
    world.send("POST", MOVES, MOVE)
    return pod("comes")


def begin(world: Cluster, reserver: ReserverProcess) -> None:
    """Reserve in both stores, claim one of two slots, and wait until all is in force."""
    world.reserve("object", seat("object"))
    halves = {"slots": 2, "resources": {"cpu": "6"}}
    world.reserve("claimed", seat("claimed", "first", "second") | halves)
    world.send("PATCH", STORE, {"data": KEYS}, MERGE)
    wait_for(lambda: companion(world).keys() >= KEYS.keys(), "keys hold")
    wait_for(lambda: world.status("object").get("phase") == "Active", "an object holds")
    wait_for(lambda: world.status("claimed").get("phase") == "Active", "another holds")
    assert bind(reserver, world.add_pod("first", "6"), "claimed") == ""
    wait_for(lambda: phase_of(world) == "Landing", "the pod is evicted, and its seat is held")


def reserve_newer(world: Cluster) -> None:
    """Reserve with fields that older versions lack, in both stores; return once they hold."""
    texts = {key: json.dumps(entry) for key, entry in OF_NEWER.items()}
    world.send("PATCH", STORE, {"data": texts}, MERGE)
    wait_for(lambda: companion(world).keys() >= OF_NEWER.keys(), "the newer keys hold")
    for name, spec in OBJECTS.items():
        world.reserve(name, spec)
    wait_for(lambda: world.status("lends").get("phase") == "Active", "a lender holds")
    wait_for(lambda: world.status("recurs").get("phase"), "the recurring one has a status")


@pytest.mark.release
def test_an_upgrade_and_the_way_back_lose_no_hold(tmp_path: Path) -> None:
    old = old_version(tmp_path / "old", BEFORE, "charts")
    newer = newer_version(tmp_path / "newer")
    (tmp_path / "new").symlink_to(ROOT)
    with ControlPlane(controller_manager=False) as plane:
        world, operator = Cluster(plane), Operator(plane, tmp_path)
        operator.kustomize("old")
        wait_for(world.serves, "the CRD is served")
        world.send("POST", "/api/v1/namespaces", {"metadata": {"name": "shop"}})
        for name in (*HELD_ON, *OF_NEWER, *OBJECTS, "from", "to", "free"):
            world.add_node(name)
        with serving(world, tmp_path / "old.log", (), old) as reserver:
            comes = begin_move(world)
            begin(world, reserver)
        held = [*HELD_ON, "to"]
        operator.kustomize("new")
        with serving(world, tmp_path / "up.log", held, newer):
            reserve_newer(world)
        held.append("lends")
        with serving(world, tmp_path / "back.log", [*held, "newer"]) as reserver:
            wait_for(lambda: "slotsPerPod" in companion(world)["newer"], "it says what it ignores")
            assert "owner with such a field" in companion(world)["restricted"]
            assert "held by" in bind(reserver, world.add_pod("one", HELD), "restricted")
            back_to_the_old_files(world, operator)
        held.append("newer")
        with serving(world, tmp_path / "further-back.log", held, old):
            pass
        operator.kustomize("new")
        held = [each for each in held if each not in {"claimed", "to"}]
        with serving(world, tmp_path / "again.log", held) as reserver:
            by_helm(operator)
            assert bind(reserver, world.add_pod("second", "6"), "claimed") == ""
            assert "held by" in bind(reserver, world.send("GET", f"{PODS}/waits"), "to")
            # As the kubelet, and the controller of the workload.
            world.send("DELETE", f"{PODS}/leaves", {"gracePeriodSeconds": 0})
            assert bind(reserver, world.send("POST", PODS, comes), "to") == ""


def back_to_the_old_files(world: Cluster, operator: Operator) -> None:
    """Do what `preflight` says is to be done before, and after, the old files are applied."""
    files = RULES.replace("VERSION", "old")
    (operator.folder / "kustomization.yaml").write_text(files)
    preflight = "kubectl kustomize . | reserver preflight --to 0.1.0 -f - -o json"
    told = json.loads(operator.run(preflight, status=1))["checks"]
    fields = {each["said"]: each["remedy"] for each in told if each["check"] == "fields"}
    assert len(fields) == 5
    for named in ("tenancy: ", "slotsPerPod: ", "owners[].tier: ", "lend: ", "schedule: "):
        assert any(named in each for each in fields), fields
    for said, remedy in fields.items():
        if "would lose" in said:
            operator.run(remedy.split("`")[1])
    assert "recurs" not in world.names()
    wait_for(lambda: is_read(world, "lends"), "its status is of what is left of it")
    known = {"newer": json.dumps(seat("newer")), "restricted": None}
    world.send("PATCH", STORE, {"data": known}, MERGE)
    operator.kustomize("old")
    left = [each["remedy"] for each in told if each["check"] == "leftovers"]
    assert left
    for remedy in left:
        _, command, _ = remedy.split("`")
        operator.run(command)
    told = json.loads(operator.run(preflight))["checks"]
    assert "1 under way, which go on: shop/away" in [each["said"] for each in told]


def is_read(world: Cluster, name: str) -> bool:
    found = world.send("GET", f"{GROUP}/namespaces/shop/reservations/{name}")
    return bool(found["status"].get("observedGeneration") == found["metadata"]["generation"])


def by_helm(operator: Operator) -> None:
    """Have Helm take over what kustomize installed, upgrade it, go back, and upgrade it again."""
    values = f"--namespace {HOME} --set moves.enabled=true --set image.tag=any"
    older = f"helm template reserver old/charts/reserver {values}"
    told = operator.run(f"{older} | reserver preflight --to 0.1.0 -f - -o json", status=1)
    for each in json.loads(told)["checks"]:
        if each["check"] == "apply" and not each["is_ok"]:
            # No controller is there that would orphan its pods, of which there are none.
            operator.run(each["remedy"].split("`")[1].replace("orphan", "background"))
    operator.run(
        f"helm install reserver old/charts/reserver {values} --take-ownership --force-conflicts"
    )
    operator.run(f"helm upgrade reserver new/charts/reserver {values}")
    operator.run(f"helm rollback reserver --namespace {HOME}")
    operator.run(f"helm upgrade reserver new/charts/reserver {values}")
    there = "helm template reserver new/charts/reserver --is-upgrade"
    preflight = f"{there} {values} | reserver preflight -f - -o json"
    told = json.loads(operator.run(preflight, status=1))["checks"]
    for each in told:  # What kustomize had made under names of its own.
        if not each["is_ok"]:
            assert each["check"] == "leftovers", each
            operator.run(each["remedy"].split("`")[1])
    operator.run(preflight)


def phase_of(world: Cluster) -> str:
    said: str = world.send("GET", f"{MOVES}/away").get("status", {}).get("phase", "")
    return said
