"""Pods that Filter has refused because of holds, and the release of the holds."""

from reserver.cluster.pod import Pod
from reserver.scheduling.filter import filter_nodes
from reserver.scheduling.state import State
from reserver.scheduling.verdicts import Effect, WaitsFor
from tests.builders import NOW, ref, wake

NAMES = ["worker-1", "worker-2"]


def ask(state: State, asking: Pod, names: list[str] | None = None) -> None:
    offered = NAMES if names is None else names
    verdict = filter_nodes(asking, offered, state, NOW)
    state.judged(asking, offered, waits=verdict.waits_for is WaitsFor.ROOM)


def release(state: State, *numbers: int) -> tuple[Effect, ...]:
    for number in numbers:
        state.ledger.drop(ref(f"r{number}"))
    return wake([f"worker-{number}" for number in numbers], state, NOW)
