"""An upgrade from the first version, and the way back: no hold is lost.

As in `test_kept`, nobody schedules here.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hack.controlplane.cluster import ControlPlane
from hack.reserver_process import ReserverProcess, wait_for
from tests.e2e.apart.test_kept import (
    HELD,
    HOME,
    MERGE,
    ROOT,
    STRANGER,
    Cluster,
    bind,
    companion,
    old_version,
    passed,
    seat,
)
from tests.e2e.apart.versions import Operator, serving
from tests.pages import section

pytestmark = [pytest.mark.controlplane, pytest.mark.timeout(300)]

PREFLIGHT, PREFLIGHT_OF_CHART, SAVE = section("docs/upgrade.md", "Before")
(PREFLIGHT_BACK,) = section("docs/upgrade.md", "Rollback")
CRD = ("--crd",)
STORE = f"/api/v1/namespaces/{HOME}/configmaps/reservations"


def many(number: int) -> list[str]:
    return [f"web-{index}" for index in range(number)]


def placed(label: str) -> dict[str, Any]:
    spec = seat("", "owner-placed", placement={"nodeSelector": {"only": label}})
    del spec["node"]
    return spec


OBJECTS: dict[str, tuple[str, dict[str, Any]]] = {
    "big": ("shop", seat("big")),
    "forever": ("shop", seat("forever", ttl="0")),
    "long": ("shop", seat("long", ttl="9000h")),
    "owners-150": ("shop", seat("owners-150", *many(150))),
    "owners-2000": (HOME, seat("owners-2000", *many(2000))),
    "slots": ("shop", seat("slots", resources={"cpu": "10m"}, slots=1200)),
    "placed": ("shop", placed("placed")),
    "reusable": ("shop", seat("reusable", reusable=True, policy="Require")),
    "preemptible": ("shop", seat("preemptible", preemptible=True)),
    "claimed": (
        "shop",
        seat("claimed", "first", "second", slots=2, resources={"cpu": "6"}) | {"ttl": "0"},
    ),
}
"""Objects by their node, with their namespace: most exceed a limit of today."""

HALVES = {"owners": [{"pod": {"name": "web"}}], "ttl": "2h"}
ENTRIES: dict[str, str] = {
    "json": json.dumps({**HALVES, "node": "json", "resources": {"cpu": HELD}}),
    "yaml": f"owners: [{{pod: {{name: web}}}}]\nnode: yaml\nresources: {{cpu: {HELD}}}\nttl: 2h\n",
    "listed": json.dumps([{"pod": "web", "namespace": "shop", "cpu": 12000, "mem": 1024,
                           "expire": "2099-01-01T00:00:00Z"}]),
    "millis": json.dumps([{"reservingPod": "web", "reservingPodNamespace": "shop",
                           "cpuMilli": 12000, "memMilli": 1024, "expireAt": 4070908800}]),
    "owners-1500": json.dumps(seat("owners-1500", *many(1500))),
}  # fmt: skip
"""Entries of a ConfigMap in all forms, by their node."""


NEWER: dict[str, dict[str, Any]] = {
    "lends": seat("lends", lend={"belowPriority": 0}),
    "recurs": {**seat("recurs"), "schedule": {"cron": "0 3 * * *", "duration": "1h"}},
    "whole": {"owners": [{"pod": {"name": "web"}}], "nodes": {"count": 1, "selector": {"a": "b"}}},
    "refills": {**placed("refills"), "refill": True},
}
"""Reservations with fields that the first version does not have."""

del NEWER["recurs"]["ttl"]
CONSUMED = {"claimed", "owners-150"}
"""The reservations that pods claim completely with the new version."""


def begin(world: Cluster, reserver: ReserverProcess) -> None:
    """Reserve in both stores, and claim one of two slots."""
    for name, (namespace, spec) in OBJECTS.items():
        world.reserve(name, spec, namespace)
    world.send("PATCH", STORE, {"data": ENTRIES}, MERGE)
    for name in OBJECTS:
        wait_for(lambda name=name: is_active(world, name), f"{name} is in force")  # type: ignore[misc]
    wait_for(
        lambda: all('"Active"' in companion(world).get(name, "") for name in ENTRIES),
        "the entries are in force",
    )
    assert bind(reserver, world.add_pod("first", "6"), "claimed") == ""
    wait_for(lambda: world.status("claimed").get("claimed") == 1, "the claim is told")


def is_active(world: Cluster, name: str) -> bool:
    return world.status(name, OBJECTS[name][0]).get("phase") == "Active"


def see_what_exceeds(world: Cluster, reserver: ReserverProcess) -> None:
    """Check that admitted reservations name the present limit that they exceed."""
    for name in ("big", "forever", "long", "owners-150", "owners-2000", "slots", "claimed"):
        wait_for(
            lambda name=name: within_limits(world, name) == "False",  # type: ignore[misc]
            f"{name} says what it exceeds",
        )
    wait_for(lambda: "exceeds" in companion(world)["owners-1500"], "so does an entry")
    exceeding = 'reserver_reservations_exceeding{reason="ExceedsBounds"}'
    wait_for(lambda: reserver.metric(exceeding) == 4, "all are counted")
    wait_for(lambda: all(is_active(world, name) for name in OBJECTS), "all are in force")


def do_what_is_said(operator: Operator, preflight: str) -> list[dict[str, Any]]:
    """Run the command of each finding before the files are applied; return all findings."""
    told: list[dict[str, Any]] = json.loads(operator.run(f"{preflight} -o json", status=1))[
        "checks"
    ]
    for each in told:
        remedy = "" if each["is_ok"] or each["check"] == "leftovers" else each["remedy"]
        if "`" in remedy and " edit " not in remedy:
            # No controller is there that would orphan its pods, of which there are none.
            operator.run(remedy.split("`")[1].replace("orphan", "background"))
    return told


def remove_leftovers(operator: Operator, told: list[dict[str, Any]]) -> None:
    for each in told:
        if each["check"] == "leftovers":
            operator.run(each["remedy"].split("`")[1])


def add_nodes(world: Cluster, *names: str) -> None:
    for name in names:
        world.add_node(name)
        if name in {"placed", "refills"}:
            patch = {"metadata": {"labels": {"only": name}}}
            world.send("PATCH", f"/api/v1/nodes/{name}", patch, MERGE)


def reserve_newer(world: Cluster) -> None:
    """Create reservations with fields that the first version lacks; return once they hold."""
    for name, spec in NEWER.items():
        world.reserve(name, with_namespace(spec), HOME)
    for name in ("lends", "refills"):
        wait_for(
            lambda name=name: world.status(name, HOME).get("phase") == "Active",  # type: ignore[misc]
            f"{name} holds",
        )


def test_an_upgrade_from_the_first_version_and_the_way_back_lose_no_hold(tmp_path: Path) -> None:
    program = old_version(tmp_path / "old")
    for name in ("scheduler-config", "charts"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "values.yaml").write_text("{}\n")
    for folder in (tmp_path, tmp_path / "old"):
        (folder / "kustomization.yaml").write_text("resources: [scheduler-config/base]\n")
    nodes = [*OBJECTS, *ENTRIES]
    with ControlPlane(controller_manager=False) as plane:
        world, operator = Cluster(plane), Operator(plane, tmp_path)
        operator.run("kubectl apply -k old")
        wait_for(world.serves, "the CRD is served")
        world.send("POST", "/api/v1/namespaces", {"metadata": {"name": "shop"}})
        add_nodes(world, *nodes, *NEWER, "free")
        with serving(world, tmp_path / "old.log", (), program, CRD) as reserver:
            begin(world, reserver)
            stranger = world.add_pod("stranger", STRANGER)
            assert passed(reserver, stranger, *nodes, "free") == {"free"}
        operator.run(SAVE)

        operator.run(PREFLIGHT_OF_CHART, status=1)
        do_what_is_said(operator, PREFLIGHT)
        operator.run("kubectl apply -k .")
        held = [name for name in nodes if name not in CONSUMED]
        # Tenants hold more than that already.
        ceiling = ("--tenant-ceiling-cluster=5%",)
        with serving(world, tmp_path / "new.log", held, flags=ceiling) as reserver:
            see_what_exceeds(world, reserver)
            assert "held by" in bind(reserver, stranger, "claimed")
            assert bind(reserver, world.add_pod("second", "6"), "claimed") == ""
            assert bind(reserver, world.add_pod("web-149", HELD), "owners-150") == ""
            assert bind(reserver, stranger, "free") == ""
            reserve_newer(world)
            back_to_the_old_files(world, operator)
        held += ["lends", "refills"]
        with serving(world, tmp_path / "back.log", held, program, CRD):
            pass


def with_namespace(spec: dict[str, Any]) -> dict[str, Any]:
    """Return a spec for Reserver's own namespace: its owner is a pod of another one."""
    return {**spec, "owners": [{"pod": {"name": "web", "namespace": "shop"}}]}


def back_to_the_old_files(world: Cluster, operator: Operator) -> None:
    """Do what `preflight` says is to be done before, and after, the old files are applied."""
    told = do_what_is_said(operator, PREFLIGHT_BACK)
    assert world.names() >= {"lends", "refills"}
    assert not world.names() & {"recurs", "whole"}
    operator.run("kubectl apply -k old")
    remove_leftovers(operator, told)


def within_limits(world: Cluster, name: str) -> str:
    """Return the status of the condition WithinLimits; empty where it is not said."""
    conditions = world.status(name, OBJECTS[name][0]).get("conditions", ())
    return "".join(each["status"] for each in conditions if each["type"] == "WithinLimits")
