"""A copy of a reservation under another name, with the fields that flags change."""

from __future__ import annotations

import time
from typing import Any

from reserver.cli import lookup, serialization
from reserver.cli.connection import Session
from reserver.cli.create_requests import CreateRequests, Specs
from reserver.cli.spec_flags import flag_of, merged
from reserver.errors import InvalidInput

_TIMES = {"startsAt", "expiresAt", "ttl"}


async def copied(session: Session, template: str, asked: CreateRequests) -> Specs:
    """Return the spec of a reservation, changed as flags say, by the name of the copy.

    Raises:
        Failed: there is no such reservation, or a flag is wrong.
    """
    namespace = asked.namespace or session.namespace
    changes = asked.flags.changes(namespace)
    old = await lookup.by_name(session.client, template, session.client.get)
    before: dict[str, Any] = serialization.show_spec(old.spec)
    document = merged({key: each for key, each in before.items() if key not in _TIMES}, changes)
    try:
        return {asked.name: serialization.read(document, asked.name, namespace, time.time())}
    except InvalidInput as exc:
        raise flag_of(exc) from exc
