"""`reserver get`: reservations as a table or for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from reserver.cli import completion, failure, fields, history, listing, lookup, similar, watch
from reserver.cli.connection import run
from reserver.cli.failure import Failures, WrongUsage
from reserver.cli.output import ListOutputOption, Output
from reserver.cli.selection import (
    PANEL,
    NamesArgument,
    SelectionFlags,
)
from reserver.cli.target import Target
from reserver.cli.terminal import progress
from reserver.client import Client, Selection
from reserver.settings.flags import flag

if TYPE_CHECKING:
    from reserver.cli.connection import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class GetFlags:
    """The flags of `get` beside those that select reservations."""

    watch: bool = flag("Keep the table up to date until Ctrl-C.", default=False, short="-w")
    all_: bool = flag("Also list reservations that are over.", default=False)
    all_namespaces: bool = flag(
        "All namespaces (the default).", default=False, short="-A", panel=PANEL
    )
    field_selector: str = flag(
        "Reservations with these fields, as `-o json` prints them: status.phase=Active; also with "
        "!=, and several with commas.",
        default="",
        metavar="FIELD=VALUE",
        panel=PANEL,
    )
    sort_by: str = flag(
        "Sort by a field, such as spec.expiresAt.",
        default="",
        metavar="FIELD",
        complete=completion.fields,
    )
    no_headers: bool = flag("Print no titles, and no frame on a terminal.", default=False)

    def check(self, names: Sequence[str], chosen: SelectionFlags) -> None:
        """Refuse options that exclude each other.

        Raises:
            Failed: two options exclude each other.
        """
        if chosen.namespace and self.all_namespaces:
            raise WrongUsage("--all-namespaces: excludes --namespace; give one of them")
        is_listed = bool(self.field_selector or self.sort_by)
        is_narrow = replace(chosen, namespace="").is_narrow
        if names and (is_narrow or self.watch or is_listed):
            raise WrongUsage("NAME: give names (and -n), or filters, not both")
        if self.watch and is_listed:
            problem = "--field-selector, --sort-by: are not for --watch"
            raise WrongUsage(f"{problem}; leave one of them out")
        if self.no_headers and (self.all_ or self.watch):
            raise WrongUsage("--no-headers: is not for --all and --watch; leave one of them out")
        if self.all_ and (names or self.watch or is_listed or is_narrow):
            problem = "--all: goes with --namespace and --output only"
            raise WrongUsage(f"{problem}; reserver history shows those of a name")


def get(
    target: Target,
    chosen: SelectionFlags,
    flags: GetFlags,
    names: NamesArgument = None,
    form: ListOutputOption = Output.TABLE,
) -> None:
    """List reservations: all, by name, or by filter.

    It lists all namespaces unless -n names one.

    Exit status: 0 listed; 1 some name is not there, or refused; 2 wrong usage; 3 Reserver cannot be
    reached.

    Examples:
        reserver get
        reserver get -n shop --phase Pending
        reserver get web-1 -n shop -o yaml
        reserver get --field-selector spec.policy=Require --sort-by spec.expiresAt
        reserver get --owner app=web -w
    """
    flags.check(names or (), chosen)
    run(target, lambda session: _list(session, names or (), chosen, flags, form))


async def _list(
    session: Session, names: Sequence[str], chosen: SelectionFlags, flags: GetFlags, form: Output
) -> None:
    selection = chosen.selection(session.namespace)
    if flags.all_:
        await history.show_all(session.client, chosen.namespace, form)
    elif names:
        failures = Failures()
        found = await lookup.fetch(session, names, failures, chosen.namespace)
        if found:
            listing.show(found, form, alone=len(names) == 1, is_titled=not flags.no_headers)
        failures.raise_all()
    elif flags.watch:
        await watch.follow(session.client, selection, form)
    else:
        await _show_all(session.client, flags, selection, form)


async def _show_all(client: Client, flags: GetFlags, selection: Selection, form: Output) -> None:
    """Print the reservations that are meant (`fields.chosen`)."""
    by = (flags.field_selector, flags.sort_by)
    fields.chosen((), *by)  # Refuses what is malformed before anybody is asked.
    async with progress("Listing reservations"):
        found = [each async for each in client.list(selection)]
    listing.show(fields.chosen(found, *by), form, is_titled=not flags.no_headers)
    if not found:
        failure.report(await similar.why_none(client, selection))
