"""Reads the reservations that documents describe."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from reserver.cli.documents import Document
from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput
from reserver.printable import printable
from reserver.wire.k8s import names
from reserver.wire.spec.object import API_VERSION, KIND, check_labels, is_own

_OUR_FIELDS = {"name", "spec", "id", "etag", "author", "labels", "status"}
_KUBECTLS = "kubectl.kubernetes.io/"
_FORMS = "write a Reservation, or name and spec"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A reservation that somebody asks for.

    Attributes:
        where: where it is asked for.
        name: its name.
        namespace: of owners that do not say theirs; empty where the document names none.
        spec: in the form of docs/reservations.md, not yet checked.
        path: where the spec stands in the document.
        id: of the reservation that the document was printed from; empty if it does not say.
        etag: the same.
        labels: of its object, without those that Reserver itself writes.
    """

    where: str
    name: str
    namespace: str
    spec: Any
    path: str = ""
    id: str = ""
    etag: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)


def wanted(
    documents: Iterable[Document], name: str = ""
) -> tuple[list[Wanted], list[tuple[str, InvalidInput]]]:
    """Return what documents ask for, and what is wrong with all others, each with where it stands.

    Args:
        documents: Reservations, ``{name, spec}`` or specs.
        name: of a spec without one.
    """
    found: list[Wanted] = []
    problems: list[tuple[str, InvalidInput]] = []
    for document in documents:
        try:
            if document.problem is not None:
                raise document.problem
            found.append(_read(document, name))
        except InvalidInput as exc:
            problems.append((document.where, exc))
    return found, problems


def _read(document: Document, name: str) -> Wanted:
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
        return Wanted(document.where, own, "", value["spec"], "spec", labels=labels, **before)
    if not name:
        problem = "a spec alone has no name"
        raise InvalidInput("", problem, "give NAME on the command line, or write name and spec")
    return Wanted(document.where, _name(name, "NAME"), "", value)


def _of_object(where: str, value: dict[str, Any]) -> Wanted:
    kind, version = value.get("kind"), value.get("apiVersion")
    if (version, kind) != (API_VERSION, KIND):
        problem = f"{version} {kind} is not a reservation"
        raise InvalidInput("kind", problem, f"write {API_VERSION} {KIND}, or use kubectl apply")
    metadata = value.get("metadata")
    if not isinstance(metadata, dict):
        raise InvalidInput("metadata", "is missing", "write at least its name")
    own, namespace = identity(metadata)
    if "spec" not in value:
        raise InvalidInput("spec", "is missing", "say what to hold, for whom")
    _check_annotations(metadata.get("annotations"))
    labels = _labels(metadata.get("labels"), "metadata.labels")
    return Wanted(where, own, namespace, value["spec"], "spec", labels=labels)


def _check_annotations(value: Any) -> None:  # noqa: ANN401 - whatever YAML can hold
    """Refuse annotations: they would be lost. Those of kubectl and our own tell nobody anything."""
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
