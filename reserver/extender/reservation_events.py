"""Events about reservations, on the objects of their entries."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import structlog

from reserver.errors import InvalidInput
from reserver.extender.placing_pass import Notice
from reserver.k8s.events import Recorder
from reserver.k8s.objects.objects import CONFIG_MAP, Metadata, ObjectKind
from reserver.reservations.enums import StoreKind
from reserver.reservations.reservation import Ref, Reservation
from reserver.stores import quota_codec
from reserver.stores.edits import Deletion, Tidying
from reserver.stores.entries import EntryProblem
from reserver.stores.object.codec import API_VERSION, RESERVATION
from reserver.stores.stores import Stores

log = structlog.get_logger(__name__)

_QUOTA = ObjectKind(API_VERSION, quota_codec.KIND)


def unread(
    recorder: Recorder, metadata: Metadata, problem: EntryProblem, kind: ObjectKind = CONFIG_MAP
) -> None:
    """Report why an entry or a Reservation is not enforced."""
    recorder.report(metadata, problem.ref.key, problem.error, kind)


def placed(recorder: Recorder, stores: Stores, notice: Notice) -> None:
    """Report the place of a reservation, or why it has none."""
    write = recorder.warn if notice.is_warning else recorder.note
    _announce(stores, notice.ref, notice.reason, notice.message, write)


def unwritten(recorder: Recorder, stores: Stores, ref: Ref, why: str) -> None:
    """Report that the status of a reservation cannot be written."""
    message = f"what became of it cannot be written, it is tried again: {why}"
    _announce(stores, ref, "NotWritten", message, recorder.warn_once)


def assumed(recorder: Recorder, home: str, metadata: Metadata, ref: Ref) -> None:
    """Warn of owners without a namespace, which default to pods of Reserver's own namespace."""
    if ref.namespace == home:
        reason = f"an owner names no namespace, so only pods of {home} may claim it"
        message = f"{ref.key}: {reason}; write the namespace of its pods"
        recorder.warn_once_ever(f"{ref}#{metadata.uid}", metadata, "NoNamespace", message)


def expiring(
    recorder: Recorder, stores: Stores, reservation: Reservation, message: str, idle_since: float
) -> None:
    """Warn of a reservation that ends soon, once for each cause, even after a restart.

    Args:
        stores: the stores of the entries.
        idle_since: since when no pod has used it, unix seconds, if released when idle; else 0.
    """
    cause = f"{reservation.edition}#{int(idle_since)}" if idle_since else reservation.edition
    reason = "ReleasedSoon" if idle_since else "ExpiresSoon"
    write = partial(recorder.warn_once_ever, cause)
    _announce(stores, reservation.ref, reason, message, write)


def little_used(recorder: Recorder, stores: Stores, reservation: Reservation, message: str) -> None:
    """Report that pods have used little of a reservation."""
    _announce(stores, reservation.ref, "LowUse", message, recorder.warn)


def over(recorder: Recorder, stores: Stores, edit: Tidying) -> None:
    """Report the outcomes of the reservations that an edit has removed."""
    if isinstance(edit, Deletion):
        ref, message = edit.ref, ", ".join(map(str, edit.endings)) or edit.reason.lower()
        deleted = Metadata(ref.key, ref.namespace, edit.uid, edit.version)
        recorder.note(deleted, edit.reason, f"deleted: {message}", RESERVATION)
        return
    for ending in edit.endings:
        ref, reason = ending.reservation.ref, ending.outcome.value
        _announce(stores, ref, reason, f"removed: {ending}", recorder.note)


def unread_quota(recorder: Recorder, metadata: Metadata, error: InvalidInput) -> None:
    """Report an invalid quota, in the log as well."""
    name = f"{metadata.namespace}/{metadata.name}"
    log.error("quota limits nothing", quota=name, why=str(error))
    recorder.warn(metadata, "InvalidQuota", f"it limits nothing: {error}", _QUOTA)


def _announce(
    stores: Stores,
    ref: Ref,
    reason: str,
    message: str,
    write: Callable[[Metadata, str, str, ObjectKind], None],
) -> None:
    subject = stores.subject(ref)
    if subject is not None:  # Else the object has just been removed.
        metadata, kind = subject
        item = f"[{ref.item}]" if ref.item else ""
        name = f"{ref.key}{item}: " if ref.kind is StoreKind.CONFIGMAP else ""
        write(metadata, reason, f"{name}{message}", kind)
