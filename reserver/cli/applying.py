"""Creates and changes reservations so that they match what somebody wrote."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import typer

from reserver.cli import asking, failure, manifest, naming, output, words
from reserver.cli.failure import Failed
from reserver.cli.options import Output
from reserver.cli.patience import patience
from reserver.cli.spec_flags import SpecFlags, flag_of
from reserver.cli.wanted import Wanted
from reserver.client import CallFailed, Client, Reservation, Selection
from reserver.errors import InvalidInput

_NOT_THERE = "NO_SUCH_RESERVATION"
_LIFETIME = ("ttl", "expiresAt")
_EXCLUDED: Mapping[str, Sequence[str]] = {
    "node": ["placement"],
    "placement": ["node"],
    "ttl": ["expiresAt"],
    "expiresAt": ["ttl"],
}


class Applying:
    """Makes reservations what documents say; failures are independent.

    Args:
        client: asks reserver.
        namespace: of owners that do not say theirs.
        force: create what can never fit, too.
        dry_run: change nothing.
    """

    def __init__(self, client: Client, namespace: str, *, force: bool, dry_run: bool) -> None:
        self._client = client
        self._namespace = namespace
        self._force = force
        self._dry_run = dry_run

    async def apply(self, one: Wanted) -> tuple[str, Reservation | None]:
        """Create a reservation, or change it if it says something else.

        Returns:
            What was done in the words of kubectl, and the reservation; None if there is none yet.

        Raises:
            CallFailed: it was refused.
        """
        namespace = one.namespace or self._namespace
        old = await self._existing(one)
        if old is None:
            return "created", await self._create(one, namespace)
        document = kept(one.spec, old)
        is_labelled = one.labels.items() <= old.labels.items()
        if is_labelled and manifest.says_the_same(document, one.name, namespace, old):
            return "unchanged", old
        if self._dry_run:
            return "configured", old
        spec = manifest.read(document, one.name, namespace, time.time())
        etag = one.etag or old.etag
        new = await self._client.update(old.id, spec, etag=etag, labels=one.labels)
        is_same = (new.spec, new.labels) == (old.spec, old.labels)
        return "unchanged" if is_same else "configured", new

    async def _existing(self, one: Wanted) -> Reservation | None:
        """Return the reservation that a document is about: by its id, else by its name."""
        names = [one.id, f"{one.namespace}/{one.name}" if one.namespace else "", one.name]
        for name in filter(None, names):
            try:
                return await self._client.get(name)
            except CallFailed as exc:
                if exc.reason != _NOT_THERE:
                    raise
        return None

    async def _create(self, one: Wanted, namespace: str) -> Reservation | None:
        spec = manifest.read(one.spec, one.name, namespace, time.time())
        if not self._force:
            await asking.require_possible(self._client, one.name, spec)
        if self._dry_run:
            return None
        return await self._client.create(one.name, spec, labels=one.labels)


def kept(document: Any, old: Reservation) -> Any:  # noqa: ANN401 - whatever YAML can hold
    """Return a spec with the end that its reservation has, unless it names a moment, or none.

    A duration counts from the creation; otherwise each `apply` would prolong what it applies.
    """
    if not isinstance(document, Mapping) or document.get("expiresAt") is not None:
        return document
    if str(document.get("ttl")) == "0":
        return document
    said = {name: value for name, value in document.items() if name not in _LIFETIME}
    before = manifest.show_spec(old.spec)
    return said | {name: before[name] for name in _LIFETIME if name in before}


async def apply_each(applying: Applying, wanted: Sequence[Wanted], form: Output, note: str) -> None:
    """Apply documents one after the other.

    Args:
        applying: how.
        wanted: what they ask for.
        form: how to print what comes of it.
        note: stands behind each line; may be empty.

    Raises:
        Failed: some were refused.
    """
    shown: list[Reservation] = []
    refused: list[Failed] = []
    for one in wanted:
        try:
            async with patience(f"Applying {one.name}"):
                word, reservation = await applying.apply(one)
        except (CallFailed, Failed, InvalidInput) as exc:
            if isinstance(exc, CallFailed) and failure.is_without_answer(exc):
                raise
            refused.append(failure.of(exc, one.name))
            continue
        if reservation is not None:
            shown.append(reservation)
        if not output.is_for_programs(form):
            tell(one.name, word if not note else f"{word} {note}", None if note else reservation)
    if output.is_for_programs(form):
        output.reservations(shown, form, alone=len(wanted) == 1)
    failure.raise_all(refused)


def tell(name: str, word: str, reservation: Reservation | None) -> None:
    """Print what became of a reservation; of one that is unchanged, no more than that."""
    state = ""
    if reservation is not None and word != "unchanged":
        state = f": {words.one_line(reservation, datetime.now(UTC))}"
    typer.echo(f"{name} {word}{state}")
    if state and reservation is not None and not reservation.is_backed:
        failure.tell(f"{name}: {reservation.message}")


def show(name: str, word: str, reservation: Reservation, form: Output) -> None:
    """Print a reservation, and what became of it: to people only if that is not empty."""
    if output.is_for_programs(form):
        output.reservations([reservation], form, alone=True)
    elif word:
        tell(name, word, reservation)


async def update_by_flags(
    client: Client, name: str, selection: Selection, flags: SpecFlags, namespace: str
) -> Reservation:
    """Change the fields of a reservation that flags give.

    Raises:
        Failed: there is no such reservation, or a flag is wrong.
        CallFailed: it was refused.
    """
    changes = flags.changes(namespace)
    old = await naming.by_name(client, name, client.get, selection)
    document = merged(manifest.show_spec(old.spec), changes)
    try:
        spec = manifest.read(document, old.name, namespace, time.time())
    except InvalidInput as exc:
        raise flag_of(exc) from exc
    try:
        return await client.update(old.id, spec, etag=old.etag)
    except CallFailed as exc:
        if failure.is_without_answer(exc):
            raise
        raise failure.of(exc, name) from exc


def merged(document: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a spec with changes; what they exclude goes, and of resources the others stay."""
    dropped = {name for name in changes for name in _EXCLUDED.get(name, ())}
    new = {name: value for name, value in document.items() if name not in dropped} | dict(changes)
    for name in ("resources", "placement"):
        if name in changes:
            new[name] = {**(document.get(name) or {}), **changes[name]}
    return new
