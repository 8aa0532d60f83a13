"""Reservations with many owners on many nodes, and counts of the work on them."""

from typing import Any

import pytest

from reserver.cluster.pod import Controller
from reserver.reservations.owner import OwnerRule
from reserver.reservations.reservation import Reservation
from reserver.scheduling.state import State
from tests.builders import node, reservation, state_of

NODES = [f"n{number}" for number in range(300)]
WEB = Controller("ReplicaSet", "web")


class Count:
    """Counts calls of a function."""

    calls = 0


def counting(monkeypatch: pytest.MonkeyPatch, where: Any, name: str) -> Count:
    count, before = Count(), getattr(where, name)

    def counted(*args: Any, **kwargs: Any) -> Any:
        count.calls += 1
        return before(*args, **kwargs)

    monkeypatch.setattr(where, name, counted)
    return count


def everywhere(
    rules: list[OwnerRule],
    *,
    yields_above: int | None = None,
    require: bool = False,
    reusable: bool = False,
) -> Reservation:
    """Return a reservation that holds on all nodes."""
    return reservation(
        "wide",
        node="",
        owners=(),
        rules=rules,
        slots=len(NODES),
        placed=dict.fromkeys(NODES, 1),
        yields_above=yields_above,
        require=require,
        reusable=reusable,
        cpu="3",
    )


def crowd(*reservations: Reservation) -> State:
    return state_of(*(node(name, cpu="4", memory="8Gi") for name in NODES), *reservations)
