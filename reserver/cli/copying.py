"""A copy of a reservation under another name, with the fields that flags change."""

from __future__ import annotations

import time
from typing import Any

from reserver.cli import lookup, serialization
from reserver.cli.connection import Session
from reserver.cli.create_requests import CreateRequests, NewReservation, namespace_of
from reserver.cli.spec_flags import flag_of, merged
from reserver.errors import InvalidInput

_TIMES = {"startsAt", "expiresAt", "ttl"}


async def copied(session: Session, template: str, asked: CreateRequests) -> list[NewReservation]:
    """Return the copy of a reservation, changed as flags say.

    Raises:
        Failed: there is no such reservation, or a flag is wrong.
    """
    namespace = asked.namespace or session.namespace
    changes = asked.flags.changes(namespace)
    old = await lookup.by_name(session, template, session.client.get, asked.namespace)
    before: dict[str, Any] = serialization.show_spec(old.spec)
    document = merged({key: each for key, each in before.items() if key not in _TIMES}, changes)
    try:
        spec = serialization.read(document, asked.name, namespace, time.time())
    except InvalidInput as exc:
        raise flag_of(exc) from exc
    return [NewReservation(asked.name, namespace_of(spec, asked.namespace), spec)]
