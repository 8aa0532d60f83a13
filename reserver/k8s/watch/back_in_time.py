"""An API server that has gone back in time: etcd was restored from a backup."""

from __future__ import annotations

import os

import structlog

from reserver.errors import WentBack
from reserver.k8s.watch.reflector import Reflector

log = structlog.get_logger(__name__)


async def watched(reflector: Reflector) -> None:
    """Run a reflector; if the API server has gone back in time, end the process at once.

    Whatever it knows or is about to write comes from what no longer is. The next one starts cold.
    """
    try:
        await reflector.run()
    except WentBack as exc:
        log.error(
            "the API server has gone back in time, ending at once",
            collection=str(reflector),
            why=str(exc),
            remedy="restart kube-scheduler, too: docs/backup-and-restore.md",
        )
        os._exit(1)  # No write that is under way may be made any more.
