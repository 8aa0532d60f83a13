"""An API server that has gone back in time: etcd was restored from a backup."""

from __future__ import annotations

import asyncio
import os
from typing import NoReturn

import structlog

from reserver.errors import ApiError, InvalidInput, WentBack
from reserver.k8s.client import ApiClient
from reserver.k8s.watch.collection import WatchedCollection, latest
from reserver.k8s.watch.lag import require_progress
from reserver.k8s.watch.reflector import Reflector

log = structlog.get_logger(__name__)

LOOK_EVERY_S = 5.0
"""How often the API server is asked how far it is, in seconds."""


async def watched(reflector: Reflector) -> None:
    """Run a reflector; if the API server has gone back in time, end the process at once.

    Whatever it knows or is about to write comes from what no longer is. The next one starts cold.
    """
    try:
        await reflector.run()
    except WentBack as exc:
        _end(reflector, exc)


async def look_back(client: ApiClient, collection: WatchedCollection) -> None:
    """Look how far the API server is, until cancelled; end the process once it has gone back.

    Where etcd is replaced and the API server goes on, its watches go on, too, and say nothing.
    """
    seen = 0
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        try:
            now = await latest(client, collection)
            require_progress(seen, now)
        except WentBack as exc:
            _end(collection, exc)
        except (ApiError, InvalidInput):
            continue  # The watches tell of it.
        seen = now


def _end(collection: WatchedCollection, why: WentBack) -> NoReturn:
    log.error(
        "the API server has gone back in time, ending at once",
        collection=str(collection),
        why=str(why),
        remedy="restart API servers that went on, and kube-scheduler: docs/operations.md",
    )
    os._exit(1)  # No write that is under way may be made any more.
