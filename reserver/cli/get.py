"""`reserver get`: reservations as a table or for programs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from reserver.cli import completion, failure, fields, history, listing, lookup, similar, watch
from reserver.cli.connection import run
from reserver.cli.failure import ExitStatus, Failed
from reserver.cli.output import ListOutputOption, Output
from reserver.cli.selection import (
    AllNamespacesOption,
    NamesArgument,
    SelectionFlags,
    check_namespaces,
)
from reserver.cli.target import Target
from reserver.cli.terminal import progress
from reserver.client import Client, Selection

if TYPE_CHECKING:
    from reserver.cli.connection import Session


WatchOption = Annotated[
    bool, typer.Option("--watch", "-w", help="Keep the table up to date until Ctrl-C.")
]
PastOption = Annotated[bool, typer.Option("--all", help="Also list reservations that are over.")]
FieldSelectorOption = Annotated[
    str,
    typer.Option(
        metavar="FIELD=VALUE",
        help="Reservations with these fields, as `-o json` prints them: status.phase=Active; also "
        "with !=, and several with commas.",
        rich_help_panel="Which ones",
    ),
]
SortByOption = Annotated[
    str,
    typer.Option(
        metavar="FIELD",
        help="Sort by a field, such as spec.expiresAt.",
        autocompletion=completion.fields,
    ),
]


def get(
    target: Target,
    chosen: SelectionFlags,
    names: NamesArgument = None,
    is_watch: WatchOption = False,
    past: PastOption = False,
    all_namespaces: AllNamespacesOption = False,
    field_selector: FieldSelectorOption = "",
    sort_by: SortByOption = "",
    no_headers: Annotated[
        bool, typer.Option("--no-headers", help="Print no titles, and no frame on a terminal.")
    ] = False,
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
    asked = _ListQuery(
        chosen,
        tuple(names or ()),
        field_selector,
        sort_by,
        is_watch=is_watch,
        is_past=past,
        is_titled=not no_headers,
    )
    try:
        check_namespaces(chosen.namespace, all_namespaces=all_namespaces)
        asked.check()
    except Failed as exc:
        failure.end(exc)
    run(target, partial(_list, asked=asked, form=form))


@dataclass(frozen=True, slots=True)
class _ListQuery:
    """The options of `get`.

    Attributes:
        chosen: those that options mean.
        names: those of names.
        field_selector: those whose fields are so.
        sort_by: in the order of this field.
        is_watch: as they change.
        is_past: also those that are over.
        is_titled: with the titles of columns.
    """

    chosen: SelectionFlags
    names: tuple[str, ...]
    field_selector: str
    sort_by: str
    is_watch: bool
    is_past: bool
    is_titled: bool

    def check(self) -> None:
        """Refuse options that exclude each other.

        Raises:
            Failed: two options exclude each other.
        """
        is_listed = bool(self.field_selector or self.sort_by)
        is_narrow = replace(self.chosen, namespace="").is_narrow
        if self.names and (is_narrow or self.is_watch or is_listed):
            raise Failed(ExitStatus.USAGE, "NAME: give names (and -n), or filters, not both")
        if self.is_watch and is_listed:
            problem = "--field-selector, --sort-by: are not for --watch"
            raise Failed(ExitStatus.USAGE, f"{problem}; leave one of them out")
        if not self.is_titled and (self.is_past or self.is_watch):
            problem = "--no-headers: is not for --all and --watch"
            raise Failed(ExitStatus.USAGE, f"{problem}; leave one of them out")
        if self.is_past and (self.names or self.is_watch or is_listed or is_narrow):
            problem = "--all: goes with --namespace and --output only"
            raise Failed(ExitStatus.USAGE, f"{problem}; reserver history shows those of a name")


async def _list(session: Session, asked: _ListQuery, form: Output) -> None:
    selection = asked.chosen.selection(session.namespace)
    if asked.is_past:
        await history.show_all(session.client, asked.chosen.namespace, form)
    elif asked.names:
        await _show_named(session, asked, form)
    elif asked.is_watch:
        await watch.follow(session.client, selection, form)
    else:
        await _show_all(session.client, asked, selection, form)


async def _show_named(session: Session, asked: _ListQuery, form: Output) -> None:
    """Print the reservations of some names or ids (`lookup.by_name`).

    Raises:
        Failed: some are not there.
    """
    found, missing = await lookup.fetch(session, asked.names, asked.chosen.namespace)
    if found:
        listing.show(found, form, alone=len(asked.names) == 1, is_titled=asked.is_titled)
    failure.raise_all(missing)


async def _show_all(client: Client, asked: _ListQuery, selection: Selection, form: Output) -> None:
    """Print the reservations that are meant (`fields.chosen`)."""
    by = (asked.field_selector, asked.sort_by)
    fields.chosen((), *by)  # Refuses what is malformed before anybody is asked.
    async with progress("Listing reservations"):
        found = [each async for each in client.list(selection)]
    listing.show(fields.chosen(found, *by), form, is_titled=asked.is_titled)
    if not found:
        failure.report(await similar.why_none(client, selection))
