"""A real cluster compared with its optimum, which CP-SAT has proved.

`data/reset_vm_pm_id_clear2.json.gz` is `data/reset_vm_pm_id_clear2.json` of
github.com/bytedance/DRL-based-VM-Rescheduling at a1232df (Apache-2.0): 236 machines with two NUMA
nodes each, 1,934 virtual machines, and no free slot of 16 cores. A NUMA node is a node here, and a
virtual machine on one NUMA node a pod that may move.
"""

from __future__ import annotations

import gzip
import json
import time
from pathlib import Path

import pytest

from reserver.cluster.node import Node
from reserver.cluster.pod import Pod
from reserver.rebalance.makeroom import make_room
from reserver.rebalance.policy import EvictionLimits
from reserver.rebalance.time_limit import TimeLimit
from tests.builders import node, pod
from tests.unit.rebalance.scenes import assert_feasible, scene

pytestmark = pytest.mark.long

SNAPSHOT = Path(__file__).parent / "data/reset_vm_pm_id_clear2.json.gz"
SECONDS = 120.0
"""Ends earlier, with a proof: within a second on a quiet core."""

WANTED = 40


def cluster() -> tuple[list[Node | Pod], list[Pod]]:
    """Return NUMA nodes with their machines, and pending machines of 16 cores."""
    given = json.loads(gzip.decompress(SNAPSHOT.read_bytes()))["cluster_list"][0]
    room = {
        f"{host['node_id']}-{each['node']}": [each["free_cpu"], each["memory_huge_free_mb"]]
        for host in given["host_info"]
        for each in host["numa"]
    }
    pods = []
    for at, machine in enumerate(given["vm_instance"]):
        if machine["allow_migration"] and len(machine["numa"]) == 1:
            numa = machine["numa"][0]
            home, cpu, memory = f"{machine['host_id']}-{numa['node']}", numa["cpu"], numa["mem_mb"]
            room[home] = [room[home][0] + cpu, room[home][1] + memory]
            pods.append(pod(f"vm{at:04}", node=home, cpu=str(cpu), memory=f"{memory}Mi"))
    nodes = [node(name, cpu=str(cpu), memory=f"{memory}Mi") for name, (cpu, memory) in room.items()]
    wanted = [pod(f"slot{at:02}", cpu="16", memory="32768Mi") for at in range(WANTED)]
    return [*nodes, *pods], wanted


@pytest.mark.parametrize(("most_moves", "optimum"), [(25, 20), (50, 32)])
def test_as_many_slots_as_the_optimum_within_so_many_moves(most_moves: int, optimum: int) -> None:
    things, wanted = cluster()
    limits = EvictionLimits(total=most_moves)
    plan = make_room(
        scene(*things, wanted=wanted, limits=limits), limit=TimeLimit.after(SECONDS, time.monotonic)
    )
    assert_feasible(plan, *things, wanted=wanted)
    assert len(plan.landings) == optimum
    assert len(plan.moves) <= most_moves
