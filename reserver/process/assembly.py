"""The assembly: connects the watches, stores, loops and decisions of one process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

from reserver.base.clock import SteadyClock
from reserver.base.quarantine import take_note
from reserver.cluster.quantity import shorten
from reserver.errors import ApiError, ConfigurationError, Fault, InvalidInput
from reserver.extender import reservation_events
from reserver.extender.cleaner import Cleaner
from reserver.extender.cluster_watches import PODS, cluster_reflectors
from reserver.extender.placer import Placer
from reserver.extender.placing_pass import Notice
from reserver.extender.pod_writes import PodWrites
from reserver.extender.recaller import Recaller
from reserver.extender.requeue import Requeue
from reserver.extender.waker import Waker
from reserver.k8s.client import ApiClient
from reserver.k8s.events import Recorder
from reserver.k8s.lease import Lease
from reserver.k8s.watch.back_in_time import AGREED_S
from reserver.k8s.work_queue import WorkQueue
from reserver.process.features import Core, Features
from reserver.process.hold_metrics import HoldMetrics
from reserver.process.readiness import ProcessReadiness
from reserver.process.tenant_ceiling import TenantCeiling
from reserver.reservations.enums import StoreKind
from reserver.reservations.listener import Listeners
from reserver.reservations.outcome import Ending
from reserver.reservations.quota import Quota
from reserver.reservations.quotas import Quotas
from reserver.reservations.reservation import Ref
from reserver.reservations.view import LedgerView
from reserver.scheduling.recall import still_wanted
from reserver.scheduling.state import State
from reserver.settings.flags import read_percent
from reserver.settings.serve import Settings
from reserver.stores import quota_codec
from reserver.stores.archive import Archive
from reserver.stores.archive_writer import ArchiveWriter
from reserver.stores.codec import prices
from reserver.stores.configmap.cache import ConfigMapCache
from reserver.stores.configmap.status import CompanionStatuses
from reserver.stores.configmap.writer import ConfigMapWriter
from reserver.stores.edits import Tidying
from reserver.stores.expiry_warnings import ExpiryWarnings
from reserver.stores.history import HistoryReader
from reserver.stores.hold_accounts import AccountWriter, HoldAccounts
from reserver.stores.object.cache import ObjectCache
from reserver.stores.object.codec import RESERVATION
from reserver.stores.object.status import ObjectStatuses
from reserver.stores.object.writer import ObjectWriter
from reserver.stores.quota_objects import QuotaCache, QuotaWriter
from reserver.stores.status import RoomReport
from reserver.stores.stores import (
    Store,
    Stores,
    object_reflector,
    quota_reflector,
    store_reflectors,
)
from reserver.stores.writer import StoreEdits

_MOST_REPORTED = 300
"""Most characters of an API server's error in an event."""


class Assembly:
    """The connected parts of the process; `background.lead` starts them.

    Data flows::

        API server ── reflectors ──► state (snapshot, ledger), caches of the stores and of quotas
        caches, state ── changes ──► listeners: waker, cleaner, placer, stores' statuses, features,
                                     the gRPC feed
        waker ── pods to retry ──► requeue
        statuses, cleaner, requeue, quota_writer, recorder ──► API server

    Attributes:
        clock: unix seconds, the time of decisions.
        listeners: notified of changes, in this order.
        stores: the written reservations, with the writers of their entries and statuses.
        reflectors: keep the state and the caches up to date.
        history: reads what happened before this process started.
        features: optional features that the settings enable.
        readiness: whether calls may be decided.
        measured: metrics of acknowledgements, waits and duration of holds.
    """

    def __init__(
        self,
        settings: Settings,
        client: ApiClient,
        clock: SteadyClock,
        writes: asyncio.TaskGroup,
        lease: Lease | None = None,
    ) -> None:
        """Put the parts together; nothing runs yet.

        Args:
            settings: the settings of `serve`.
            client: client of the API server.
            clock: unix seconds, the time of decisions.
            writes: owns the writes of reservations in flight.
            lease: the Lease without which this process may not act; None for a single replica.

        Raises:
            ConfigurationError: the default quota cannot be read.
        """
        self.clock = clock
        self.listeners = Listeners(partial(take_note, "listener"))
        self._make_loops(settings, client)
        self.state = self._decided_on(settings)
        self.ceiling = TenantCeiling(self.state, settings)
        self.measured = HoldMetrics(self.state, clock)
        unread = partial(reservation_events.unread_quota, self.recorder)
        self.quotas = QuotaCache(self.state.ledger, unread)
        configmaps, objects = self._caches(settings.namespace)
        self.stores = self._stores(settings, client, configmaps, objects, writes)
        parts = (client, clock, self.state, self.stores, objects, self.recorder)
        for each in (self.waker, self.cleaner, self.placer, self.stores, self.measured):
            self.listeners.add(each)
        calls = (self.listeners, self._obstacles, self._is_up_to_date, self.placer.unsuited)
        self.features = Features(settings, Core(*parts, *calls))
        self._make_reflectors(settings, client, configmaps, objects)
        self._make_accounts(settings, client)
        self.readiness = ProcessReadiness(self.state, self.reflectors, client, lease)

    def _make_reflectors(
        self,
        settings: Settings,
        client: ApiClient,
        configmaps: ConfigMapCache,
        objects: ObjectCache,
    ) -> None:
        """Make the reflectors of the state and the caches, and the reader of the history."""
        cluster = tuple(cluster_reflectors(client, self.state))
        home, is_optional = settings.namespace, not settings.needs_crd
        written = (
            *store_reflectors(client, home, settings.configmaps, configmaps),
            object_reflector(client, home, objects, is_optional=is_optional),
        )
        quotas = quota_reflector(client, self.quotas)
        self.reflectors = (*cluster, *written, quotas, *self.features.reflectors)
        pods = next(reflector for reflector in cluster if reflector.path == PODS)
        self.history = HistoryReader(client, self.state.ledger.past, pods, written, home)

    def _make_loops(self, settings: Settings, client: ApiClient) -> None:
        """Make the loops that act on changes of the state and the stores."""
        clock = self.clock
        self.pod_writes = PodWrites(client, clock, self._is_up_to_date)
        self.recorder = Recorder(client, clock)
        self.requeue = Requeue(
            self.pod_writes,
            lambda: self.state.pods,
            time.monotonic,
            again=lambda effect: still_wanted(effect, self.state),
        )
        self.waker = Waker(self.requeue, clock)
        self.recaller = Recaller(clock, self.pod_writes.recall, self.recorder.record)
        self.placer = Placer(clock, self.waker.on_capacity_freed, self._placed, self._on_fault)
        self.cleaner = Cleaner(
            StoreEdits(client), clock, self._cleaned, self._unwritten, self._on_fault
        )
        self.quota_writer = QuotaWriter(client, clock)
        kept = Archive(settings.history_ttl)
        self.archivist = ArchiveWriter(client, settings.namespace, kept, clock)

    def _make_accounts(self, settings: Settings, client: ApiClient) -> None:
        """Make the accounts of cost and use of holds, and the warnings before their expiry."""
        expiring = partial(reservation_events.expiring, self.recorder, self.stores)
        unused = partial(reservation_events.little_used, self.recorder, self.stores)
        least = read_percent(settings.warn_use_below) or 0
        held = HoldAccounts(self.clock, least / 100, unused)
        self.accountant = AccountWriter(client, settings.namespace, held, self.clock)
        self.accountant.prices = prices.parse(settings.prices)
        self.reminder = ExpiryWarnings(settings.warn_before_expiry, self.clock, expiring)

    def _obstacles(self) -> tuple[str, ...]:
        return self.readiness.obstacles()

    async def _is_up_to_date(self) -> bool:
        return await self.readiness.may_write(AGREED_S)

    def _decided_on(self, settings: Settings) -> State:
        trusted = {settings.namespace, *(namespace for namespace, _ in settings.configmaps)}
        default = default_quota(settings)
        quotas = Quotas(default, trusted, self.quota_writer.changed, is_open=False)
        state = State(self.listeners, quotas, self._failed)
        state.public_namespaces = frozenset(trusted)
        state.snapshot.exempt_namespaces |= set(settings.exempt_namespaces)
        state.snapshot.residents.daemons |= set(settings.daemon_controllers)
        state.snapshot.lending.is_on = settings.lending
        return state

    def _caches(self, home: str) -> tuple[ConfigMapCache, ObjectCache]:
        ledger, report = self.state.ledger, partial(reservation_events.unread, self.recorder)
        changed, ended = self.listeners.on_reservation_changed, self._ended
        assumed = partial(reservation_events.assumed, self.recorder, home)
        return (
            ConfigMapCache(ledger, self.clock, report, changed, ended, assumed),
            ObjectCache(
                ledger, self.clock, partial(report, kind=RESERVATION), changed, ended, home=home
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
        room = RoomReport(self.listeners.on_backing_changed)
        home, warn = settings.namespace, self.recorder.warn
        warn_object, refused = partial(warn, kind=RESERVATION), self.placer.refused
        seen = {"acknowledged": self.measured.acknowledged, "violated": self.measured.violated}
        both = {
            StoreKind.CONFIGMAP: Store(
                configmaps,
                ConfigMapWriter(client, configmaps, home, writes),
                CompanionStatuses(client, configmaps, warn, room, **seen),
            ),
            StoreKind.OBJECT: Store(
                objects,
                ObjectWriter(client, objects, home, writes),
                ObjectStatuses(client, objects, warn_object, room, refused, **seen),
            ),
        }
        return Stores(both, settings.store)

    def _ended(self, ending: Ending) -> None:
        self.archivist.ended(ending)
        self.measured.ended(ending)
        self.accountant.held.ended(ending)

    def _placed(self, notice: Notice) -> None:
        reservation_events.placed(self.recorder, self.stores, notice)

    def _cleaned(self, edit: Tidying) -> None:
        for reservation in self.stores.reservations(edit.ref):
            self.state.ledger.note_unwritten(reservation.ref, "")
        reservation_events.over(self.recorder, self.stores, edit)

    def _unwritten(self, ref: Ref, error: ApiError) -> None:
        self.placer.refused(ref, error)
        why = shorten(str(error), _MOST_REPORTED)
        for reservation in self.stores.reservations(ref):
            self.state.ledger.note_unwritten(reservation.ref, why)
        reservation_events.unwritten(self.recorder, self.stores, ref, why)

    def _on_fault(self, ref: Ref, fault: Fault) -> None:
        self.stores.on_fault(ref, fault)

    def _failed(self, ref: Ref, error: Exception) -> None:
        self._on_fault(ref, take_note("ledger", ref, error))

    def queues(self) -> Iterator[WorkQueue[Any]]:
        """Yield the queues of all running loops."""
        quotas = self.quota_writer
        yield from (self.placer.queue, self.waker.queue, self.requeue.queue, self.cleaner.queue)
        yield from (quotas.unsettled, quotas.unwritten, self.archivist.queue, self.recorder.queue)
        yield from (store.statuses.queue for store in self.stores)
        yield from self.features.queues

    @property
    def ledger(self) -> LedgerView:
        """The ledger of reservations, advanced to this moment."""
        self.state.ledger.advance(self.clock())
        return self.state.ledger

    @property
    def expiring(self) -> int:
        """Number of holds that expire soon without a claim."""
        return len(self.reminder.expiring)

    @property
    def is_ready(self) -> bool:
        """Whether this process decides calls."""
        return not self.readiness.obstacles()


def default_quota(settings: Settings) -> Quota | None:
    """Return the quota of namespaces without one.

    Raises:
        ConfigurationError: the setting is not a valid quota.
    """
    try:
        return quota_codec.parse_default(settings.default_quota)
    except InvalidInput as exc:
        raise ConfigurationError(f"--default-quota: {exc}") from exc
