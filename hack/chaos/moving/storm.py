"""A full cluster whose pods move: directed moves, drains and rounds of rebalancing, all at once."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import yaml

from hack.bed.bed import Bed
from hack.chaos.faults import Faults
from hack.chaos.moving.bed import CORES
from hack.chaos.moving.hardships import Hardships
from hack.chaos.moving.people import GREEDY, NAMESPACE, People
from hack.controlplane.build import bin_dir
from hack.reserver_process import wait_for
from reserver.moves.phases import MoveMode

FULL = 0.95
REPLICAS = 8
_ROUND = 10
"""Most pods that a round of rebalancing moves."""

_ROUNDS = {
    MoveMode.RESERVE_FIRST: "reserve-first",
    MoveMode.SURGE_FIRST: "surge-first",
    MoveMode.EVICT_ONLY: "evict-only",
}
"""Values of `rebalance run --mode`."""

_TAINT = "reserver.io/old"
_TICK_S = 0.2
_LEFT_S = 30.0
"""Seconds in which ended moves and seats must be gone."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The plan of a storm.

    Attributes:
        moves: pods that are moved one by one.
        drains: nodes that are drained, one after the other.
        rounds: rounds of rebalancing.
        churn: pods that end each second, which frees room.
        timeout_s: timeout of each move and drain, in seconds.
        seconds: least seconds in which faults strike.
        seed: seed of all random numbers.
        goes_on: each pod that is moved one by one is moved again, by a following PodMove.
    """

    moves: int
    drains: int
    rounds: int
    churn: float
    timeout_s: int
    seconds: float
    seed: int
    goes_on: bool


class Storm:
    """Moves pods of a full cluster, with seats or without."""

    def __init__(self, bed: Bed, people: People, plan: Plan, mode: MoveMode) -> None:
        self._bed = bed
        self._people = people
        self._plan = plan
        self._mode = mode
        self.hardships = Hardships(bed, people, plan.timeout_s, plan.seed, mode)
        self._everybody = (people, self.hardships.others)
        self._over = threading.Event()

    def fill(self) -> None:
        """Fill the nodes with movable pods, and with pods that take all remaining room."""
        slots = len(self._bed.nodes) * CORES
        taken = int(slots * FULL)
        self.hardships.fill()
        sets = (taken - self._plan.moves - self.hardships.size) // REPLICAS
        apps = {f"web-{number}": 1 for number in range(self._plan.moves)}
        apps |= {f"set-{number}": REPLICAS for number in range(sets)}
        for name, replicas in apps.items():
            self._people.deploy(name, replicas)
        bound = partial(self._people.pods, *apps)
        wait_for(lambda: len(bound()) == sum(apps.values()), "all that is to move is bound")
        holes = slots - sum(apps.values()) - self.hardships.size
        self._people.deploy(GREEDY, 2 * holes)
        self._people.wait_bound(GREEDY, holes)

    def rage(self, faults: Faults) -> None:
        """Move pods until the plan is carried out, and all faults have struck.

        Raises:
            TimeoutError: a move has not ended, or a seat is left.
            Exception: any exception of its tasks.
        """
        tasks = [self._direct, self._drain, self._rebalance]
        if self._mode is not MoveMode.EVICT_ONLY:
            tasks += [self.hardships.root, self.hardships.close, self.hardships.pair]
        with ThreadPoolExecutor(len(tasks) + 1) as pool:
            churning = pool.submit(self._churn)
            works = [pool.submit(task) for task in tasks]
            try:
                self._strike(faults, lambda: all(work.done() for work in works))
                for work in works:
                    work.result()
                self._await_ends()
            finally:
                self._over.set()
            churning.result()

    def _await_ends(self) -> None:
        for people in self._everybody:
            # A move has its timeout once more after its pod has left.
            limit_s = 2 * self._plan.timeout_s + _LEFT_S
            wait_for(people.moves_have_ended, "all moves end", limit_s)
            wait_for(people.have_no_seats, "no seat is left", _LEFT_S)

    def _strike(self, faults: Faults, is_done: Callable[[], bool]) -> None:
        began = time.monotonic()
        while not (is_done() and faults.are_over):
            elapsed = time.monotonic() - began
            faults.mend()
            if faults.next_due(elapsed):
                faults.strike(elapsed)
            else:
                self._over.wait(_TICK_S)

    def _churn(self) -> None:
        """Free room on all nodes, as pods end: the pending greedy pods compete for each piece."""
        rng = random.Random(self._plan.seed)  # noqa: S311 - repeatable
        while not self._over.wait(1 / self._plan.churn):
            with suppress(*People.FAULTS):
                bound = self._people.pods(GREEDY)
                if bound:
                    name = rng.choice(bound).metadata.name
                    self._people.core.delete_namespaced_pod(name, NAMESPACE, grace_period_seconds=0)

    def _direct(self) -> None:
        """Move pods one by one, without waiting for the end of a move."""
        timeout = f"{self._plan.timeout_s}s"
        for number in range(self._plan.moves):
            for pod in self._people.insist(partial(self._people.pods, f"web-{number}")):
                terms = {"mode": self._mode, "timeout": timeout}
                move = partial(self._people.move, pod.metadata.name, **terms)
                first = self._people.insist(move)
                if self._plan.goes_on:
                    self._people.insist(partial(move, after=first))

    def _drain(self) -> None:
        """Drain nodes, and uncordon each."""
        rng = random.Random(self._plan.seed + 1)  # noqa: S311 - repeatable
        for node in rng.sample(self._bed.nodes, self._plan.drains):
            timeout = f"--timeout={self._plan.timeout_s}s"
            if self._mode is MoveMode.EVICT_ONLY:
                self._run(bin_dir() / "kubectl", "drain", node, timeout)
            else:
                surge = ["--surge"] if self._mode is MoveMode.SURGE_FIRST else []
                self._reserver("drain", node, timeout, "--wait-for-room", *surge)
            self._people.insist(partial(self._change, node, {"unschedulable": False}))

    def _rebalance(self) -> None:
        """Run rounds that move pods off tainted nodes, and remove the taints afterwards."""
        rng = random.Random(self._plan.seed + 2)  # noqa: S311 - repeatable
        policy = self._bed.plane.folder / "policy.yaml"
        policy.write_text(yaml.safe_dump(_avoiding()))
        for _ in range(self._plan.rounds):
            nodes = rng.sample(self._bed.nodes, 2 * _ROUND // CORES)
            taint = {"key": _TAINT, "effect": "PreferNoSchedule"}
            for node in nodes:
                self._people.insist(partial(self._change, node, {"taints": [taint]}))
            mode = f"--mode={_ROUNDS[self._mode]}"
            flags = ("--compat=upstream", f"--policy-config-file={policy}", "--without-holds")
            self._reserver("rebalance", "run", mode, *flags)
            for node in nodes:
                self._people.insist(partial(self._change, node, {"taints": None}))

    def _change(self, node: str, spec: dict[str, object]) -> None:
        self._people.core.patch_node(node, {"spec": spec})

    def _reserver(self, *words: str) -> None:
        self._run(sys.executable, "-m", "reserver", *words)

    def _run(self, *words: str | Path) -> None:
        """Run a command as the administrator; its effect is checked, not its exit status."""
        command = [*words, f"--kubeconfig={self._bed.kubeconfig}"]
        with (self._bed.folder / "commands.log").open("ab") as log:
            log.write(f"{' '.join(map(str, words))}\n".encode())
            log.flush()
            subprocess.run(command, stdout=log, stderr=log, check=False)


def _avoiding() -> dict[str, object]:
    """Return a policy that moves some pods off nodes with a PreferNoSchedule taint."""
    name = "RemovePodsViolatingNodeTaints"
    args = {"includePreferNoSchedule": True}
    profile = {
        "name": "moving",
        "pluginConfig": [{"name": "DefaultEvictor", "args": {}}, {"name": name, "args": args}],
        "plugins": {"deschedule": {"enabled": [name]}},
    }
    return {
        "apiVersion": "descheduler/v1alpha2",
        "kind": "DeschedulerPolicy",
        "maxNoOfPodsToEvictTotal": _ROUND,
        "profiles": [profile],
    }
