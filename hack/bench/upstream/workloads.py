"""Which of upstream's workloads are run, and what they gave."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import yaml

from hack.bench.report import times

_THROUGHPUT = "SchedulingThroughput"


@dataclass(frozen=True)
class Workload:
    """A workload of upstream's.

    Attributes:
        topic: its folder below test/integration/scheduler_perf.
        case: the test case.
        name: of the workload in the case.
    """

    topic: str
    case: str
    name: str

    @property
    def title(self) -> str:
        """What upstream calls it."""
        return f"{self.case}/{self.name}"


# The smallest that take longer than a second: upstream gives no throughput of what is done sooner.
WORKLOADS = (
    Workload("misc", "SchedulingBasic", "500Nodes"),
    Workload("misc", "SchedulingBasic", "5000Nodes"),
    Workload("topology_spreading", "TopologySpreading", "500Nodes"),
)


def with_scheduler(cases: str, config: str) -> str:
    """Return upstream's test cases with a KubeSchedulerConfiguration in each of them.

    A case that has one of its own keeps its own: upstream's is what it measures.
    """
    return yaml.safe_dump(
        [{"schedulerConfigPath": config, **case} for case in yaml.safe_load(cases)],
        sort_keys=False,
    )


def throughput(items: str) -> float:
    """Return the pods a second that one run of a workload gave.

    Raises:
        ValueError: it gave none.
    """
    found: list[dict[str, Any]] = json.loads(items)["dataItems"]
    for item in found:
        if item["labels"]["Metric"] == _THROUGHPUT:
            return float(item["data"]["Average"])
    raise ValueError(f"no {_THROUGHPUT} among {len(found)} items")


def rows(
    found: Mapping[Workload, Mapping[str, Sequence[float]]], alone: str
) -> Iterator[tuple[str, ...]]:
    """Yield a row for each workload: pods a second, and the median of each turn's ratio."""
    for workload, by_way in found.items():
        cells = [workload.title]
        for way, rates in by_way.items():
            cells.append(f"{median(rates):.0f}")
            if way != alone:
                cells.append(_ratio(rates, by_way[alone]))
        yield tuple(cells)


def _ratio(ours: Iterable[float], alone: Iterable[float]) -> str:
    return times(median(own / other for own, other in zip(ours, alone, strict=True)))
