"""Ability of a standby: whether it could lead, if the leader ended now."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

from reserver.errors import ApiError
from reserver.k8s.api_errors import advice
from reserver.k8s.client import ApiClient
from reserver.k8s.watch.reflector import Reflector

_LOOK_S = 30.0
_RETRY_S = 2.0


class Standby:
    """Whether this process could list all that a leader has to list.

    A standby starts cold (docs/adr/0007), so it lists nothing beforehand. It lists one object of
    each collection instead: a right or a CRD that is missing is found before the leader goes.

    Attributes:
        obstacles: what keeps it from leading.
    """

    def __init__(self) -> None:
        """Begin unable."""
        self.obstacles: tuple[str, ...] = ("it has not tried to list the cluster yet",)

    async def run(self, client: ApiClient, reflectors: Sequence[Reflector]) -> None:
        """Try again and again, until cancelled."""
        while True:
            found = [await _obstacle(client, reflector) for reflector in reflectors]
            self.obstacles = tuple(filter(None, found))
            await asyncio.sleep(_RETRY_S if self.obstacles else _LOOK_S)


async def _obstacle(client: ApiClient, reflector: Reflector) -> str:
    try:
        await client.get(reflector.path, {**reflector.selector, "limit": "1"})
        await reflector.require_kept(sys.maxsize)
    except ApiError as exc:
        if exc.is_absent and reflector.is_optional:
            return ""
        return f"{reflector} cannot be listed: {advice(exc)}"
    return ""
