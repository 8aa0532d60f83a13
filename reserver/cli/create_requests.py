"""Requests to create the reservations that flags and files describe, or to check their fit."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import typer

from reserver.cli import failure, formatting, line, lookup, milestone, output, serialization, table
from reserver.cli.failure import ExitStatus, Failed
from reserver.cli.manifests import Manifest, read_files, read_manifests
from reserver.cli.options import Output
from reserver.cli.progress import progress
from reserver.cli.spec_flags import SpecFlags, flag_of
from reserver.cli.table import Cell
from reserver.client import CallFailed, Client, ReservationInfo, Shortage, Spec
from reserver.errors import InvalidInput

Specs = Mapping[str, Spec]
"""What to hold, by name."""

Labels = Mapping[str, Mapping[str, str]]
"""Of objects, by name."""

_MEMBER = re.compile(r"reservations\[(\d{1,4})\]")


@dataclass(frozen=True, slots=True)
class CreateRequests:
    """The reservations asked for on the command line or in files.

    Attributes:
        name: given on the command line; may be empty.
        wanted: what the files ask for; empty if flags do.
        flags: that say what to hold.
        namespace: of owners that do not say theirs; empty for that of the kubeconfig's context.
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
            Exit: neither files nor flags say what to hold, or both do, or a file is broken.
        """
        try:
            if files and flags.are_given:
                problem = "says what to hold, and so do flags"
                raise Failed(ExitStatus.USAGE, f"--filename: {problem}; use one of them")
            if not files and not name:
                raise Failed(ExitStatus.USAGE, "NAME: is missing; give it, or a file: --filename")
            found, problems = read_manifests(read_files(files), name)
            if problems:
                lines = [f"{where}: {problem}" for where, problem in problems]
                raise Failed(ExitStatus.REFUSED, "\n".join(lines))
            if files and not found:
                raise Failed(
                    ExitStatus.REFUSED, f"{', '.join(files)}: has no reservation; write one"
                )
        except Failed as exc:
            failure.end(exc)
        return cls(name, found, flags, namespace)

    def specs(self, default_namespace: str) -> Specs:
        """Return the spec of each reservation, by name.

        Args:
            default_namespace: where neither a document nor the command line names one.

        Raises:
            Failed: some of it cannot be held; all of that is named.
        """
        namespace = self.namespace or default_namespace
        if self.wanted:
            return _read(self.wanted, namespace)
        try:
            spec = serialization.read(
                self.flags.document(namespace), self.name, namespace, time.time()
            )
        except InvalidInput as exc:
            raise flag_of(exc) from exc
        return {self.name: spec}

    @property
    def labels(self) -> Labels:
        """Those of the objects of files, by name."""
        return {one.name: one.labels for one in self.wanted}

    def manifests(self, default_namespace: str) -> list[dict[str, Any]]:
        """Return Reservation objects; arguments and errors are those of `specs`."""
        self.specs(default_namespace)
        namespace = self.namespace or default_namespace
        if not self.wanted:
            return [serialization.of_object(self.name, namespace, self.flags.document(namespace))]
        return [
            serialization.of_object(one.name, one.namespace or namespace, one.spec, one.labels)
            for one in self.wanted
        ]


def _read(each: Sequence[Manifest], namespace: str) -> Specs:
    specs: dict[str, Spec] = {}
    problems = []
    for one in each:
        try:
            if one.name in specs:
                raise InvalidInput("name", f"{one.name} is given twice", "give each name once")
            spec = serialization.read(one.spec, one.name, one.namespace or namespace, time.time())
            specs[one.name] = spec
        except InvalidInput as exc:
            problems.append(f"{one.where}: {exc.under(one.path) if one.path else exc}")
    if problems:
        raise Failed(ExitStatus.REFUSED, "\n".join(problems))
    return specs


async def create_each(
    client: Client,
    specs: Specs,
    labels: Labels,
    form: Output,
    request_id: str,
    *,
    no_wait: bool,
    force: bool,
    wait_s: float | None,
) -> None:
    """Create reservations one after the other; failures are independent.

    What can never fit is refused unless `force` is set: it would hold what there is of its node,
    for nobody. What waits for room is waited for, `wait_s` seconds each at most; None for not at
    all, and then it counts as done.

    Raises:
        Failed: some were refused, or still wait.
    """
    made: list[ReservationInfo] = []
    refused: list[Failed] = []
    async with progress(f"Creating {_count(specs)}"):
        for name, spec in specs.items():
            try:
                if not (force or no_wait):
                    await require_possible(client, name, spec)
                new = await client.create(
                    name,
                    spec,
                    request_id=request_id,
                    no_wait=no_wait,
                    labels=labels.get(name),
                )
                made.append(new)
            except (CallFailed, Failed) as exc:
                if failure.is_without_answer(exc):
                    _show_created(made, form, alone=False)
                    raise
                refused.append(failure.of(exc, name))
    await line.report(client, made)
    if output.is_for_programs(form):
        made, waiting = await milestone.in_force(client, made, wait_s)
        _show_created(made, form, alone=len(specs) == 1)
    else:
        _show_created(made, form, alone=len(specs) == 1)
        _, waiting = await milestone.in_force(client, made, wait_s)
    refused += waiting
    failure.raise_all(refused)


async def require_possible(client: Client, name: str, spec: Spec) -> None:
    """Refuse a reservation that would not fit an empty node.

    Raises:
        Failed: it would not.
        CallFailed: it cannot be said.
    """
    try:
        verdict = await client.capacity.what_if([spec])
    except CallFailed as exc:
        if exc.code == "PERMISSION_DENIED":  # Who may create need not have the right to ask.
            return
        raise
    for shortage in verdict.shortages:
        if shortage.never:
            remedy = "ask for less or for another node, or pass --force"
            remedy = await lookup.similar_node(client, spec.node) or remedy
            problem = f"{shortage.message.rstrip('.')}; it would never fit"
            raise Failed(ExitStatus.NO_ROOM, f"{name}: {problem}; {remedy}")


@contextmanager
def _by_name(specs: Specs) -> Iterator[None]:
    """Name reservations in errors of a set: ``reservations[1].spec.node`` is of the second."""
    try:
        yield
    except CallFailed as exc:
        names = list(specs)
        fields = {_named(field, names): text for field, text in exc.fields.items()}
        raise CallFailed(exc.code, exc.message, exc.reason, fields) from exc


def _named(field: str, names: Sequence[str]) -> str:
    found = _MEMBER.match(field)
    if found is None or int(found[1]) >= len(names):
        return field
    rest = field[found.end() :].lstrip(".").removeprefix("spec").lstrip(".")
    return ": ".join(filter(None, (names[int(found[1])], rest)))


async def create_set(
    client: Client, specs: Specs, labels: Labels, form: Output, request_id: str
) -> None:
    """Create reservations that are all backed, or none.

    Raises:
        CallFailed: none was created.
    """
    async with progress(f"Creating {_count(specs)}"):
        with _by_name(specs):
            made = await client.create_set(specs, request_id=request_id, labels=labels)
    _show_created(made, form, alone=False)


async def check_fit(client: Client, specs: Specs, form: Output) -> None:
    """Say whether reservations would all be backed.

    Raises:
        Failed: some lack room.
    """
    async with progress(f"Checking {_count(specs)}"):
        with _by_name(specs):
            verdict = await client.capacity.what_if(list(specs.values()))
    lacking = {each.index: each for each in verdict.shortages}
    if form is Output.NAME:
        output.names([name for at, name in enumerate(specs) if at not in lacking])
    elif output.is_for_programs(form):
        shortages = [
            {"name": name, "message": lacking[at].message, "never": lacking[at].never}
            for at, name in enumerate(specs)
            if at in lacking
        ]
        placements = {
            name: [part._asdict() for part in parts]
            for name, parts in zip(specs, verdict.placements, strict=True)
        }
        told = {"fits": verdict.fits, "placements": placements, "shortages": shortages}
        output.document(told, form)
    else:
        rows = [
            (name, formatting.places(verdict.placements[at]), *_verdict(lacking.get(at)))
            for at, name in enumerate(specs)
        ]
        table.show(("NAME", "NODE", "FITS", "MISSING"), rows)
    if not verdict.fits:
        raise typer.Exit(ExitStatus.NO_ROOM)


def _verdict(shortage: Shortage | None) -> tuple[Cell, str]:
    if shortage is None:
        return Cell("yes", "green"), ""
    return Cell("never" if shortage.never else "not now", "red"), shortage.message


def _show_created(made: Sequence[ReservationInfo], form: Output, *, alone: bool) -> None:
    if output.is_for_programs(form):
        if made:
            output.reservations(made, form, alone=alone)
    else:
        now = datetime.now(UTC)
        for each in made:
            typer.echo(f"{each.name} created: {formatting.one_line(each, now)}")
    for each in made:
        if not each.is_backed:
            failure.report(f"{each.name}: {each.message}")


def _count(specs: Specs) -> str:
    return f"{len(specs)} reservations" if len(specs) > 1 else f"reservation {next(iter(specs))}"
