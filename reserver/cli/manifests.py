"""Manifests: the documents of files, and the reservations that they describe."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reserver.cli.failure import Refused, WrongUsage
from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput
from reserver.k8s.objects import names
from reserver.printable import printable
from reserver.stores.codec import document as texts
from reserver.stores.object.codec import API_VERSION, KIND, check_labels, is_own

STDIN = "-"

_MOST_BYTES = 64 * 2**20
_BREAK = re.compile(r"^---(?=[ \t\r]|$)[^\n]*\n?", re.MULTILINE)
_SUFFIXES = {".json", ".yaml", ".yml"}


@dataclass(frozen=True, slots=True)
class ManifestDocument:
    """A document of a file.

    Attributes:
        where: ``FILE``, or ``FILE:NUMBER`` for a file with several, counted from 1.
        value: the content; None if it could not be read.
        problem: the reason why it could not be read.
    """

    where: str
    value: Any = None
    problem: InvalidInput | None = None

    @property
    def kind(self) -> str:
        """Of a Kubernetes object; empty for anything else."""
        return str(self.value.get("kind", "")) if isinstance(self.value, dict) else ""


def read_files(names: Iterable[str]) -> list[ManifestDocument]:
    """Return the documents of files, of the files of folders, and of standard input (``-``).

    Raises:
        Failed: a file cannot be read, or is empty.
    """
    documents = []
    for name in names:
        found = [each for file in _files(name) for each in _split(file, _content(file))]
        if not found:
            raise Refused(f"{name}: has no document; write a reservation")
        documents += found
    return documents


def read_text(name: str, text: str) -> list[ManifestDocument]:
    """Return the documents of a text, which is called `name`."""
    return list(_split(name, text))


def _files(name: str) -> list[str]:
    path = Path(name)
    try:
        if name == STDIN or not path.is_dir():
            return [name]
        return sorted(str(each) for each in path.iterdir() if each.suffix in _SUFFIXES)
    except OSError as exc:
        raise _unreadable(name, exc) from exc


def _unreadable(name: str, error: OSError) -> WrongUsage:
    return WrongUsage(f"--filename: {name} cannot be read: {error.strerror}")


def _content(name: str) -> str:
    try:
        if name == STDIN:
            raw = sys.stdin.buffer.read(_MOST_BYTES + 1)
        else:
            with Path(name).open("rb") as file:
                raw = file.read(_MOST_BYTES + 1)
    except OSError as exc:
        raise _unreadable(name, exc) from exc
    if len(raw) > _MOST_BYTES:
        raise Refused(f"{name}: is larger than 64 MiB; split it")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise Refused(f"{name}: is not UTF-8; save it as UTF-8") from exc


def _split(name: str, text: str) -> Iterator[ManifestDocument]:
    parts = [part for part in _BREAK.split(text) if not _is_empty(part)]
    for number, part in enumerate(parts, start=1):
        where = f"{name}:{number}" if len(parts) > 1 else name
        try:
            value = texts.parse(part, _MOST_BYTES)
        except InvalidInput as exc:
            yield ManifestDocument(where, problem=exc)
        else:
            yield from _items(where, value)


def _is_empty(text: str) -> bool:
    lines = (line.strip() for line in text.splitlines())
    return not any(line and not line.startswith("#") and line != "..." for line in lines)


def _items(where: str, value: Any) -> Iterator[ManifestDocument]:  # noqa: ANN401 - whatever YAML can hold
    """Yield the items of a list: a JSON list, a List of Kubernetes, or output of `get -o`."""
    items = value
    if isinstance(value, dict):
        is_list = str(value.get("kind", "")).endswith("List")
        is_ours = value.keys() == {"reservations"}
        items = value.get("items") if is_list else value["reservations"] if is_ours else None
    if not isinstance(items, list):
        yield ManifestDocument(where, value)
        return
    for index, item in enumerate(items):
        yield ManifestDocument(f"{where}[{index}]", item)


_OUR_FIELDS = {"name", "spec", "id", "etag", "author", "labels", "status"}
_KUBECTLS = "kubectl.kubernetes.io/"
_FORMS = "write a Reservation, or name and spec"


@dataclass(frozen=True, slots=True)
class Manifest:
    """A reservation in a document.

    Attributes:
        where: the place of the document.
        namespace: the namespace of owners without one; empty if the document names none.
        spec: in the form of docs/reservations.md, not yet checked.
        path: the path of the spec in the document.
        id: the id of the reservation that the document was printed from; may be empty.
        etag: its etag; may be empty.
        labels: labels of its object, without the labels that Reserver writes.
    """

    where: str
    name: str
    namespace: str
    spec: Any
    path: str = ""
    id: str = ""
    etag: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)


def read_manifests(
    documents: Iterable[ManifestDocument], name: str = ""
) -> tuple[list[Manifest], list[tuple[str, InvalidInput]]]:
    """Return the manifests of documents, and the errors of the others, each with its place.

    Args:
        documents: Reservations, ``{name, spec}`` or specs.
        name: of a spec without one.
    """
    found: list[Manifest] = []
    problems: list[tuple[str, InvalidInput]] = []
    for document in documents:
        try:
            if document.problem is not None:
                raise document.problem
            found.append(_manifest(document, name))
        except InvalidInput as exc:
            problems.append((document.where, exc))
    return found, problems


def _manifest(document: ManifestDocument, name: str) -> Manifest:
    value = document.value
    if not isinstance(value, dict):
        raise InvalidInput("", f"{shorten(str(value))!r} is not a reservation", _FORMS)
    if "kind" in value or "apiVersion" in value:
        return _of_object(document.where, value)
    if "spec" in value:
        if unknown := value.keys() - _OUR_FIELDS:
            raise InvalidInput(str(min(unknown)), "is not a field beside spec", _FORMS)
        own = _name(value.get("name"), "name")
        before = {name: str(value.get(name) or "") for name in ("id", "etag")}
        labels = _labels(value.get("labels"), "labels")
        return Manifest(document.where, own, "", value["spec"], "spec", labels=labels, **before)
    if not name:
        problem = "a spec alone has no name"
        raise InvalidInput("", problem, "give NAME on the command line, or write name and spec")
    return Manifest(document.where, _name(name, "NAME"), "", value)


def _of_object(where: str, value: dict[str, Any]) -> Manifest:
    kind, version = value.get("kind"), value.get("apiVersion")
    if (version, kind) != (API_VERSION, KIND):
        problem = f"{version} {kind} is not a reservation"
        raise InvalidInput("kind", problem, f"write {API_VERSION} {KIND}, or use kubectl apply")
    metadata = value.get("metadata")
    if not isinstance(metadata, dict):
        raise InvalidInput("metadata", "is missing", "write at least its name")
    own, namespace = identity(metadata)
    if "spec" not in value:
        raise InvalidInput("spec", "is missing", "write owners and resources")
    _check_annotations(metadata.get("annotations"))
    labels = _labels(metadata.get("labels"), "metadata.labels")
    return Manifest(where, own, namespace, value["spec"], "spec", labels=labels)


def kind_of(value: Any) -> tuple[str, str] | None:  # noqa: ANN401 - whatever YAML can hold
    """Return apiVersion and kind of an object of Kubernetes, None of anything else."""
    if not isinstance(value, dict) or not {"kind", "apiVersion"} & value.keys():
        return None
    return str(value.get("apiVersion", "")), str(value.get("kind", ""))


def _check_annotations(value: Any) -> None:  # noqa: ANN401 - whatever YAML can hold
    """Refuse annotations, which would be lost; kubectl's and Reserver's own are ignored."""
    said = {} if value is None else value
    if not isinstance(said, dict):
        raise InvalidInput("metadata.annotations", f"{said!r:.60} is not a mapping", "remove it")
    for key in said:
        if not is_own(str(key)) and not str(key).startswith(_KUBECTLS):
            problem = (
                f"{printable(str(key)):.60}: reserver sends no annotations, so it would be lost"
            )
            remedy = "write a label or spec.description, or use kubectl apply"
            raise InvalidInput("metadata.annotations", problem, remedy)


def _labels(value: Any, path: str) -> dict[str, str]:  # noqa: ANN401 - whatever YAML can hold
    said = {} if value is None else value
    if not isinstance(said, dict):
        raise InvalidInput(path, f"{said!r:.60} is not a mapping", "write NAME: VALUE")
    for key, each in said.items():
        if not isinstance(key, str) or not isinstance(each, str):
            problem = f"{key}: {each!r:.60} is not text"
            raise InvalidInput(path, problem, "write key and value in quotes")
    labels = {key: each for key, each in said.items() if not is_own(key)}
    check_labels(labels, path)
    return labels


def identity(metadata: Mapping[str, Any]) -> tuple[str, str]:
    """Return name and namespace of an object; the namespace may be empty.

    Raises:
        InvalidInput: no object can be called that.
    """
    name, namespace = _name(metadata.get("name"), "metadata.name"), metadata.get("namespace")
    if namespace is None:
        return name, ""
    namespace = _text(namespace, "metadata.namespace")
    names.check_label(namespace, "metadata.namespace", "a namespace")
    return name, namespace


def _name(value: Any, path: str) -> str:  # noqa: ANN401 - whatever YAML can hold
    name = _text(value, path)
    names.check_subdomain(name, path, "a reservation's name")
    return name


def _text(value: Any, path: str) -> str:  # noqa: ANN401 - as above
    if not isinstance(value, str) or not value:
        problem = "is missing" if value is None else f"{value!r:.60} is not a name"
        raise InvalidInput(path, problem, "write a name")
    return value
