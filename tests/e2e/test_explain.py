"""The reason why a pod has no node: on the command line, and in events."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial

import pytest

from hack.reserver_process import ReserverProcess, wait_for
from tests.e2e.cluster import Corner
from tests.e2e.forms import SPEC


def _explain(reserver: ReserverProcess, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "reserver",
        "explain",
        "pod",
        "--address",
        reserver.grpc_address,
    ]
    return subprocess.run(
        [*command, *arguments], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.controlplane
def test_a_pod_that_a_hold_keeps_is_explained(corner: Corner, reserver: ReserverProcess) -> None:
    (node,) = corner.add_nodes(1, cpu="4")
    key = corner.reserve(SPEC, node, "never-comes", expires_in=7_000, cpu="4")
    corner.wait_held(node)
    corner.create_pod("stranger", {"cpu": "2"})
    corner.wait_refused("stranger", "held by reservation")
    name = f"{corner.name}/stranger"
    table = _explain(reserver, name)
    assert table.returncode == 0
    assert "held by reservations" in table.stdout
    (line,) = [line for line in table.stdout.splitlines() if key in line]
    assert node in line
    assert "1h" in line
    told = json.loads(_explain(reserver, name, "-o", "json").stdout)
    assert told["pod"] == name
    assert f"reserver-system/e2e/{key}" in {hold["reservation"] for hold in told["inTheWay"]}
    ghost = _explain(reserver, f"{corner.name}/ghost")
    assert (ghost.returncode, ghost.stdout) == (1, "")
    assert f"there is no pod {corner.name}/ghost" in ghost.stderr


def test_a_pod_that_only_reservations_keep_is_told_so_once(corner: Corner) -> None:
    (node,) = corner.add_nodes(1, cpu="4")
    key = corner.reserve(SPEC, node, "never-comes", cpu="4")
    corner.wait_held(node)
    corner.create_pod("stranger", {"cpu": "2"})

    def own() -> list[str]:
        events = corner.api.list_namespaced_event(corner.name).items
        held = (event for event in events if event.reason == "HeldByReservations")
        return [each.message for each in held if each.involved_object.name == "stranger"]

    wait_for(own, "an event tells why")
    for number in range(3):  # Each has kube-scheduler try it again.
        corner.create_pod(f"passer-by-{number}", {"cpu": "1"})
        corner.wait_refused(f"passer-by-{number}", "held by reservation")
    assert own() == [f"1 node has room for it that is held for others by reserver-system/e2e/{key}"]


def test_an_owner_whose_seat_is_tainted_lands_elsewhere_and_is_told_of_it(
    corner: Corner,
) -> None:
    seat, other = corner.add_nodes(2, cpu="4")
    corner.reserve(SPEC, seat, "owner", cpu="2")
    corner.wait_held(seat)
    corner.create_pod("owner", {"cpu": "2"}, nodeSelector=corner.taint(seat, other))
    assert corner.wait_bound("owner") == other
    (message,) = wait_for(partial(corner.events, "SeatRefused"), "an event tells of the seat")
    assert f"refuses its seat on {seat}" in message
    assert "untolerated taint" in message
