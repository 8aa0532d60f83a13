"""`reserver update`: changes the fields of a reservation that flags give."""

from __future__ import annotations

from reserver.cli import failure, listing, lookup, serialization
from reserver.cli.connection import Session, run
from reserver.cli.create_requests import read_flags
from reserver.cli.failure import WrongUsage
from reserver.cli.options import NameArgument, NamespaceOption
from reserver.cli.output import Output, OutputOption
from reserver.cli.serialization import merged
from reserver.cli.spec_flags import SpecFlags
from reserver.cli.target import Target
from reserver.client import CallFailed, ReservationInfo


def update(
    spec: SpecFlags,
    target: Target,
    name: NameArgument,
    namespace: NamespaceOption = "",
    form: OutputOption = Output.TABLE,
) -> None:
    """Change fields of a reservation; all other fields stay.

    The defaults below are those of `create`: a flag that is not given changes nothing. A larger
    hold, or a hold on another node, has to fit. A change of owners, node, resources, slots or times
    makes a new reservation, without the claims. To change it from a file, use `reserver apply`.

    Exit status: 0 changed; 1 refused, or not found; 2 wrong usage; 3 Reserver cannot be reached;
    4 no room, on nodes or in the quota.

    Examples:
        reserver update web-1 --cpu 2 --slots 3
        reserver update web-1 --node worker-2
        reserver update web-1 --owner app=web --owner job/batch -n shop
    """
    if not spec.are_given:
        raise WrongUsage("no change is given; give a flag such as --cpu or --node")

    async def work(session: Session) -> None:
        changed = await _update(session, name, spec, namespace)
        listing.show_change(name, "updated", changed, form)

    run(target, work)


async def _update(session: Session, name: str, flags: SpecFlags, namespace: str) -> ReservationInfo:
    """Change the fields of a reservation that flags give.

    Raises:
        Failed: there is no such reservation, or a flag is wrong.
        CallFailed: it was refused.
    """
    own = namespace or session.namespace
    changes = flags.changes(own)
    old = await lookup.by_name(session, name, session.client.get, namespace)
    document = merged(serialization.show_spec(old.spec), changes)
    spec = read_flags(document, old.name, own)
    try:
        return await session.client.update(old.id, spec, etag=old.etag)
    except CallFailed as exc:
        if failure.is_without_answer(exc):
            raise
        raise failure.of(exc, name) from exc
