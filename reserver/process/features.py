"""Optional features, which are imported only if the settings enable them."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from reserver.k8s.client import ApiClient
from reserver.k8s.events import Recorder
from reserver.k8s.objects import move_windows
from reserver.k8s.watch.reflector import Reflector
from reserver.k8s.work_queue import WorkQueue
from reserver.reservations.enums import StoreKind
from reserver.reservations.listener import Listeners
from reserver.reservations.reservation import Ref
from reserver.scheduling.state import State
from reserver.settings.flags import read_percent
from reserver.settings.serve import Settings
from reserver.stores.object.cache import ObjectCache
from reserver.stores.stores import Stores

if TYPE_CHECKING:
    from reserver.autoscaling.controller import Buffers
    from reserver.autoscaling.scale_down_guard import ScaleDownGuard
    from reserver.maintenance.controller import MaintenanceController
    from reserver.moves.controller import MoveController
    from reserver.patches.controller import SchedPatches
    from reserver.provisioning.controller import Provisioner


@dataclass(frozen=True, slots=True)
class Core:
    """The parts of every Reserver, on which features are built.

    Attributes:
        client: client of the API server.
        clock: unix seconds.
        state: snapshot and ledger.
        stores: the written reservations.
        objects: the Reservation objects.
        recorder: writes events.
        listeners: notified of changes.
        obstacles: returns the reasons why calls are not decided.
        is_up_to_date: waits for missed changes of watches, asks etcd, and returns whether calls
            are decided.
        unsuited: places a seat again that no pod can use on its node; the flag allows all nodes.
    """

    client: ApiClient
    clock: Callable[[], float]
    state: State
    stores: Stores
    objects: ObjectCache
    recorder: Recorder
    listeners: Listeners
    obstacles: Callable[[], tuple[str, ...]]
    is_up_to_date: Callable[[], Awaitable[bool]]
    unsuited: Callable[[Ref, bool], None]


class Features:
    """The optional features; the attribute of a disabled feature is None.

    Attributes:
        scale_down_guard: keeps autoscalers from removing nodes with holds.
        buffers: makes autoscalers add room for waiting reservations.
        patches: the SchedPatches, for the webhooks.
        reflectors: reflectors that must be synced before calls are decided.
        unawaited: reflectors that need not be synced.
        queues: work queues of the features.
        runs: loops of the features, each until cancelled.
    """

    def __init__(self, settings: Settings, core: Core) -> None:
        """Make the enabled features; nothing runs yet."""
        self._core = core
        self.reflectors: list[Reflector] = []
        self.unawaited: list[Reflector] = []
        self.queues: list[WorkQueue[Any]] = []
        self.runs: list[Callable[[], Coroutine[None, None, None]]] = []
        self.scale_down_guard = self._guarding() if settings.keep_held_nodes else None
        self.buffers = self._buffering() if settings.capacity_buffers else None
        self.mover = self._moving(settings) if settings.pod_moves else None
        self.maintainer = self._maintaining(settings) if settings.maintenance_windows else None
        self.provisioner = self._provisioning() if settings.provisioning_requests else None
        self.patches = self._patching() if settings.webhook_address else None

    def _guarding(self) -> ScaleDownGuard:
        from reserver.autoscaling.scale_down_guard import ScaleDownGuard

        scale_down_guard = ScaleDownGuard(self._core.client, self._core.state, self._is_host)
        self._core.listeners.add(scale_down_guard)
        self.runs.append(scale_down_guard.run)
        return scale_down_guard

    def _is_host(self, node: str) -> bool:
        return self.buffers is not None and node in self.buffers.buffered_pods

    def _buffering(self) -> Buffers:
        from reserver.autoscaling.controller import Buffers

        core = self._core
        buffers = Buffers(core.client, core.clock, core.stores.subject, listener=core.listeners)
        core.listeners.add(buffers)
        writer = buffers.writer
        self.unawaited.append(writer.reflector)
        self.queues += (buffers.queue, writer.backlog, writer.queue)
        self.runs.append(partial(buffers.run, core.state))
        return buffers

    def _moving(self, settings: Settings) -> MoveController:
        from reserver.moves.setup import assembled, attachable, group_reflector, reflectors

        core = self._core
        parts = (core.client, core.clock, core.state, core.objects, core.recorder)
        may_surge, unsuited = settings.surge_moves, core.unsuited
        mover = assembled(*parts, core.is_up_to_date, unsuited=unsuited, may_surge=may_surge)
        allow(mover, settings)
        core.listeners.add(mover)
        self.reflectors += reflectors(core.client, mover)
        groups = group_reflector(core.client, mover)
        volumes = attachable(core.client, core.state)
        self.unawaited += (groups, volumes)
        self.queues += (mover.queue, mover.arbitration.queue, mover.groups.queue)
        self.queues += (mover.remains.queue,) if settings.surge_moves else ()
        self.runs += (mover.run, groups.run, volumes.run)
        return mover

    def _maintaining(self, settings: Settings) -> MaintenanceController:
        from reserver.maintenance.controller import MaintenanceController

        core, mover = self._core, self.mover
        assert mover is not None  # noqa: S101 - the settings require pod moves
        parts = (core.client, core.clock, core.state, mover.moves, core.recorder)
        maintainer = MaintenanceController(
            *parts,
            core.is_up_to_date,
            unsuited=core.unsuited,
            not_ready_s=settings.replace_not_ready_after,
        )
        core.listeners.add(maintainer)
        self.reflectors.append(maintainer.reflector)
        self.queues.append(maintainer.queue)
        self.runs.append(maintainer.run)
        return maintainer

    def _provisioning(self) -> Provisioner:
        from reserver.provisioning.booking import Booking
        from reserver.provisioning.controller import Provisioner
        from reserver.provisioning.setup import announce

        core = self._core
        writer = core.stores.by_kind[StoreKind.OBJECT].writer
        booking = Booking(core.client, core.clock, core.state, core.objects, writer)
        provisioner = Provisioner(core.client, core.clock, booking, core.is_up_to_date)
        provisioner.subscribers.append(partial(announce, core.recorder))
        core.listeners.add(provisioner)
        self.reflectors.append(provisioner.reflector)
        self.queues.append(provisioner.queue)
        self.runs.append(provisioner.run)
        return provisioner

    def _patching(self) -> SchedPatches:
        from reserver.patches.controller import SchedPatches

        core, identity = self._core, f"{socket.gethostname()}_{uuid4()}"
        patches = SchedPatches(core.client, identity, core.clock, core.obstacles)
        core.listeners.add(patches)
        self.unawaited.append(patches.reflector)
        self.queues.append(patches.queue)
        return patches


def allow(mover: MoveController, settings: Settings) -> None:
    """Set windows for moves and their limits; a limit of 0 means none."""
    from reserver.moves.limits import MoveLimits

    limits = MoveLimits(
        per_node=settings.max_migrating_per_node or None,
        per_namespace=settings.max_migrating_per_namespace or None,
        globally=settings.max_migrating_globally or None,
        workload_percent=read_percent(settings.max_migrating_per_workload),
    )
    mover.arbitration.allow(move_windows.windows(settings.move_windows), limits)
