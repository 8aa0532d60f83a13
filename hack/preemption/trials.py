"""The trials of a priority storm: full nodes with holds, and pods that would evict others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

LOW, MIDDLE, HIGH = "storm-low", "storm-middle", "storm-high"
PRIORITIES = {LOW: 100, MIDDLE: 500, HIGH: 1000}
"""PriorityClasses and their values."""


@dataclass(frozen=True)
class StormPod:
    """A pod of a storm.

    Attributes:
        name: its name.
        cpu: its request, in whole CPUs.
        priority: its PriorityClass.
        nodes: the nodes that it may use; the node of a filler.
        lands: it has unheld room after evictions.
        is_filler: it is bound from the beginning.
    """

    name: str
    cpu: int
    priority: str
    nodes: tuple[str, ...]
    lands: bool = False
    is_filler: bool = False


@dataclass(frozen=True)
class Trial:
    """Nodes of one trial, with their fillers, holds and preemptors.

    Attributes:
        cpu: CPUs of each of its nodes.
        holds: held CPUs, by node.
        fillers: the pods on the nodes.
        preemptors: the pods that are created at once.
        trap: the node where kube-scheduler by itself would evict pods for nothing; empty for none.
    """

    cpu: int
    holds: dict[str, int]
    fillers: list[StormPod] = field(default_factory=list)
    preemptors: list[StormPod] = field(default_factory=list)
    trap: str = ""

    def fill(self, node: str, *sizes: int, priority: str = LOW) -> None:
        """Adds pods of so many CPUs that are on a node already."""
        for cpu in sizes:
            name = f"{node}-filler-{len(self.fillers)}"
            self.fillers.append(StormPod(name, cpu, priority, (node,), is_filler=True))

    def ask(self, *nodes: str, cpu: int, priority: str = HIGH, lands: bool) -> None:
        """Adds a pod that wants one of these nodes."""
        name = f"{nodes[0]}-preemptor-{len(self.preemptors)}"
        self.preemptors.append(StormPod(name, cpu, priority, nodes, lands))


SMALL, LARGE = 4, 12
"""CPUs of a node."""


def trials(count: int, small: list[str], large: list[str], *, rivals: bool) -> Iterator[Trial]:
    """Yield trials of each kind in turn, on nodes of 4 and of 12 CPUs.

    The trials take `nodes_needed` nodes. Without rivals no pod comes for room freed for another.
    """
    kinds = (_futile, _worthwhile, _choice, _crowd if rivals else _alone)
    names = (iter(small), iter(large))
    for number in range(count):
        yield kinds[number % len(kinds)](*names)


def nodes_needed(count: int) -> tuple[int, int]:
    """Returns how many nodes of 4 and of 12 CPUs so many trials take."""
    return 4 * -(-count // 4), -(-count // 4)


def _futile(small: Iterator[str], _: Iterator[str]) -> Trial:
    """Evicting one pod makes room as far as kube-scheduler knows, but half of the node is held."""
    node = next(small)
    trial = Trial(SMALL, {node: 2}, trap=node)
    trial.fill(node, 1, 1)
    trial.ask(node, cpu=3, lands=False)
    return trial


def _worthwhile(small: Iterator[str], _: Iterator[str]) -> Trial:
    """Evicting the only pod makes room next to the hold."""
    node = next(small)
    trial = Trial(SMALL, {node: 1})
    trial.fill(node, 3)
    trial.ask(node, cpu=3, lands=True)
    return trial


def _choice(small: Iterator[str], _: Iterator[str]) -> Trial:
    """kube-scheduler would rather evict where it is futile: the pods there matter less."""
    node, other = next(small), next(small)
    trial = Trial(SMALL, {node: 2}, trap=node)
    trial.fill(node, 1, 1)
    trial.fill(other, 4, priority=MIDDLE)
    trial.ask(node, other, cpu=3, lands=True)
    return trial


def _crowd(small: Iterator[str], large: Iterator[str]) -> Trial:
    """kube-scheduler takes the room freed for the first pod for room of the second, too."""
    trial = _alone(small, large)
    trial.ask(*trial.holds, cpu=4, priority=MIDDLE, lands=False)
    return trial


def _alone(_: Iterator[str], large: Iterator[str]) -> Trial:
    """Evicting one pod makes room next to the hold and a pod that stays."""
    node = next(large)
    trial = Trial(LARGE, {node: 4})
    trial.fill(node, 6)
    trial.fill(node, 2, priority=HIGH)
    trial.ask(node, cpu=6, lands=True)
    return trial
