"""Restarts this process for what the configuration file changes only with a start.

The process drains and ends; who supervises it, a kubelet as a rule, starts it again.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable

import structlog

from reserver.errors import ApiError, ConfigurationError, InvalidInput
from reserver.k8s.client import ApiClient
from reserver.k8s.lease import Lease
from reserver.k8s.serving_pod import others_are_ready
from reserver.process.reload import Reload
from reserver.settings.serve import Settings

log = structlog.get_logger(__name__)

LOOK_EVERY_S = 1.0
"""How often it is seen whether a restart is due, in seconds."""

STANDBY_FIRST_S = 30.0
"""How long a leader waits, in seconds: its standby has the same file, and restarts meanwhile."""


class Restart:
    """Decides when this process ends, so that another start reads the file.

    A standby ends at once, a leader only once a standby is able to lead.

    Attributes:
        due: set when it has to end.
    """

    def __init__(
        self,
        reload: Reload,
        client: ApiClient,
        lease: Lease | None,
        startable: Callable[[Settings], Awaitable[None]],
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        """End for what `reload` has found; `startable` raises if a start would fail."""
        self.due = asyncio.Event()
        self._reload = reload
        self._client = client
        self._lease = lease
        self._startable = startable
        self._timer = timer
        self._since: float | None = None
        self._complaint = ""

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(LOOK_EVERY_S)

    async def look(self) -> None:
        """Set `due` if the file asks for a restart and this process may end."""
        wanted = self._reload.awaited
        if wanted is None:
            self._since = None
            return
        self._since = self._timer() if self._since is None else self._since
        try:
            obstacle = await self._obstacle(wanted)
        except (ApiError, ConfigurationError, InvalidInput) as exc:
            obstacle = str(exc)
        if not obstacle and not self.due.is_set():
            log.warning("restarting for the configuration", fields=self._reload.awaiting_restart)
            self.due.set()
        if obstacle != self._complaint:
            log.info("the restart for the configuration waits", why=obstacle)
        self._complaint = obstacle

    async def _obstacle(self, wanted: Settings) -> str:
        await self._startable(wanted)
        lease, settings = self._lease, self._reload.settings
        if lease is None or lease.is_led_by_another:
            return ""
        if not lease.is_held:
            return "it is not known who leads"
        if self._since is None or self._timer() - self._since < STANDBY_FIRST_S:
            return "standbys restart first"
        own = settings.pod_name or socket.gethostname()
        is_able = await others_are_ready(self._client, settings.namespace, own)
        return "" if is_able else "no standby is able to lead"
