"""The assembly: connects the watches, stores, loops and decisions of one process."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from reserver.clock import SteadyClock
from reserver.cluster.quantity import shorten
from reserver.config import Settings
from reserver.errors import ApiError, ConfigurationError, Fault, InvalidInput
from reserver.kube.api.apply import Apply
from reserver.kube.api.client import ApiClient
from reserver.kube.loops import announce
from reserver.kube.loops.archivist import Archivist
from reserver.kube.loops.cleaner import Cleaner
from reserver.kube.loops.events import Recorder
from reserver.kube.loops.keeper import Keeper
from reserver.kube.loops.lease import Lease
from reserver.kube.loops.placer import Notice, Placer
from reserver.kube.loops.queue import WorkQueue
from reserver.kube.loops.quotas import QuotaWriter
from reserver.kube.loops.reminder import Reminder
from reserver.kube.loops.requeue import Requeue
from reserver.kube.loops.waker import Waker
from reserver.kube.migration.mover import Mover
from reserver.kube.patching.patches import SchedPatches
from reserver.kube.stores.configmap.cache import ConfigMapCache
from reserver.kube.stores.configmap.status import CompanionStatuses
from reserver.kube.stores.configmap.writer import ConfigMapWriter
from reserver.kube.stores.object.cache import ObjectCache
from reserver.kube.stores.object.status import ObjectStatuses
from reserver.kube.stores.object.writer import ObjectWriter
from reserver.kube.stores.status import Room
from reserver.kube.stores.stores import Store, Stores
from reserver.kube.watch.history import History
from reserver.kube.watch.quotas import QuotaCache
from reserver.kube.watch.views import unheard
from reserver.kube.watch.watches import (
    PODS,
    cluster_reflectors,
    move_reflectors,
    object_reflector,
    quota_reflector,
    store_reflectors,
)
from reserver.quarantine import take_note
from reserver.readiness import ProcessReadiness
from reserver.rebalance.scene import held_on
from reserver.rebalance_process import RebalanceProcess
from reserver.reservations.quota import Quota
from reserver.reservations.quotas import Quotas
from reserver.reservations.reservation import Ref
from reserver.reservations.terms import StoreKind
from reserver.reservations.view import LedgerView
from reserver.scheduling.state import State
from reserver.wire.rebalance.channel import Orders
from reserver.wire.spec import quotaform
from reserver.wire.spec.edits import Deletion, Edit
from reserver.wire.spec.object import KIND
from reserver.wire.status.archive import Archive

if TYPE_CHECKING:
    from reserver.cluster.pod import Pod
    from reserver.kube.loops.buffers import Buffers
    from reserver.kube.provisioning.provisioner import Provisioner

_MOST_TOLD = 300
"""How many characters of an error of the API server are reported."""


class Assembly:
    """The connected parts of the process; `background.lead` starts them.

    What feeds what::

        API server ── reflectors ──► state (snapshot, ledger), caches of the stores and of quotas
        caches, ledger ── `_touched`, a reservation may have changed ──► statuses, cleaner, placer,
                                                                         subscribers
        state, ledger ── `_freed`, less is held on a node ──► waker ──► requeue, and placer
        statuses, cleaner, requeue, quota_writer, recorder ──► API server

    Attributes:
        clock: tells the time that decisions are made at.
        state: what is decided on.
        stores: the reservations that are written, and who writes them and their statuses.
        subscribers: called with each reservation that may have changed.
        reflectors: what keeps all of it up to date.
        history: what was before this process started.
        mover: carries out PodMoves; None where nobody does.
        provisioner: carries out ProvisioningRequests; None where nobody does.
        keeper: keeps autoscalers from nodes that are held; None where nobody does.
        buffers: has autoscalers make room for reservations that wait; None where nobody does.
        readiness: whether calls may be decided.
        rebalancing: what rebalances beside it; None if nobody has asked for that.
        patches: the SchedPatches; None where the webhooks are not served.
    """

    def __init__(
        self,
        settings: Settings,
        client: ApiClient,
        clock: SteadyClock,
        writes: asyncio.TaskGroup,
        lease: Lease | None = None,
    ) -> None:
        """Put it together; nothing runs yet.

        Args:
            settings: what to read, and where.
            client: of the API server.
            clock: tells the time that decisions are made at.
            writes: owns the writes of reservations under way.
            lease: what has to be held to answer; None where nobody else may answer.

        Raises:
            ConfigurationError: the default quota cannot be read.
        """
        self.clock = clock
        self.subscribers: list[Callable[[Ref], None]] = []
        self.apply = Apply(client, clock)
        self.recorder = Recorder(client, clock)
        self.requeue = Requeue(self.apply, lambda: self.state.pods, time.monotonic)
        self.waker = Waker(self.requeue, clock)
        self.placer = Placer(clock, self.waker.freed, self._placed, self._spoiled)
        self.cleaner = Cleaner(self.apply, clock, self._cleaned, self._unwritten, self._spoiled)
        self.quota_writer = QuotaWriter(client, clock)
        self.keeper: Keeper | None = None
        self.provisioner: Provisioner | None = None
        self.buffers: Buffers | None = None
        self.state = self._decided_on(settings)
        if settings.keep_held_nodes:
            self.keeper = Keeper(client, self.state, self._is_host)
            self.subscribers.append(self.keeper.touched)
        kept = Archive(settings.history_ttl)
        self.archivist = Archivist(client, settings.namespace, kept, clock)
        self.quotas = QuotaCache(self.state.ledger, partial(announce.unread_quota, self.recorder))
        configmaps, objects = self._caches(settings.namespace)
        self.stores = self._stores(settings, client, configmaps, objects, writes)
        self.buffers = self._buffers(client) if settings.capacity_buffers else None
        self.mover = self._mover(client, objects) if settings.pod_moves else None
        if settings.provisioning_requests:
            self.provisioner = self._provisioner(client, objects)
        self.patches = self._patches(settings, client)
        changed = self.mover.pod_changed if self.mover else unheard
        marked = self.patches.pod_seen if self.patches else unheard
        cluster = tuple(cluster_reflectors(client, self.state, changed, marked))
        written = (
            *store_reflectors(client, settings.namespace, settings.configmaps, configmaps),
            object_reflector(client, objects, is_optional=not settings.needs_crd),
        )
        self.reflectors = (*cluster, *written, quota_reflector(client, self.quotas))
        if self.mover is not None:
            self.reflectors += tuple(move_reflectors(client, self.mover.moves, self.mover.turns))
        if self.provisioner is not None:
            self.reflectors += (self.provisioner.reflector,)
        pods = next(reflector for reflector in cluster if reflector.path == PODS)
        past = self.state.ledger.past
        self.history = History(client, past, pods, written, settings.namespace)
        tell = partial(announce.expiring, self.recorder, self.stores)
        self.reminder = Reminder(settings.warn_before_expiry, clock, self.stores.since, tell)
        self.readiness = ProcessReadiness(self.state, self.reflectors, lease)
        self.rebalancing = self._rebalancing(settings)

    def _patches(self, settings: Settings, client: ApiClient) -> SchedPatches | None:
        if settings.webhook_address is None:
            return None
        identity = f"{socket.gethostname()}_{uuid4()}"
        return SchedPatches(client, identity, self.clock, self._obstacles)

    def _obstacles(self) -> tuple[str, ...]:
        return self.readiness.obstacles()

    async def _is_up_to_date(self) -> bool:
        await self.readiness.caught_up()
        return not self.readiness.obstacles()

    def _decided_on(self, settings: Settings) -> State:
        trusted = {settings.namespace, *(namespace for namespace, _ in settings.configmaps)}
        default = _default_quota(settings)
        quotas = Quotas(default, trusted, self.quota_writer.changed, is_open=False)
        tell = (self._freed, self._touched, self._eased, quotas, self._failed)
        state = State(*tell, refused=self._refused, binding=self._binding)
        state.public_namespaces = frozenset(trusted)
        state.snapshot.exempt_namespaces |= set(settings.exempt_namespaces)
        return state

    def _caches(self, home: str) -> tuple[ConfigMapCache, ObjectCache]:
        ledger, report = self.state.ledger, self.recorder.report
        ended = self.archivist.ended
        assumed = partial(announce.assumed, self.recorder, home)
        return (
            ConfigMapCache(ledger, self.clock, report, self._touched, ended, assumed),
            ObjectCache(
                ledger, self.clock, partial(report, kind=KIND), self._touched, ended, home=home
            ),
        )

    def _stores(
        self,
        settings: Settings,
        client: ApiClient,
        configmaps: ConfigMapCache,
        objects: ObjectCache,
        writes: asyncio.TaskGroup,
    ) -> Stores:
        room, home, warn = Room(self._told_anew), settings.namespace, self.recorder.warn
        warn_object, refused = partial(warn, kind=KIND), self.placer.refused
        both = {
            StoreKind.CONFIGMAP: Store(
                configmaps,
                ConfigMapWriter(client, configmaps, home, writes),
                CompanionStatuses(client, configmaps, warn, room),
            ),
            StoreKind.OBJECT: Store(
                objects,
                ObjectWriter(client, objects, home, writes),
                ObjectStatuses(client, objects, warn_object, room, refused),
            ),
        }
        return Stores(both, settings.reservation_store)

    def _rebalancing(self, settings: Settings) -> RebalanceProcess | None:
        if settings.rebalance_policy is None and not settings.rebalance_make_room:
            return None
        orders = Orders(
            policy=str(settings.rebalance_policy or ""),
            make_room=settings.rebalance_make_room,
            interval_s=settings.rebalance_interval,
            compat=settings.rebalance_compat,
            mode=settings.rebalance_mode,
            dry_run=settings.rebalance_dry_run,
            namespace=settings.namespace,
            kubeconfig=str(settings.kubeconfig or ""),
            log_level=settings.log_level,
        )
        return RebalanceProcess(orders, lambda: held_on(self.state.snapshot))

    def _mover(self, client: ApiClient, objects: ObjectCache) -> Mover:
        mover = Mover(client, self.clock, self.state, objects, self._is_up_to_date)
        mover.subscribers.append(partial(announce.moved, self.recorder))
        self.subscribers.append(mover.seat_changed)
        return mover

    def _provisioner(self, client: ApiClient, objects: ObjectCache) -> Provisioner:
        from reserver.kube.provisioning.parts import assembled  # noqa: PLC0415 - few ask for it

        writer = self.stores.by_kind[StoreKind.OBJECT].writer
        parts = (client, self.clock, self.state, objects, writer, self.recorder)
        provisioner = assembled(*parts)
        self.subscribers.append(provisioner.reservation_changed)
        return provisioner

    def _buffers(self, client: ApiClient) -> Buffers:
        from reserver.kube.loops.buffers import Buffers  # noqa: PLC0415 - few ask for it

        buffers = Buffers(client, self.clock, self.stores.subject, let_go=self._eased)
        self.subscribers.append(buffers.touched)
        return buffers

    def _touched(self, ref: Ref) -> None:
        self.cleaner.touched(ref)
        self.placer.touched(ref)
        self._told_anew(ref)

    def _told_anew(self, ref: Ref) -> None:
        self.stores.at(ref).statuses.touched(ref)
        for tell in self.subscribers:
            tell(ref)

    def _freed(self, node: str) -> None:
        self.waker.freed(node)
        self._eased(node)

    def _eased(self, node: str) -> None:
        self.placer.eased(node)
        if self.keeper is not None:
            self.keeper.changed(node)
        if self.provisioner is not None:
            self.provisioner.eased()
        if self.buffers is not None:
            self.buffers.changed()

    def _refused(self, pod_uid: str) -> None:
        if self.buffers is not None:
            self.buffers.refused(pod_uid)

    def _binding(self, pod: Pod, node: str) -> None:
        if self.buffers is not None:
            self.buffers.binding(pod, node)

    def _is_host(self, node: str) -> bool:
        return self.buffers is not None and node in self.buffers.guests

    def _placed(self, notice: Notice) -> None:
        announce.placed(self.recorder, self.stores, notice)

    def _cleaned(self, edit: Edit | Deletion) -> None:
        for reservation in self.stores.reservations(edit.ref):
            self.state.ledger.note_unwritten(reservation.ref, "")
        announce.over(self.recorder, self.stores, edit)

    def _unwritten(self, ref: Ref, error: ApiError) -> None:
        self.placer.refused(ref, error)
        why = shorten(str(error), _MOST_TOLD)
        for reservation in self.stores.reservations(ref):
            self.state.ledger.note_unwritten(reservation.ref, why)
        announce.unwritten(self.recorder, self.stores, ref, why)

    def _spoiled(self, ref: Ref, fault: Fault) -> None:
        self.stores.spoiled(ref, fault)

    def _failed(self, ref: Ref, error: Exception) -> None:
        self._spoiled(ref, take_note("ledger", ref, error))

    def queues(self) -> Iterator[WorkQueue[Any]]:
        """Yield the queues of all loops that run."""
        quotas = self.quota_writer
        yield from (self.placer.queue, self.waker.queue, self.requeue.queue, self.cleaner.queue)
        yield from (quotas.unsettled, quotas.unwritten, self.archivist.queue, self.recorder.queue)
        yield from (store.statuses.queue for store in self.stores)
        if self.mover is not None:
            yield from (self.mover.queue, self.mover.turns.queue)
        if self.patches is not None:
            yield self.patches.queue
        if self.provisioner is not None:
            yield self.provisioner.queue
        if self.buffers is not None:
            yield from (self.buffers.queue, self.buffers.writer.queue)

    @property
    def ledger(self) -> LedgerView:
        """The ledger of reservations, at this moment."""
        self.state.ledger.advance(self.clock())
        return self.state.ledger

    @property
    def expiring(self) -> int:
        """How many holds expire soon although nobody has claimed them."""
        return len(self.reminder.expiring)

    @property
    def is_ready(self) -> bool:
        """Whether calls are decided."""
        return not self.readiness.obstacles()


def _default_quota(settings: Settings) -> Quota | None:
    try:
        return quotaform.parse_default(settings.default_quota)
    except InvalidInput as exc:
        raise ConfigurationError(f"--default-quota: {exc}") from exc
