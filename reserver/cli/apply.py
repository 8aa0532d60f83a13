"""`reserver apply`: creates and changes reservations so that they match files."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from reserver.cli import creating, listing, output, serialization
from reserver.cli.connection import Session, run
from reserver.cli.create_requests import CreateRequests, NewReservation, namespace_of
from reserver.cli.failure import Failures, Refused, WrongUsage
from reserver.cli.manifests import Manifest
from reserver.cli.options import FILES, NamespaceOption
from reserver.cli.output import Output, OutputOption
from reserver.cli.spec_flags import SpecFlags
from reserver.cli.table import counted
from reserver.cli.target import Target
from reserver.cli.terminal import can_ask, confirmed, progress
from reserver.client import CallFailed, Client, ReservationInfo, Selection
from reserver.errors import InvalidInput
from reserver.k8s.objects import selectors
from reserver.settings.flags import flag


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyFlags:
    """The flags of `apply`."""

    force: bool = flag("Create a reservation even if it can never fit.", default=False)
    dry_run: bool = flag("Print what would change, and change nothing.", default=False)
    prune: bool = flag(
        "Then release reservations that --selector selects and no file has, in the namespaces of "
        "the files. Asks first.",
        default=False,
    )
    selector: str = flag(
        "Labels of what --prune may release.", default="", short="-l", metavar="LABELS"
    )
    yes: bool = flag("Prune without asking.", default=False, short="-y")


def apply(
    target: Target,
    flags: ApplyFlags,
    filename: Annotated[list[str], FILES],
    namespace: NamespaceOption = "",
    form: OutputOption = Output.TABLE,
) -> None:
    """Create or change reservations so that they match files.

    Run it as often as you like: a reservation that matches its file stays unchanged and keeps its
    claims. A `ttl` counts from the creation, so applying a file again neither prolongs a
    reservation nor undoes `reserver extend`; an `expiresAt` is restored. Labels of the file are
    set; other labels stay. The files are those of `reserver create -f`.

    Exit status: 0 all match the files; 1 some were refused; 2 wrong usage; 3 Reserver cannot
    be reached; 4 no room, on nodes or in the quota.

    Examples:
        reserver apply -f reservations/
        reserver apply -f reservations/ --prune -l team=shop
        reserver get web-1 -o yaml | sed 's/slots: 1/slots: 2/' | reserver apply -f -
    """
    if flags.prune:
        is_sure = flags.yes or flags.dry_run or (can_ask() and form is Output.TABLE)
        check(flags.selector, is_sure=is_sure)
    elif flags.selector or flags.yes:
        given = "--selector" if flags.selector else "--yes"
        raise WrongUsage(f"{given}: is for --prune; add it, or leave this out")
    asked = CreateRequests.of("", filename, SpecFlags(), namespace)
    run(target, lambda session: _apply(session, asked, flags, form))


async def _apply(session: Session, asked: CreateRequests, flags: ApplyFlags, form: Output) -> None:
    wanted = asked.reservations(session.namespace)  # A file that is broken changes nothing.
    applier = Applier(session, asked.namespace, force=flags.force, dry_run=flags.dry_run)
    applied = await apply_each(applier, asked.wanted, form, "(dry run)" if flags.dry_run else "")
    if flags.prune:
        found = await selected(session.client, flags.selector)
        over = surplus(found, wanted, applied)
        await release(session.client, over, form, ask=not flags.yes, dry_run=flags.dry_run)


_NOT_THERE = {"NO_SUCH_RESERVATION", "NOT_ALLOWED"}
"""Reasons for which a document may be about another reservation, or a new one."""

_LIFETIME = ("ttl", "expiresAt")


class Applier:
    """Changes reservations to match manifests; failures are independent.

    Args:
        namespace: that `-n` names; may be empty.
        force: create what can never fit, too.
        dry_run: change nothing.
    """

    def __init__(self, session: Session, namespace: str, *, force: bool, dry_run: bool) -> None:
        self._client = session.client
        self._named = namespace
        self._default = session.namespace
        self._force = force
        self._dry_run = dry_run

    async def apply(self, one: Manifest) -> tuple[str, ReservationInfo | None]:
        """Create a reservation, or change it if its manifest differs.

        Returns:
            The result in kubectl's words, and the reservation; None if it does not exist yet.

        Raises:
            CallFailed: the call was refused.
        """
        own = one.namespace or self._named
        namespace = own or self._default
        spec = serialization.read(one.spec, one.name, namespace, time.time())
        new = NewReservation(one.name, namespace_of(spec, own), spec, one.labels)
        old = await self._existing(one, new)
        if old is None:
            return "created", await self._create(new)
        document = kept(one.spec, old)
        is_labelled = one.labels.items() <= old.labels.items()
        if is_labelled and serialization.says_the_same(document, one.name, namespace, old):
            return "unchanged", old
        if self._dry_run:
            return "configured", old
        spec = serialization.read(document, one.name, namespace, time.time())
        etag = one.etag or old.etag
        changed = await self._client.update(old.id, spec, etag=etag, labels=one.labels)
        is_same = (changed.spec, changed.labels) == (old.spec, old.labels)
        return "unchanged" if is_same else "configured", changed

    async def _existing(self, one: Manifest, new: NewReservation) -> ReservationInfo | None:
        """Return the reservation that a document is about: by its id, else by its name.

        One of that name in Reserver's own namespace counts if it is for pods of the same namespace.
        """
        names = [one.id, f"{new.namespace}/{one.name}" if new.namespace else "", one.name]
        for name in filter(None, names):
            try:
                found = await self._client.get(name)
            except CallFailed as exc:
                if exc.reason not in _NOT_THERE:
                    raise
                continue
            theirs = {each.namespace for each in found.spec.owners}
            if name != one.name or not new.namespace or new.namespace in theirs:
                return found
        return None

    async def _create(self, new: NewReservation) -> ReservationInfo | None:
        if not self._force:
            await creating.require_possible(self._client, new)
        return None if self._dry_run else await creating.create(self._client, new)


def kept(document: Any, old: ReservationInfo) -> Any:  # noqa: ANN401 - whatever YAML can hold
    """Return a spec with the end of its existing reservation, unless it has a moment or no end.

    A duration counts from the creation; otherwise each `apply` would prolong the reservation.
    """
    if not isinstance(document, Mapping) or document.get("expiresAt") is not None:
        return document
    if str(document.get("ttl")) == "0":
        return document
    said = {name: value for name, value in document.items() if name not in _LIFETIME}
    before = serialization.show_spec(old.spec)
    return said | {name: before[name] for name in _LIFETIME if name in before}


async def apply_each(
    applying: Applier, wanted: Sequence[Manifest], form: Output, note: str
) -> list[ReservationInfo]:
    """Apply documents one after the other; return the reservations that are there then.

    Args:
        applying: how.
        form: how to print what comes of it.
        note: stands behind each line; may be empty.

    Raises:
        Failed: some were refused.
    """
    shown: list[ReservationInfo] = []
    failures = Failures()
    for one in wanted:
        with failures.noted(one.name):
            async with progress(f"Applying {one.name}"):
                word, reservation = await applying.apply(one)
            if reservation is not None:
                shown.append(reservation)
            if not output.is_for_programs(form):
                word, is_shown = (f"{word} {note}", None) if note else (word, reservation)
                listing.report_change(one.name, word, is_shown)
    if output.is_for_programs(form):
        output.reservations(shown, form, alone=len(wanted) == 1)
    failures.raise_all()
    return shown


def check(selector: str, *, is_sure: bool) -> None:
    """Refuse a pruning without a selector, or without a way to confirm it.

    Raises:
        Failed: an option is missing or malformed.
    """
    if not selector.strip():
        raise WrongUsage("--prune: --selector is missing; write for example -l team=shop")
    try:
        selectors.parse_selector(selector)
    except InvalidInput as exc:
        raise WrongUsage(f"--selector: {exc}") from exc
    if not is_sure:
        raise WrongUsage(
            "--prune: cannot ask, as input or output is not a terminal; pass --yes or --dry-run"
        )


def surplus(
    found: Sequence[ReservationInfo],
    wanted: Sequence[NewReservation],
    applied: Sequence[ReservationInfo],
) -> list[ReservationInfo]:
    """Return the selected reservations that no file has.

    Only namespaces of the files count, so a folder of one team prunes nothing of another.

    Args:
        found: the reservations that the labels select.
        wanted: the reservations of the files.
        applied: the existing reservations among these.
    """
    kept = {each.id for each in applied} | {f"{one.namespace}/{one.name}" for one in wanted}
    homes = {_home(each) for each in applied} | {one.namespace for one in wanted}
    return [each for each in found if each.id not in kept and _home(each) in homes]


def _home(reservation: ReservationInfo) -> str:
    return reservation.id.partition("/")[0]


async def selected(client: Client, selector: str) -> list[ReservationInfo]:
    """Return the reservations that labels select."""
    async with progress("Listing reservations"):
        return [each async for each in client.list(Selection(label_selector=selector))]


async def release(
    client: Client, over: Collection[ReservationInfo], form: Output, *, ask: bool, dry_run: bool
) -> None:
    """Release reservations, each only as it was listed.

    Raises:
        Failed: the answer was no, or some are refused.
    """
    if ask and over and not dry_run:
        listing.show(list(over), Output.TABLE)
        if not await confirmed(f"Release {counted(len(over), 'reservation')} that no file has?"):
            raise Refused("nothing pruned")
    failures = Failures()
    for each in over:
        with failures.noted(each.id):
            if not dry_run:
                await client.release(each.id, etag=each.etag)
            if not output.is_for_programs(form):
                typer.echo(f"{each.id} pruned{' (dry run)' if dry_run else ''}")
    failures.raise_all()
