"""The workloads of upstream that are run, and their results."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import yaml

_THROUGHPUT, _DURATION = "SchedulingThroughput", "SchedulingDuration"


@dataclass(frozen=True)
class Workload:
    """A workload of upstream.

    Attributes:
        topic: its folder below test/integration/scheduler_perf.
        case: the test case.
        name: name of the workload in the case.
        pods: measured pods, if upstream reports no throughput, as for workloads of less than a
            second; else 0.
    """

    topic: str
    case: str
    name: str
    pods: int = 0

    @property
    def title(self) -> str:
        """Its name in upstream's output."""
        return f"{self.case}/{self.name}"


# Of each case the smallest workload that takes seconds.
WORKLOADS = (
    Workload("misc", "SchedulingBasic", "500Nodes"),
    Workload("affinity", "SchedulingPodAffinity", "500Nodes"),
    Workload("topology_spreading", "TopologySpreading", "500Nodes"),
    Workload("default_preemption", "PreemptionBasic", "1000Nodes"),
    Workload("default_preemption", "Unschedulable", "500Nodes/10Init/1kPods"),
    Workload("starvation", "StarvationIndependent", "10Nodes_100Cloggers", pods=50),
)

# With 5,000 nodes. The next smaller ones of pod groups are done within a second.
LONG = (
    Workload("misc", "SchedulingBasic", "5000Nodes"),
    Workload("affinity", "SchedulingPodAffinity", "5000Nodes"),
    Workload("topology_spreading", "TopologySpreading", "5000Nodes"),
    Workload("default_preemption", "Unschedulable", "5kNodes/100Init/1kPods"),
    Workload("podgroup/basicscheduling", "BasicScheduling", "5000Nodes_1000Groups_3000Pods"),
    Workload("podgroup/gangscheduling", "GangScheduling", "5000Nodes_1000Gangs_3000Pods"),
    Workload("podgroup/tas", "TopologyAwareScheduling", "5000Nodes_750Gangs_3000Pods"),
)

# With upstream's thresholds, for its machines: kube-scheduler alone misses them on two cores.
WITH_THRESHOLDS = (
    Workload("misc", "SchedulingBasic", "5000Nodes_10000Pods"),
    Workload("affinity", "SchedulingPodAffinity", "5000Nodes_5000Pods"),
    Workload("topology_spreading", "TopologySpreading", "5000Nodes_5000Pods"),
    Workload("default_preemption", "Unschedulable", "5kNodes/100Init/10kPods"),
)


def with_scheduler(cases: str, config: str) -> str:
    """Return upstream's test cases with a KubeSchedulerConfiguration in each.

    A case with its own configuration keeps it: that is the subject of its measurement.
    """
    return yaml.safe_dump(
        [{"schedulerConfigPath": config, **case} for case in yaml.safe_load(cases)],
        sort_keys=False,
    )


@dataclass(frozen=True)
class Rate:
    """The result of one run of a workload.

    Attributes:
        pods: pods a second.
        threshold: upstream's threshold for its own machines, in pods a second; 0 for none.
    """

    pods: float
    threshold: float = 0

    @property
    def is_too_low(self) -> bool:
        """Whether upstream's program fails because of its threshold."""
        return bool(self.threshold) and self.pods <= self.threshold


def throughput(items: str, pods: int = 0) -> Rate:
    """Return the rate of one run, or `pods` over its whole duration.

    Raises:
        ValueError: the run reported no throughput.
    """
    found = {
        item["labels"]["Metric"]: item["data"]
        for item in json.loads(items)["dataItems"]
        if item["labels"]["Metric"] in (_THROUGHPUT, _DURATION)
    }
    if pods and _DURATION in found:
        return Rate(pods / float(found[_DURATION]["Duration"]))
    if _THROUGHPUT not in found:
        raise ValueError(f"no {_THROUGHPUT} among the items")
    data = found[_THROUGHPUT]
    return Rate(float(data["Average"]), float(data.get("AverageThreshold", 0)))


def rows(
    found: Mapping[Workload, Mapping[str, Sequence[Rate]]], alone: str
) -> Iterator[tuple[str, ...]]:
    """Yield a row for each workload: pods a second, and the median of each turn's ratio.

    The last cell is upstream's threshold.
    """
    for workload, by_way in found.items():
        cells = [workload.title]
        for way, rates in by_way.items():
            cells.append(f"{median(rate.pods for rate in rates):.0f}")
            if way != alone:
                cells.append(_ratio(rates, by_way[alone]))
        threshold = max(rate.threshold for rate in by_way[alone])
        yield (*cells, f"{threshold:.0f}" if threshold else "n/a")


def _ratio(ours: Iterable[Rate], alone: Iterable[Rate]) -> str:
    turns = zip(ours, alone, strict=True)
    return f"{median(own.pods / other.pods for own, other in turns):.2f}"
