"""The wiring: who tells whom of what, from the watches to the writers."""

from __future__ import annotations

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
from reserver.kube.loops.events import CONFIG_MAP, Recorder
from reserver.kube.loops.lease import Lease
from reserver.kube.loops.placer import Notice, Placer
from reserver.kube.loops.quotas import QuotaStore, QuotaWriter
from reserver.kube.loops.requeue import Requeue
from reserver.kube.loops.waker import Waker
from reserver.kube.stores.both import Stores
from reserver.kube.stores.configmap.cache import ConfigMapCache
from reserver.kube.stores.configmap.status import StatusWriter
from reserver.kube.stores.object.cache import ObjectCache
from reserver.kube.stores.object.status import ObjectStatusWriter
from reserver.kube.watch.history import History
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
) -> tuple[Watched, Apply, History]:
    """Make what watches and writes; nothing runs yet.

    Args:
        settings: what to read, and where.
        client: of the API server.
        clock: tells the time that decisions are made at.
        lease: what has to be held to answer; None where nobody else may answer.
        told: are told of each reservation that may have changed; may grow until it runs.

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
    statuses = StatusWriter(client, recorder.warn, clock, tell)
    object_statuses = ObjectStatusWriter(
        client, partial(recorder.warn, kind=KIND), clock, placer.refused
    )

    def touched(ref: Ref) -> None:
        (statuses if ref.kind is StoreKind.CONFIGMAP else object_statuses).touched(ref)
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
    quota_store = QuotaStore(state.ledger, partial(_tell_unread, recorder))
    report = partial(recorder.report, kind=KIND)
    stores = Stores(
        ConfigMapCache(state.ledger, clock, recorder.report, touched),
        ObjectCache(state.ledger, clock, report, touched, settings.namespace),
    )

    def refused(ref: Ref, error: ApiError) -> None:
        placer.refused(ref, error)
        _tell_unwritten(recorder, state, stores, ref, error)

    def done(edit: Edit | Deletion) -> None:
        for reservation in stores.reservations(edit.ref):
            state.ledger.note_unwritten(reservation.ref, "")
        _tell_over(recorder, edit)

    cleaner = Cleaner(apply, clock, done, refused, spoiled)
    pods, written, reflectors = _reflectors(settings, client, state, stores)
    reflectors = (*reflectors, quota_reflector(client, quota_store))
    history = History(client, state.ledger.past, pods, written, settings.namespace)
    writers = (statuses, object_statuses)
    watched = Watched(
        state,
        stores,
        recorder,
        cleaner,
        waker,
        requeue,
        placer,
        writers,
        (quota_store, quota_writer),
        reflectors,
        clock,
        lease,
    )
    return watched, apply, history


def _reflectors(
    settings: Settings, client: ApiClient, state: State, stores: Stores
) -> tuple[Reflector, tuple[Reflector, ...], tuple[Reflector, ...]]:
    """Return what keeps pods, what keeps the stores, and what keeps anything up to date."""
    cluster = tuple(cluster_reflectors(client, state))
    written = (
        *store_reflectors(client, settings.namespace, settings.configmaps, stores.configmaps),
        object_reflector(client, stores.objects, is_optional=not settings.needs_crd),
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
    metadata = stores.metadata(ref)
    if metadata is None:
        return
    is_entry = ref.kind is StoreKind.CONFIGMAP
    name = f"{ref.key}: " if is_entry else ""
    message = f"{name}what became of it cannot be written, it is tried again: {why}"
    recorder.warn_once(metadata, "NotWritten", message, CONFIG_MAP if is_entry else KIND)


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
    metadata = stores.metadata(notice.ref)
    if metadata is None:
        return  # It has just been removed.
    write = recorder.warn if notice.is_warning else recorder.note
    if notice.ref.kind is StoreKind.CONFIGMAP:
        write(metadata, notice.reason, f"{notice.ref.key}: {notice.message}")
    else:
        write(metadata, notice.reason, notice.message, KIND)
