"""What `reserver validate` finds in documents, with the decoders of reserver itself."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import typer

from reserver.cli import failure, output
from reserver.cli.documents import Document
from reserver.cli.options import Report
from reserver.cli.wanted import wanted
from reserver.errors import InvalidInput
from reserver.reservations.reservation import Ref
from reserver.wire.k8s.objects import ConfigMapObject, decode
from reserver.wire.spec import specform
from reserver.wire.spec.entries import Entries, read_key
from reserver.wire.spec.object import API_VERSION, KIND, ReservationObject, read_object

_CONFIGMAP = ("v1", "ConfigMap")
_UNNAMED = "reservation"


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is wrong.

    Attributes:
        document: ``FILE`` or ``FILE:NUMBER``.
        key: the data key of a ConfigMap; else empty.
        field: the path of the field; empty for all of it.
        problem: what is wrong, with the value quoted.
        remedy: what to write instead.
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


@dataclass(frozen=True, slots=True)
class Findings:
    """What documents hold.

    Attributes:
        reservations: how many are valid.
        problems: what is wrong with all others.
        others: documents of other kinds, and which.
    """

    reservations: int
    problems: tuple[Problem, ...]
    others: tuple[tuple[str, str], ...]


def judge(documents: Iterable[Document], home: str) -> Findings:
    """Return what documents contain; a broken entry does not affect others.

    Args:
        documents: of files.
        home: reserver's own namespace.
    """
    reservations = 0
    problems: list[Problem] = []
    others: list[tuple[str, str]] = []
    now = time.time()
    for document in documents:
        kind = _kind(document.value)
        try:
            if document.problem is not None:
                raise document.problem
            if kind == _CONFIGMAP:
                for key, entries in _configmap(document.value, now):
                    reservations += len(entries.reservations)
                    problems += _problems(document.where, key, entries)
            elif kind == (API_VERSION, KIND):
                entries = _object(document.value, now, home)
                reservations += len(entries.reservations)
                problems += _problems(document.where, "", entries)
            elif kind is not None and kind[1] != KIND:
                others.append((document.where, " ".join(filter(None, kind))))
            else:
                reservations += _spec(document, now)
        except InvalidInput as exc:
            problems.append(Problem(document.where, "", exc.path, exc.problem, exc.remedy))
    return Findings(reservations, tuple(problems), tuple(others))


def show(findings: Findings, form: Report) -> None:
    """Print what was found: what is wrong to standard error, unless a program reads it."""
    if form is not Report.TABLE:
        told = {
            "valid": not findings.problems,
            "reservations": findings.reservations,
            "problems": [asdict(each) for each in findings.problems],
        }
        output.document(told, form)
        return
    for problem in findings.problems:
        failure.tell(str(problem))
    for where, kind in findings.others:
        failure.tell(f"{where}: passed over, a {kind}")
    typer.echo(f"{findings.reservations} valid, {len(findings.problems)} problems")


def _kind(value: Any) -> tuple[str, str] | None:  # noqa: ANN401 - whatever YAML can hold
    """Return apiVersion and kind of an object of Kubernetes, None of anything else."""
    if not isinstance(value, dict) or not {"kind", "apiVersion"} & value.keys():
        return None
    return str(value.get("apiVersion", "")), str(value.get("kind", ""))


def _configmap(value: Any, now: float) -> Iterator[tuple[str, Entries]]:  # noqa: ANN401 - as above
    configmap = decode(ConfigMapObject, json.dumps(value).encode())
    metadata = configmap.metadata
    namespace = metadata.namespace or "default"
    for key, text in (configmap.data or {}).items():
        yield key, read_key(Ref(namespace, metadata.name, key), text, now)


def _object(value: Any, now: float, home: str) -> Entries:  # noqa: ANN401 - as above
    found = decode(ReservationObject, json.dumps(value).encode())
    if not found.metadata.name:
        raise InvalidInput("metadata.name", "is missing", "write a name")
    if (
        not found.metadata.namespace
    ):  # The namespace that it is applied to decides, which is unknown here.
        value = {**value, "metadata": {**value["metadata"], "namespace": home}}
        found = decode(ReservationObject, json.dumps(value).encode())
    return read_object(found, now, home)


def _spec(document: Document, now: float) -> int:
    found, problems = wanted([document], _UNNAMED)
    if problems:
        raise problems[0][1]
    for each in found:
        try:
            specform.read(each.spec, Ref.of_object(each.namespace or "default", each.name), now)
        except InvalidInput as exc:
            raise exc.under(each.path) if each.path else exc from exc
    return len(found)


def _problems(where: str, key: str, entries: Entries) -> Iterator[Problem]:
    for each in entries.problems:
        yield Problem(where, key, each.error.path, each.error.problem, each.error.remedy)
    if entries.more_problems:
        more = f"{entries.more_problems} more items are broken"
        yield Problem(where, key, "", more, "mend the ones above first")
