"""A plan by nine strategies with nodeFit, from a dump of a large cluster.

`python -m hack.bench.rebalancing NODES PODS FILE` writes such a dump, one object on each line.
"""

import gc
import random
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeVar

from hack.bed.pace import slowness
from hack.bench.documents import encode, node_document, node_name, running_pod
from hack.bench.report import TooSlow, progress, table
from hack.bench.scale import Scale
from hack.programs import memory
from reserver.rebalance import planner, upstream
from reserver.rebalance.arguments.evictor import DefaultEvictor
from reserver.rebalance.arguments.placement import (
    NodeAffinityType,
    RemoveDuplicates,
    RemovePodsViolatingInterPodAntiAffinity,
    RemovePodsViolatingNodeAffinity,
    RemovePodsViolatingNodeTaints,
    RemovePodsViolatingTopologySpreadConstraint,
)
from reserver.rebalance.arguments.recycling import (
    PodLifeTime,
    RemoveFailedPods,
    RemovePodsHavingTooManyRestarts,
)
from reserver.rebalance.arguments.utilization import LowNodeUtilization
from reserver.rebalance.dump import read_lines
from reserver.rebalance.policy import Arguments, DeschedulerPolicy, Profile
from reserver.rebalance.round_input import RoundInput

NOW = 1.9e9
MOST_CPU_S = 10.0
"""Seconds of an idle core for reading a dump and deciding on it by default."""

T = TypeVar("T")

_REPLICAS = 30
_NAMESPACES = 100
_ZONE, _HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
_CPUS = ("50m", "100m", "250m", "500m", "900m", "2")
_MEMORIES = ("128Mi", "512Mi", "1Gi", "2Gi", "4Gi", "8Gi")

DESCHEDULE: tuple[Arguments, ...] = (
    RemoveFailedPods(),
    RemovePodsHavingTooManyRestarts(pod_restart_threshold=100),
    PodLifeTime(max_pod_life_time_seconds=30 * 86_400, states=frozenset({"CrashLoopBackOff"})),
    RemovePodsViolatingNodeTaints(),
    RemovePodsViolatingNodeAffinity(node_affinity_type=tuple(NodeAffinityType)),
    RemovePodsViolatingInterPodAntiAffinity(),
)
BALANCE: tuple[Arguments, ...] = (
    RemoveDuplicates(),
    RemovePodsViolatingTopologySpreadConstraint(
        constraints=frozenset({"DoNotSchedule", "ScheduleAnyway"})
    ),
    LowNodeUtilization(
        thresholds={"cpu": 20, "memory": 20, "pods": 20},
        target_thresholds={"cpu": 50, "memory": 50, "pods": 50},
    ),
)
POLICY = DeschedulerPolicy(
    profiles=(
        Profile(
            name="bench",
            evictor=DefaultEvictor(node_fit=True),
            deschedule=DESCHEDULE,
            balance=BALANCE,
        ),
    )
)


def dump(nodes: int, pods: int) -> Iterator[bytes]:
    """Yield the objects of a cluster with work for each strategy, each as a line of JSON."""
    chance = random.Random(nodes)  # noqa: S311 - not a secret
    for index in range(nodes):
        yield encode(_node(index, chance))
    owner: dict[str, Any] = {}
    for index in range(pods):
        if index % _REPLICAS == 0:
            owner = _owner(index // _REPLICAS, chance)
        yield encode(_pod(index, nodes, owner, chance))


def _node(index: int, chance: random.Random) -> dict[str, Any]:
    document = node_document(index)
    labels = {_ZONE: f"zone-{index % 3}", _HOST: node_name(index), "pool": f"pool-{index % 4}"}
    document["metadata"]["labels"] |= labels
    if chance.random() < 0.02:  # noqa: PLR2004 - a probability
        document["spec"]["taints"] = [{"key": "maintenance", "effect": "NoSchedule"}]
    document["spec"]["unschedulable"] = chance.random() < 0.01  # noqa: PLR2004 - as above
    return {"kind": "Node", **document}


def _node_affinity(chance: random.Random) -> dict[str, Any]:
    """Return a node affinity to one or two pools, required or preferred."""
    pools = [f"pool-{chance.randrange(4)}" for _ in range(2)]
    term = {"matchExpressions": [{"key": "pool", "operator": "In", "values": pools}]}
    required = {"nodeSelectorTerms": [term]}
    preferred = [{"weight": 10, "preference": term}]
    return chance.choice(
        (
            {"requiredDuringSchedulingIgnoredDuringExecution": required},
            {"preferredDuringSchedulingIgnoredDuringExecution": preferred},
        )
    )


def _owner(number: int, chance: random.Random) -> dict[str, Any]:
    """Return the values that the pods of one ReplicaSet share."""
    labels = {"app": f"app-{number}", "pod-template-hash": f"{number:010x}"}
    selector = {"matchLabels": {"app": labels["app"]}}
    spec: dict[str, Any] = {"affinity": {}}
    if chance.random() < 0.25:  # noqa: PLR2004 - as above
        key = chance.choice((_ZONE, _ZONE, _HOST))
        when = chance.choice(("DoNotSchedule", "ScheduleAnyway"))
        spec["topologySpreadConstraints"] = [
            {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": when, "labelSelector": selector}
        ]
    if chance.random() < 0.1:  # noqa: PLR2004 - as above
        term = {"topologyKey": _HOST, "labelSelector": selector}
        spec["affinity"]["podAntiAffinity"] = {
            "requiredDuringSchedulingIgnoredDuringExecution": [term]
        }
    if chance.random() < 0.2:  # noqa: PLR2004 - as above
        spec["affinity"]["nodeAffinity"] = _node_affinity(chance)
    return {
        "name": f"app-{number}-{number:010x}",
        "namespace": f"team-{number % _NAMESPACES}",
        "labels": labels,
        "image": f"registry.example/team/app-{number}:1",
        "requests": {"cpu": chance.choice(_CPUS), "memory": chance.choice(_MEMORIES)},
        "priority": chance.choice((0, 0, 0, 1000, 100_000)),
        "spec": spec,
    }


def _pod(index: int, nodes: int, owner: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    document = running_pod(index, nodes)
    metadata, spec, status = document["metadata"], document["spec"], document["status"]
    metadata |= {
        "name": f"{owner['name']}-{index:05x}",
        "namespace": owner["namespace"],
        "labels": owner["labels"],
    }
    metadata["ownerReferences"][0] |= {"name": owner["name"], "uid": f"uid-{owner['name']}"}
    # Some nodes are much fuller than other nodes.
    on = int(nodes * chance.random() ** 1.3)
    spec |= {"nodeName": node_name(on), "priority": owner["priority"], **owner["spec"]}
    spec["containers"][0] |= {
        "image": owner["image"],
        "resources": {"requests": owner["requests"]},
    }
    state = status["containerStatuses"][0]
    state["restartCount"] = int(chance.paretovariate(1)) - 1
    luck = chance.random()
    if luck < 0.005:  # noqa: PLR2004 - as above
        status |= {"phase": "Failed", "reason": "Evicted"}
    elif luck < 0.01:  # noqa: PLR2004 - as above
        state["state"] = {"waiting": {"reason": "CrashLoopBackOff"}}
    return {"kind": "Pod", **document}


def measure(scale: Scale) -> Iterator[str]:
    """Yield the table of a cycle, decided in both modes.

    Raises:
        TooSlow: reading and deciding take more than `MOST_CPU_S`.
    """
    nodes, pods = scale.nodes, scale.started_pods
    progress(f"plans for {nodes:,} nodes and {pods:,} pods")
    rows = []
    with TemporaryDirectory() as folder:
        file = Path(folder) / "dump"
        with file.open("wb") as out:
            out.writelines(line + b"\n" for line in dump(nodes, pods))
        gc.disable()
        with file.open("rb", 2**20) as lines:
            inventory, reading = _timed(lambda: read_lines(lines).inventory)
        rows.append(("reading the dump", str(reading)))
    for name, decide in (("--compat upstream", upstream.decide), ("--compat plan", planner.decide)):
        look = RoundInput(policy=POLICY, cluster=inventory, loads={}, rounds={}, now=NOW)
        decision, took = _timed(partial(decide, look))
        rows.append((f"{name}: {len(decision.plan.moves):,} moves", str(took)))
    gc.enable()
    rows.append(("peak memory", f"{memory('self') / 2**20:,.0f} MiB"))
    title = f"A plan for {nodes:,} nodes and {pods:,} pods, nine strategies, with nodeFit"
    yield table(title, ("what", "took"), rows)
    spent, slow = reading.cpu_s + took.cpu_s, slowness()
    if spent > MOST_CPU_S * slow:
        promised = (
            f"{MOST_CPU_S:.0f} s of an idle core are promised, which is {slow:.1f} times as fast"
        )
        problem = f"reading and planning take {spent:.1f} s of CPU, {promised}"
        raise TooSlow(f"{title}: {problem}")


class _Took(NamedTuple):
    """Duration and CPU time, in seconds."""

    clock_s: float
    cpu_s: float

    def __str__(self) -> str:
        return f"{self.clock_s:.1f} s ({self.cpu_s:.1f} s of CPU)"


def _timed(do: Callable[[], T]) -> tuple[T, _Took]:
    """Return the result of a function, and its duration."""
    began, used = time.perf_counter(), time.process_time()
    done = do()
    return done, _Took(time.perf_counter() - began, time.process_time() - used)


if __name__ == "__main__":
    _, _nodes, _pods, _file = sys.argv
    with Path(_file).open("wb") as _out:
        _out.writelines(line + b"\n" for line in dump(int(_nodes), int(_pods)))
