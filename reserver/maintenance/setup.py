"""Assembles the controller of MaintenanceWindows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from reserver.k8s.client import ApiClient
from reserver.k8s.events import Recorder
from reserver.maintenance.codec import WINDOW
from reserver.maintenance.controller import MaintenanceController
from reserver.maintenance.decide import NodeProgress
from reserver.maintenance.emptying import NodeEmptying
from reserver.maintenance.observe import KnownWindow
from reserver.moves.index import MoveIndex
from reserver.scheduling.state import State


def assembled(  # noqa: PLR0913 - the controller's dependencies
    client: ApiClient,
    clock: Callable[[], float],
    state: State,
    moves: MoveIndex,
    recorder: Recorder,
    is_up_to_date: Callable[[], Awaitable[bool]],
    *,
    not_ready_s: float,
) -> MaintenanceController:
    """Return the controller that carries out MaintenanceWindows by PodMoves."""
    emptying = NodeEmptying(client, moves, state.snapshot)
    parts = (client, clock, state, emptying, is_up_to_date, not_ready_s)
    controller = MaintenanceController(*parts)
    controller.subscribers.append(partial(_announce, recorder))
    return controller


def _announce(recorder: Recorder, known: KnownWindow, progress: NodeProgress) -> None:
    """Write an event on a MaintenanceWindow for the new phase of a node."""
    said = f"{progress.node}: {progress.message}" if progress.message else progress.node
    recorder.note(known.metadata, f"Node{progress.phase}", said, WINDOW)
