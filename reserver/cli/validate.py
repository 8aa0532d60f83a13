"""`reserver validate`: checks documents with Reserver's own decoders, without a cluster."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any

import typer

from reserver.cli import failure, output
from reserver.cli.failure import ExitStatus
from reserver.cli.manifests import ManifestDocument, identity, kind_of, read_files, read_manifests
from reserver.cli.options import FILES
from reserver.cli.output import Report, ReportOption
from reserver.cli.table import counted
from reserver.errors import InvalidInput, under
from reserver.k8s.objects.limits import HOME, check_memory
from reserver.k8s.objects.objects import LabelledConfigMap, LabelledMetadata, decode
from reserver.maintenance import codec as windows
from reserver.reservations.reservation import Ref, Reservation
from reserver.settings.flags import flag
from reserver.stores.codec import spec_codec
from reserver.stores.codec.document import parse
from reserver.stores.configmap.entries import STORE_LABEL, read_key
from reserver.stores.entries import Entries
from reserver.stores.object.codec import API_VERSION, KIND, ReservationObject
from reserver.stores.object.entries import read_object

_CONFIGMAP = ("v1", "ConfigMap")
_UNNAMED = "reservation"
_PAST, _FUTURE = "lies in the past, so nothing", "write a time in the future"


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidateFlags:
    """The stores that `reserver serve` would read."""

    reserver_namespace: str = flag(
        "Reserver's own namespace, whose reservations may have owners anywhere.",
        default="reserver-system",
        metavar="NAME",
        in_environment=True,
    )
    configmaps: tuple[str, ...] = flag(
        "A ConfigMap that `reserver serve --configmap` reads.", default=(), metavar="NAMESPACE/NAME"
    )


def validate(
    flags: ValidateFlags, filename: Annotated[list[str], FILES], form: ReportOption = Report.TABLE
) -> None:
    """Check files for errors, without a cluster.

    Files hold store ConfigMaps in any of their three forms, Reservations, MaintenanceWindows,
    documents with `name` and `spec`, or specs alone. Each error names the field, its value and the
    remedy. Only a cluster can tell whether a node exists and has room; ask `create
    --dry-run=server`.

    Exit status: 0 all files are valid; 1 some are not, and the errors say why; 2 wrong usage.

    Examples:
        reserver validate -f reservations/
        kubectl kustomize . | reserver validate -f -
    """
    found = judge(read_files(filename), flags)
    _show(found, form)
    if found.problems:
        raise typer.Exit(ExitStatus.REFUSED)


@dataclass(frozen=True, slots=True)
class InvalidField:
    """An invalid field.

    Attributes:
        document: ``FILE`` or ``FILE:NUMBER``.
        key: the data key of a ConfigMap; else empty.
        field: the path of the field; empty for the whole document.
        problem: the problem, with the value quoted.
        remedy: the text to write instead.
    """

    document: str
    key: str
    field: str
    problem: str
    remedy: str

    def __str__(self) -> str:
        """Return one line."""
        where = ": ".join(filter(None, (self.document, self.key, self.field)))
        return f"{where}: {self.problem}; {self.remedy}"


def judge(documents: Iterable[ManifestDocument], readers: ValidateFlags) -> Validation:
    """Validate documents; a broken entry does not affect others."""
    found = Validation(readers, time.time())
    for document in documents:
        try:
            found.take(document)
        except InvalidInput as exc:
            found.refuse(document.where, "", exc)
    return found


@dataclass(slots=True)
class Validation:
    """Validates documents at a moment, and collects the results.

    Attributes:
        readers: the stores that Reserver reads.
        now: unix seconds.
        reservations: the number of valid reservations.
        windows: the number of valid MaintenanceWindows.
        problems: the invalid fields.
        notes: further remarks, each with its document.
    """

    readers: ValidateFlags
    now: float
    reservations: int = 0
    windows: int = 0
    problems: list[InvalidField] = field(default_factory=list)
    notes: list[tuple[str, str]] = field(default_factory=list)

    def refuse(self, where: str, key: str, error: InvalidInput) -> None:
        """Add an invalid field of a document, or of a data key."""
        self.problems.append(InvalidField(where, key, error.path, error.problem, error.remedy))

    def take(self, document: ManifestDocument) -> None:
        """Judge a document.

        Raises:
            InvalidInput: it is broken as a whole.
        """
        if document.problem is not None:
            raise document.problem
        kind = kind_of(document.value)
        if kind == _CONFIGMAP:
            self._configmap(document)
        elif kind == (API_VERSION, KIND):
            found = _object(document.value, self.now, self.readers.reserver_namespace)
            if found.ignored:  # A CRD would drop it.
                with under("spec"):
                    spec_codec.read(document.value["spec"], found.reservations[0].ref, self.now)
            self._entries(document.where, "", found)
        elif kind == (API_VERSION, windows.KIND):
            windows.read_object(decode(windows.WindowObject, json.dumps(document.value).encode()))
            self.windows += 1
        elif kind is not None and kind[1] != KIND:
            self.notes.append((document.where, f"skipped: {' of '.join(filter(None, kind[::-1]))}"))
        else:
            self.reservations += _spec(document, self.now)

    def _configmap(self, document: ManifestDocument) -> None:
        configmap = decode(LabelledConfigMap, json.dumps(document.value).encode())
        metadata = configmap.metadata
        namespace = metadata.namespace or self.readers.reserver_namespace
        found = [
            (key, text, read_key(Ref(namespace, metadata.name, key), text, self.now))
            for key, text in (configmap.data or {}).items()
        ]
        is_named = f"{namespace}/{metadata.name}" in self.readers.configmaps
        unread = None if is_named else self._unread(metadata)
        if unread is not None and not any(entries.reservations for _, _, entries in found):
            self.notes.append((document.where, f"skipped, a ConfigMap: {unread.problem}"))
            return
        if unread is not None:
            raise unread
        for key, text, entries in found:
            self._entries(document.where, key, entries)
            if entries.ignored:
                self.notes.append((f"{document.where}: {key}", entries.ignored))
            if namespace == self.readers.reserver_namespace and _lacks_namespace(text):
                told = f"an owner names no namespace, so its pods are those of {namespace}"
                self.notes.append((f"{document.where}: {key}", told))

    def _unread(self, metadata: LabelledMetadata) -> InvalidInput | None:
        """Return why reserver does not read a ConfigMap; None if it does."""
        else_ = "or name it as --configmap, here and to `reserver serve`"
        if (metadata.labels or {}).get(STORE_LABEL) != "true":
            remedy = f'write {STORE_LABEL}: "true", {else_}'
            problem = f"lacks {STORE_LABEL}, without which nobody reads it"
            return InvalidInput("metadata.labels", problem, remedy)
        if metadata.namespace not in {"", self.readers.reserver_namespace}:
            problem = f"{metadata.namespace!r} is not reserver's own: nobody reads it there"
            remedy = f"write {self.readers.reserver_namespace}, {else_}"
            return InvalidInput("metadata.namespace", problem, remedy)
        return None

    def _entries(self, where: str, key: str, entries: Entries) -> None:
        """Count the reservations of a data key or an object, and add what Reserver refuses."""
        over = [each for each in entries.reservations if _is_over(each, self.now)]
        self.reservations += len(entries.reservations) - len(over)
        for refused in entries.problems:
            self.refuse(where, key, refused.error)
        if entries.more_problems:
            more = f"{entries.more_problems} more items are broken"
            self.refuse(where, key, InvalidInput("", more, "correct those above first"))
        for each in over:
            item = each.ref.item
            path = f"[{item}].expire" if item else "expiresAt" if key else "spec.expiresAt"
            self.refuse(where, key, InvalidInput(path, f"{_PAST} is held", _FUTURE))
        for each in entries.reservations:
            self._check_meant(where, key, each)

    def _check_meant(self, where: str, key: str, item: Reservation) -> None:
        """Refuse an item of a list with an amount that nobody means; Reserver itself holds it."""
        memory = item.resources.get("memory", 0) if item.ref.item else 0
        try:
            check_memory(memory, str(memory), f"[{item.ref.item}]: memory", HOME.least_memory)
        except InvalidInput as exc:
            remedy = "write bytes: 4Gi is 4294967296"
            self.refuse(where, key, InvalidInput(exc.path, exc.problem, remedy))


def _is_over(reservation: Reservation, now: float) -> bool:
    return reservation.expires_at is not None and reservation.expires_at <= now


def _lacks_namespace(text: str) -> bool:
    """Return whether an entry has owners that leave their namespace to its ConfigMap."""
    try:
        value = parse(text)
    except InvalidInput:
        return False
    owners = value.get("owners") if isinstance(value, dict) else None
    return any(
        not any(isinstance(part, dict) and part.get("namespace") for part in owner.values())
        for owner in owners or ()
        if isinstance(owner, dict)
    )


def _show(findings: Validation, form: Report) -> None:
    """Print the results: errors on standard error, unless a program reads them."""
    if form is not Report.TABLE:
        told = {
            "valid": not findings.problems,
            "reservations": findings.reservations,
            "windows": findings.windows,
            "problems": [asdict(each) for each in findings.problems],
            "notes": [{"document": where, "note": note} for where, note in findings.notes],
        }
        output.document(told, form)
        return
    for problem in findings.problems:
        failure.report(str(problem))
    for where, note in findings.notes:
        failure.report(f"{where}: {note}")
    valid = findings.reservations + findings.windows
    typer.echo(f"{valid} valid, {counted(len(findings.problems), 'problem')}")


def _object(value: Any, now: float, home: str) -> Entries:  # noqa: ANN401 - as above
    found = decode(ReservationObject, json.dumps(value).encode())
    _, namespace = identity(value.get("metadata") or {})
    if not namespace:  # The namespace that it is applied to decides, which is unknown here.
        value = {**value, "metadata": {**value["metadata"], "namespace": home}}
        found = decode(ReservationObject, json.dumps(value).encode())
    return read_object(found, now, home)


def _spec(document: ManifestDocument, now: float) -> int:
    found, problems = read_manifests([document], _UNNAMED)
    if problems:
        raise problems[0][1]
    for each in found:
        try:
            ref = Ref.of_object(each.namespace or "default", each.name)
            if _is_over(spec_codec.read(each.spec, ref, now), now):
                raise InvalidInput("expiresAt", f"{_PAST} would be held", _FUTURE)
        except InvalidInput as exc:
            raise exc.under(each.path) if each.path else exc from exc
    return len(found)
