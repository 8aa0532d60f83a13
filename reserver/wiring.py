"""The wiring: who tells whom of what, from the watches to the writers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from functools import partial

import structlog

from reserver.clock import SteadyClock
from reserver.cluster.quantity import shorten
from reserver.config import Settings
from reserver.errors import ApiError, ConfigurationError, Fault, InvalidInput
from reserver.kube.api.apply import Apply
from reserver.kube.api.client import ApiClient
from reserver.kube.loops.cleaner import Cleaner
from reserver.kube.loops.events import Recorder
from reserver.kube.loops.lease import Lease
from reserver.kube.loops.placer import Notice, Placer
from reserver.kube.loops.quotas import QuotaWriter
from reserver.kube.loops.requeue import Requeue
from reserver.kube.loops.waker import Waker
from reserver.kube.stores.configmap.cache import ConfigMapCache
from reserver.kube.stores.configmap.status import CompanionStatuses
from reserver.kube.stores.configmap.writer import ConfigMapWriter
from reserver.kube.stores.object.cache import ObjectCache
from reserver.kube.stores.object.status import ObjectStatuses
from reserver.kube.stores.object.writer import ObjectWriter
from reserver.kube.stores.room import Room
from reserver.kube.stores.stores import Store, Stores
from reserver.kube.watch.history import History
from reserver.kube.watch.quotas import QuotaCache
from reserver.kube.watch.reflector import Reflector
from reserver.kube.watch.watches import (
    PODS,
    cluster_reflectors,
    object_reflector,
    quota_reflector,
    store_reflectors,
)
from reserver.kube.watched import Watched
from reserver.quarantine import take_note
from reserver.reservations.quota import Quota
from reserver.reservations.quotas import Quotas
from reserver.reservations.reservation import Ref, StoreKind
from reserver.scheduling.state import State
from reserver.wire.k8s.objects import Metadata
from reserver.wire.spec import quotaform
from reserver.wire.spec.edits import Deletion, Edit
from reserver.wire.spec.object import KIND

_MOST_TOLD = 300
"""So many characters of what the API server says are told."""

log = structlog.get_logger(__name__)


def wire(
    settings: Settings,
    client: ApiClient,
    clock: SteadyClock,
    lease: Lease | None,
    told: Iterable[Callable[[Ref], None]],
    writes: asyncio.TaskGroup,
) -> tuple[Watched, Apply, History]:
    """Make what watches and writes; nothing runs yet.

    Args:
        settings: what to read, and where.
        client: of the API server.
        clock: tells the time that decisions are made at.
        lease: what has to be held to answer; None where nobody else may answer.
        told: are told of each reservation that may have changed; may grow until it runs.
        writes: owns the writes of reservations under way.

    Raises:
        ConfigurationError: the default quota cannot be read.
    """

    def tell(ref: Ref) -> None:
        for tell_one in told:
            tell_one(ref)

    apply = Apply(client, clock)
    requeue = Requeue(apply, lambda: state.pods, time.monotonic)
    waker = Waker(requeue, clock)
    recorder = Recorder(client, clock)

    def spoiled(ref: Ref, fault: Fault) -> None:
        stores.spoiled(ref, fault)

    def failed(ref: Ref, exc: Exception) -> None:
        spoiled(ref, take_note("ledger", ref, exc))

    placer = Placer(
        clock, waker.freed, lambda notice: _tell_placed(recorder, stores, notice), spoiled
    )

    def touched(ref: Ref) -> None:
        stores.touched(ref)
        cleaner.touched(ref)
        placer.touched(ref)
        tell(ref)

    def freed(node: str) -> None:
        waker.freed(node)
        placer.eased(node)

    quota_writer = QuotaWriter(client, clock)
    trusted = {settings.namespace, *(namespace for namespace, _ in settings.configmaps)}
    quotas = Quotas(_default_quota(settings), trusted, quota_writer.changed, is_open=False)
    state = State(freed, touched, placer.eased, quotas, failed)
    state.public_namespaces = frozenset(trusted)
    state.snapshot.exempt_namespaces |= set(settings.exempt_namespaces)
    quota_store = QuotaCache(state.ledger, partial(_tell_unread, recorder))
    configmaps = ConfigMapCache(state.ledger, clock, recorder.report, touched)
    report = partial(recorder.report, kind=KIND)
    objects = ObjectCache(state.ledger, clock, report, touched, settings.namespace)
    caches = configmaps, objects
    stores = _stores(settings, client, caches, recorder, writes, tell=tell, refused=placer.refused)

    def refused(ref: Ref, error: ApiError) -> None:
        placer.refused(ref, error)
        _tell_unwritten(recorder, state, stores, ref, error)

    def done(edit: Edit | Deletion) -> None:
        for reservation in stores.reservations(edit.ref):
            state.ledger.note_unwritten(reservation.ref, "")
        _tell_over(recorder, edit)

    cleaner = Cleaner(apply, clock, done, refused, spoiled)
    pods, written, reflectors = _reflectors(settings, client, state, configmaps, objects)
    reflectors = (*reflectors, quota_reflector(client, quota_store))
    history = History(client, state.ledger.past, pods, written, settings.namespace)
    watched = Watched(
        state,
        stores,
        recorder,
        cleaner,
        waker,
        requeue,
        placer,
        (quota_store, quota_writer),
        reflectors,
        clock,
        lease,
    )
    return watched, apply, history


def _stores(  # noqa: PLR0913 - what they tell, and whom
    settings: Settings,
    client: ApiClient,
    caches: tuple[ConfigMapCache, ObjectCache],
    recorder: Recorder,
    writes: asyncio.TaskGroup,
    *,
    tell: Callable[[Ref], None],
    refused: Callable[[Ref, ApiError], None],
) -> Stores:
    """Return the stores: what is written in each, who writes it, and who says what became of it."""

    def look_again(ref: Ref) -> None:
        stores.touched(ref)
        tell(ref)

    room, home = Room(look_again), settings.namespace
    configmaps, objects = caches
    stores = Stores(
        {
            StoreKind.CONFIGMAP: Store(
                configmaps,
                ConfigMapWriter(client, configmaps, home, writes),
                CompanionStatuses(client, configmaps, recorder.warn, room),
            ),
            StoreKind.OBJECT: Store(
                objects,
                ObjectWriter(client, objects, home, writes),
                ObjectStatuses(client, objects, partial(recorder.warn, kind=KIND), room, refused),
            ),
        },
        StoreKind(settings.reservation_store),
    )
    return stores


def _reflectors(
    settings: Settings,
    client: ApiClient,
    state: State,
    configmaps: ConfigMapCache,
    objects: ObjectCache,
) -> tuple[Reflector, tuple[Reflector, ...], tuple[Reflector, ...]]:
    """Return what keeps pods, what keeps the stores, and what keeps anything up to date."""
    cluster = tuple(cluster_reflectors(client, state))
    written = (
        *store_reflectors(client, settings.namespace, settings.configmaps, configmaps),
        object_reflector(client, objects, is_optional=not settings.needs_crd),
    )
    pods = next(reflector for reflector in cluster if reflector.path == PODS)
    return pods, written, (*cluster, *written)


def _tell_unwritten(
    recorder: Recorder, state: State, stores: Stores, ref: Ref, error: ApiError
) -> None:
    """Say where a reservation is written that what became of it cannot be written there."""
    why = shorten(str(error), _MOST_TOLD)
    for reservation in stores.reservations(ref):
        state.ledger.note_unwritten(reservation.ref, why)
    message = f"what became of it cannot be written, it is tried again: {why}"
    _tell_at(stores, ref, "NotWritten", message, recorder.warn_once)


def _default_quota(settings: Settings) -> Quota | None:
    try:
        return quotaform.parse_default(settings.default_quota)
    except InvalidInput as exc:
        raise ConfigurationError(f"--default-quota: {exc}") from exc


def _tell_unread(recorder: Recorder, metadata: Metadata, error: InvalidInput) -> None:
    """Leave a log line and an event behind for a quota that cannot be read."""
    name = f"{metadata.namespace}/{metadata.name}"
    log.error("quota limits nothing", quota=name, why=str(error))
    recorder.warn(metadata, "InvalidQuota", f"it limits nothing: {error}", quotaform.KIND)


def _tell_over(recorder: Recorder, edit: Edit | Deletion) -> None:
    """Leave an event behind for a Reservation that was deleted: nothing else tells of it then."""
    if isinstance(edit, Deletion):
        recorder.over(edit)


def _tell_placed(recorder: Recorder, stores: Stores, notice: Notice) -> None:
    """Leave an event behind where a reservation is written."""
    write = recorder.warn if notice.is_warning else recorder.note
    _tell_at(stores, notice.ref, notice.reason, notice.message, write)


def _tell_at(
    stores: Stores,
    ref: Ref,
    reason: str,
    message: str,
    write: Callable[[Metadata, str, str, str], None],
) -> None:
    """Leave an event behind where a reservation is written, unless it has just been removed."""
    subject = stores.subject(ref)
    if subject is not None:
        metadata, kind = subject
        name = f"{ref.key}: " if ref.kind is StoreKind.CONFIGMAP else ""
        write(metadata, reason, f"{name}{message}", kind)
