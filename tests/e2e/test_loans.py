"""Lent room comes back, and claimed slots of a refill are replaced, also by a new leader."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.bed.bed import scheduling
from hack.bed.replicas import Replicas
from hack.controlplane.cluster import ControlPlane
from hack.promises.check import Rules, judge, read_history
from hack.promises.record import Recorder
from hack.promises.report import Report
from hack.reserver_process import ReserverProcess, wait_for
from tests.e2e.cluster import Corner
from tests.e2e.conftest import account, grant
from tests.e2e.forms import SPEC
from tests.e2e.test_placement import parts, wait_placed, write
from tests.e2e.test_status import status
from tests.rights.audit import LENDER, LENDING, RESERVER

pytestmark = pytest.mark.controlplane

SCHEDULER = "over-loans"
LENT = [{"key": "reserver.io/lent", "operator": "Exists"}]
LEAST = timedelta(seconds=20)
"""So long it takes at least until an occurrence starts."""


@pytest.fixture(scope="module")
def leaders(
    reserver: ReserverProcess,
    kubeconfig: Path,
    control_plane: ControlPlane,
    api: Any,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Replicas]:
    """A leader and its standby that lend, and a kube-scheduler that asks whichever leads.

    No other Reserver runs, which might replace a slot before the leader has read of it.
    """
    folder = tmp_path_factory.mktemp("loans")
    lender = account(api, kubeconfig, "lender", folder / "kubeconfig", LENDING)
    policy = (LENDING.parent / "policy.yaml").read_text().replace(f"'{RESERVER}'", f"'{LENDER}'")
    grant(api, *yaml.safe_load_all(policy))
    with (
        reserver.down(),
        Replicas(lender, folder, 2, flags=["--lending"]) as replicas,
        scheduling(control_plane, replicas.port, SCHEDULER),
    ):
        yield replicas


@pytest.fixture
def room(corner: Corner) -> Corner:
    corner.scheduler = SCHEDULER
    return corner


def phase(room: Corner, key: str) -> str:
    return str((status(room, SPEC, key) or {}).get("phase"))


def judged(folder: Path, leaders: Replicas) -> Report:
    rules = Rules(
        schedulers=frozenset({SCHEDULER}),
        ends=tuple(leaders.ends),
        pauses=tuple(leaders.pauses),
    )
    return judge(read_history(folder), rules)


def coming() -> dict[str, str]:
    """Return a schedule whose next occurrence starts soon, without a lead."""
    start = datetime.now(UTC) + LEAST + timedelta(minutes=1)
    return {"cron": f"{start.minute} * * * *", "duration": "10m"}


def reserve(room: Corner, name: str, node: str, **more: Any) -> str:
    """Write an entry of 2 CPUs on a node for the pod of its name."""
    owner = {"pod": {"name": name, "namespace": room.name}}
    spec = {"owners": [owner], "node": node, "resources": {"cpu": "2"}, "ttl": 0, **more}
    room.patch_store(SPEC.store, {f"{room.name}.{name}": json.dumps(spec)})
    return f"{room.name}.{name}"


def test_borrowers_go_for_owners_and_for_what_starts_while_leaders_die(
    room: Corner, leaders: Replicas, kubeconfig: Path, tmp_path: Path
) -> None:
    (node,) = room.add_nodes(1, cpu="4")
    with Recorder(kubeconfig, tmp_path, objects=True):
        lender = reserve(room, "lord", node, lend={"belowPriority": 100})
        wait_for(lambda: phase(room, lender) == "Active", "it lends")
        nightly = reserve(room, "nightly", node, schedule=coming())
        room.create_pod("guest", {"cpu": "3"}, tolerations=LENT)
        assert room.wait_bound("guest") == node
        leaders.kill_in_turn(0, is_leader=True)
        # Nobody has come yet: it goes because another hold is to start.
        wait_for(lambda: "guest" not in room.pod_names(), "the borrower has gone")
        wait_for(lambda: room.events("Recalled"), "the event is there")
        wait_for(lambda: phase(room, nightly) == "Active", "the occurrence holds")
        room.create_pod("nightly", {"cpu": "2"})
        assert room.wait_bound("nightly") == node
        room.create_pod("guest-2", {"cpu": "2"}, tolerations=LENT)
        assert room.wait_bound("guest-2") == node
        room.create_pod("stranger", {"cpu": "1"})
        room.wait_refused("stranger")
        dies = threading.Thread(target=leaders.kill_in_turn, args=(0,), kwargs={"is_leader": True})
        dies.start()
        room.create_pod("lord", {"cpu": "2"})
        assert room.wait_bound("lord") == node
        dies.join()
        assert "guest-2" not in room.pod_names()
        assert room.node_of("stranger") is None
    report = judged(tmp_path, leaders)
    assert report.violations == ()
    assert report.counts["owners"]


def test_a_claimed_slot_is_replaced_once_by_whoever_leads(
    room: Corner, leaders: Replicas, kubeconfig: Path, tmp_path: Path
) -> None:
    first, second, third = sorted(room.add_nodes(3, cpu="4"))
    owners = [{"selector": {"matchLabels": {"app": "web"}, "namespace": room.name}}]
    with Recorder(kubeconfig, tmp_path, objects=True):
        key = write(room, SPEC, "web", owners=owners, resources={"cpu": "3"}, refill=True)
        taken = wait_placed(room, SPEC, key)
        dies = threading.Thread(target=leaders.kill_in_turn, args=(0,), kwargs={"is_leader": True})
        room.create_pod("web-1", {"cpu": "3"}, labels={"app": "web"})
        assert room.wait_bound("web-1") == taken
        dies.start()
        wait_for(lambda: len(parts(room, SPEC, key)) == 2, "the claimed slot is replaced")
        room.create_pod("web-2", {"cpu": "3"}, labels={"app": "web"})
        room.wait_bound("web-2")
        dies.join()
        wait_for(lambda: set(parts(room, SPEC, key)) == {first, second, third}, "all is placed")
        assert set(parts(room, SPEC, key).values()) == {1}
        room.create_pod("stranger", {"cpu": "2"})
        room.wait_refused("stranger", "held by reservation")
        room.create_pod("web-3", {"cpu": "3"}, labels={"app": "web"})
        room.wait_bound("web-3")
        assert {room.node_of(f"web-{n}") for n in (1, 2, 3)} == {first, second, third}
    report = judged(tmp_path, leaders)
    assert report.violations == ()
    assert report.counts["owners"]
