"""Windows, nodes and the decisions on them."""

from collections.abc import Iterable, Mapping
from typing import Any

from reserver.base.pacer import outcome
from reserver.cluster.node import READY, NodeCondition
from reserver.maintenance.decide import MaintenanceDecision, decide
from reserver.maintenance.model import MaintenancePeriod, ObservedNode, Window, WindowUse
from reserver.maintenance.turns import Turn

START, END = 1_900_010_000.0, 1_900_020_000.0
DRAIN_AT = START - 1_000
CORDONED, FOUND, DONE = WindowUse.CORDONED, WindowUse.FOUND_CORDONED, WindowUse.DONE


def window(name: str = "w", start: float = START, end: float = END, **more: Any) -> Window:
    return Window(name=name, uid=name, period=MaintenancePeriod(start, end), drain_s=1_000, **more)


W = window()


def node(name: str, **more: Any) -> ObservedNode:
    return ObservedNode(name=name, **more)


def held(name: str, use: WindowUse = CORDONED, by: Window = W, **more: Any) -> ObservedNode:
    return node(name, **({"uses": {by.key: use}, "is_cordoned": use is not DONE} | more))


def not_ready(since: float | None = None) -> dict[str, Any]:
    return {"conditions": {READY: NodeCondition("Unknown")}, "not_ready_since": since}


def decided(
    nodes: Iterable[ObservedNode],
    now: float = START,
    windows: Mapping[Window, Iterable[str]] | None = None,
    **more: Any,
) -> MaintenanceDecision:
    nodes = tuple(nodes)
    asked = {W: [each.name for each in nodes]} if windows is None else windows
    turns = [Turn(one, frozenset(members)) for one, members in asked.items()]
    return outcome(decide(turns, nodes, now, **more))


A, B, C = node("a"), node("b"), node("c")
