"""`reserver restore`: creates again reservations that were released by mistake."""

from __future__ import annotations

import json
import time
from typing import Annotated

import typer

from reserver.cli import completion, creating, failure, serialization, times
from reserver.cli.connection import Session, run
from reserver.cli.create_requests import NewReservation, namespace_of
from reserver.cli.failure import Failures, Refused, WrongUsage
from reserver.cli.options import NamespaceOption
from reserver.cli.output import Output, OutputOption
from reserver.cli.target import Target
from reserver.client import Outcome, PastReservation
from reserver.errors import InvalidInput
from reserver.k8s.objects.times import in_hours

_SETTLE_S = 1.0


def restore(
    target: Target,
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME",
            help="Names or ids of reservations, as `reserver history` shows them.",
            autocompletion=completion.removed,
        ),
    ],
    namespace: NamespaceOption = "",
    ttl: Annotated[
        str,
        typer.Option(metavar="DURATION", help="Lifetime from now. Default: its old end."),
    ] = "",
    form: OutputOption = Output.TABLE,
) -> None:
    """Create reservations again that were released by mistake, or when idle.

    A restored reservation has its old spec and its old end. Claims and labels are not restored.
    Reserver remembers specs for a week, within bounds (`serve --history-ttl`).

    Exit status: 0 created and in force; 1 not remembered, or refused; 2 wrong usage; 3 Reserver
    cannot be reached; 4 no room, on nodes or in the quota; 5 created, but waiting for room.

    Examples:
        reserver restore web-1 -n shop
        reserver restore web-1 web-2 --ttl 2h
    """
    if ttl:
        times.duration("--ttl", ttl)
    if not all(map(str.strip, names)):
        raise WrongUsage("NAME: is empty; name a reservation that is over")

    async def work(session: Session) -> None:
        wanted: list[NewReservation] = []
        failures = Failures()
        for name in names:
            with failures.noted():
                wanted.append(_again(await _last(session, name, namespace), ttl))
        with failures.noted():
            if wanted:
                await creating.create_each(
                    session.client, wanted, form, "", no_wait=False, force=False, wait_s=_SETTLE_S
                )
        failures.raise_all()

    run(target, work)


async def _last(session: Session, name: str, namespace: str) -> PastReservation:
    """Return the last reservation of a name that is over, of a namespace if one is given."""
    found = [each async for each in session.client.history(name, owner_namespace=namespace)]
    own = [each for each in found if each.id.startswith(f"{session.namespace}/")]
    if not found:
        raise Refused(f"{name}: is not in the history: see `reserver history`")
    return max(own or found, key=lambda each: each.ended)


def _again(past: PastReservation, ttl: str) -> NewReservation:
    """Return a past reservation as one to be created."""
    if not past.spec:
        ended = str(past.outcome or "over").lower()
        is_kept = past.outcome in {Outcome.REMOVED, Outcome.IDLE}
        why = "it was too large to keep" if is_kept else f"it is {ended}"
        problem = f"its spec is not there any more, as {why}; create it with `reserver create`"
        raise Refused(f"{past.name}: {problem}")
    # What recurs ends by its schedule; the end of an occurrence says nothing.
    ends_at = None if '"schedule":' in past.spec else past.expires_at
    if not ttl and ends_at is not None and ends_at.timestamp() <= time.time():
        raise Refused(f"{past.name}: its time is over; give --ttl")
    end = {"ttl": in_hours(ttl)} if ttl else {"ttl": "0"}
    if not ttl and ends_at is not None:
        end = {"expiresAt": serialization.show_moment(ends_at)}
    home, slash, rest = past.id.partition("/")
    of_object = home if slash and "/" not in rest else ""
    try:
        document = json.loads(past.spec) | end
        spec = serialization.read(document, past.name, past.owner_namespace, time.time())
    except (InvalidInput, ValueError) as exc:
        raise Refused(f"{past.name}: {exc}") from exc
    if past.claimed and not spec.reusable:  # Of what is reusable slots came back anyway.
        failure.report(f"{past.name}: {past.claimed} claims are not restored; it holds all slots")
    return NewReservation(past.name, of_object or namespace_of(spec, ""), spec)
