"""Moves that contend for their turn, and the rulings on them."""

from collections.abc import Iterable
from dataclasses import replace
from types import MappingProxyType

from reserver.base.pacer import outcome
from reserver.cluster.budgets import Budget
from reserver.cluster.labels import equals
from reserver.cluster.pod import Controller, PodName
from reserver.moves.arbitration import Ruling, arbitrate
from reserver.moves.groups import Contender
from reserver.moves.limits import MoveLimits
from reserver.moves.model import ALONE, Declared, Move, MoveGroup, MoveSpec
from reserver.moves.phases import MovePhase, MoveReason
from tests.builders import pod
from tests.unit.moves.build import NOW

ANY = MoveLimits(per_node=None)
DRAIN = MoveGroup("drain-1", 3)
TIGHT = Budget(name=PodName("shop", "tight"), selector=equals({"app": "web"}), allowed=1)


def contender(  # noqa: PLR0913 - the fields of a scenario
    name: str,
    phase: MovePhase = MovePhase.PENDING,
    *,
    group: MoveGroup = ALONE,
    node: str = "worker-1",
    age: float = 0,
    reason: MoveReason | None = None,
    app: str = "",
    priority: int = 0,
    of: str = "",
    replicas: int = 0,
    paused: bool = False,
    to: str = "",
    after: str = "",
    seat: str = "",
) -> Contender:
    """Return a move whose pod has the name of the move."""
    spec = MoveSpec(pod=PodName("shop", name), group=group, paused=paused, node=to, after=after)
    made = Move(name=spec.pod, uid=f"uid-{name}", created_at=NOW - age, spec=spec)
    is_new = phase is MovePhase.PENDING
    status = replace(
        made.status, phase=phase, reason=reason, source="" if is_new else node, target=seat
    )
    leaves = pod(name, node=node, labels={"app": app}, priority=priority)
    return Contender(
        move=replace(made, status=status),
        pod=leaves,
        controller=Controller("ReplicaSet", of or name),
        replicas=replicas,
    )


def ruled(
    *contenders: Contender,
    limits: MoveLimits = ANY,
    budgets: Iterable[Budget] = (),
    declared: Declared = MappingProxyType({}),
) -> dict[str, Ruling]:
    """Return the rulings, by the name of the move."""
    rulings = outcome(arbitrate(contenders, budgets, declared, NOW, limits))
    return {name.name: it for name, it in rulings.items()}


def beginning(rulings: dict[str, Ruling]) -> set[str]:
    return {name for name, ruling in rulings.items() if ruling.turn.may_begin}


def evicting(rulings: dict[str, Ruling]) -> set[str]:
    return {name for name, ruling in rulings.items() if ruling.turn.may_evict}
