"""The reservations that flags and files describe, to be created, and errors in what flags say."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from reserver.cli import failure, serialization
from reserver.cli.failure import Failed, Refused, WrongUsage, did_you_mean
from reserver.cli.manifests import Manifest, ManifestDocument, read_files, read_manifests
from reserver.cli.similar import RESOURCES
from reserver.cli.spec_flags import SpecFlags
from reserver.cli.table import counted
from reserver.client import Spec
from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput
from reserver.settings.flags import declared
from reserver.stores.object.codec import KIND

_EXAMPLE = "reserver create web --owner pod/web-0 --cpu 2"


class NewReservation(NamedTuple):
    """A reservation to be created.

    Attributes:
        namespace: of its object; empty for Reserver's own.
        spec: what to hold.
    """

    name: str
    namespace: str
    spec: Spec
    labels: Mapping[str, str] = MappingProxyType({})


def namespace_of(spec: Spec, named: str) -> str:
    """Return the namespace to write in: the named one, or else the owners'.

    Owners of several namespaces fit into Reserver's own only.
    """
    of_owners = {each.namespace for each in spec.owners}
    return named or (of_owners.pop() if len(of_owners) == 1 else "")


@dataclass(frozen=True, slots=True)
class CreateRequests:
    """The reservations asked for on the command line or in files.

    Attributes:
        name: the name on the command line; may be empty.
        wanted: the reservations of files; empty with flags.
        flags: the flags that describe the reservation.
        namespace: the namespace of owners without one; empty for the kubeconfig's context.
    """

    name: str
    wanted: Sequence[Manifest]
    flags: SpecFlags
    namespace: str

    @classmethod
    def of(
        cls, name: str, files: Sequence[str], flags: SpecFlags, namespace: str
    ) -> CreateRequests:
        """Read files; report all their problems at once.

        Raises:
            Failed: neither files nor flags say what to hold, or both do, or a file is broken.
        """
        if files and flags.are_given:
            raise WrongUsage(
                "--filename: excludes flags that describe a reservation; use one of them"
            )
        if not files and not name:
            raise WrongUsage(
                f"NAME: is missing; write for example `{_EXAMPLE}`, or give a file: -f"
            )
        documents = [each for file in files for each in _documents(file)]
        found, problems = read_manifests(documents, name)
        if problems:
            lines = [f"{where}: {problem}" for where, problem in problems]
            raise Refused("\n".join(lines))
        if files and not found:
            raise Refused(f"{', '.join(files)}: has no reservation; write one")
        return cls(name, found, flags, namespace)

    def reservations(self, default_namespace: str) -> list[NewReservation]:
        """Return what to create.

        Args:
            default_namespace: where neither a document nor the command line names one.

        Raises:
            Failed: some of it cannot be held; all of that is named.
        """
        namespace = self.namespace or default_namespace
        if self.wanted:
            return _read(self.wanted, self.namespace, namespace)
        spec = read_flags(self.flags.document(namespace), self.name, namespace)
        return [NewReservation(self.name, namespace_of(spec, self.namespace), spec)]

    def manifests(self, default_namespace: str) -> list[dict[str, Any]]:
        """Return Reservation objects; arguments and errors as in `reservations`."""
        self.reservations(default_namespace)
        namespace = self.namespace or default_namespace
        if not self.wanted:
            return [serialization.of_object(self.name, namespace, self.flags.document(namespace))]
        return [
            serialization.of_object(one.name, one.namespace or namespace, one.spec, one.labels)
            for one in self.wanted
        ]


def _documents(file: str) -> list[ManifestDocument]:
    """Return the documents of a file; of a folder, the possible reservations."""
    found = read_files([file])
    if not Path(file).is_dir():
        return found
    own = [each for each in found if each.kind in {"", KIND}]
    if others := len(found) - len(own):
        failure.report(f"{file}: skips {counted(others, 'document')} of other kinds")
    return own


def _read(each: Sequence[Manifest], named: str, default: str) -> list[NewReservation]:
    found: dict[tuple[str, str], NewReservation] = {}
    problems = []
    for one in each:
        try:
            own = one.namespace or named
            spec = serialization.read(one.spec, one.name, own or default, time.time())
            new = NewReservation(one.name, namespace_of(spec, own), spec, one.labels)
            if (new.namespace, new.name) in found:
                raise InvalidInput("name", f"{one.name} is given twice", "give each name once")
            found[new.namespace, new.name] = new
        except InvalidInput as exc:
            problems.append(f"{one.where}: {exc.under(one.path) if one.path else exc}")
    if problems:
        raise Refused("\n".join(problems))
    return list(found.values())


def read_flags(document: Mapping[str, Any], name: str, namespace: str) -> Spec:
    """Return the spec in a document that was made from flags.

    Raises:
        Failed: the value of a flag is not acceptable.
    """
    try:
        return serialization.read(document, name, namespace, time.time())
    except InvalidInput as exc:
        raise flag_of(exc) from exc


def flag_of(error: InvalidInput) -> Failed:
    """Return an error in a document that was made from flags, as an error of the flag."""
    flags = {"": "NAME"} | {each.path: each.name for each in declared(SpecFlags)}
    word, _, key = re.sub(r"\[", ".", error.path).partition(".")
    if word == "resources" and not error.path.endswith(("cpu", "memory")):
        return _of_resources(key, error)
    part = next((name for path, name in flags.items() if path.startswith(f"{word}.")), f"--{word}")
    flag = flags.get(error.path) or flags.get(word, part)
    return WrongUsage(f"{flag}: {error.problem}; {error.remedy}")


def _of_resources(name: str, error: InvalidInput) -> Failed:
    if not name:
        problem = f"--cpu, --memory, --resource: the reservation {error.problem}"
        return WrongUsage(f"{problem}; give an amount, e.g. --cpu 2")
    remedy = did_you_mean(name, RESOURCES, error.remedy)
    return WrongUsage(f"--resource: {shorten(name)!r} {error.problem}; {remedy}")
