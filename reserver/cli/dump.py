"""`reserver dump`: the state of a running Reserver for a bug report."""

from __future__ import annotations

import typer

from reserver.cli.connection import Session, run
from reserver.cli.target import Target
from reserver.cli.terminal import progress


def dump(target: Target) -> None:
    """Print the state of a running Reserver as JSON, without secrets.

    The dump has settings, versions, watches, queues and metrics, and the names of namespaces,
    reservations, nodes and pods: read it before you send it to somebody.

    Exit status: 0 printed; 1 refused; 2 wrong usage; 3 Reserver cannot be reached.

    Examples:
        reserver dump > reserver.json
        reserver dump --address 127.0.0.1:9443
    """

    async def work(session: Session) -> bytes:
        async with progress("Requesting the dump"):
            return await session.client.capacity.dump()

    typer.echo(run(target, work))
