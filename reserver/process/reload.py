"""Reloads the configuration file: its changes take effect without a restart where possible.

An invalid file is refused, and the earlier settings stay. For changes that need a restart the
process drains and ends; its supervisor, as a rule a kubelet, starts it again.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import structlog
from prometheus_client.core import Metric

from reserver.base.pacer import Pacer
from reserver.base.quarantine import quarantined
from reserver.cluster.snapshot import EXEMPT_NAMESPACES
from reserver.errors import ApiError, ConfigurationError, InvalidInput
from reserver.extender.metrics import gauge
from reserver.k8s.client import ApiClient
from reserver.k8s.lease import Lease
from reserver.k8s.objects.objects import POD, Metadata, encode
from reserver.k8s.serving_pod import others_are_ready
from reserver.process import logs
from reserver.process.assembly import Assembly, default_quota
from reserver.process.features import allow
from reserver.settings.configuration import API_VERSION, changes, document, feature_gates, live
from reserver.settings.configuration_file import ConfigurationFile
from reserver.settings.flags import read_percent
from reserver.settings.serve import Settings
from reserver.stores.codec import prices

log = structlog.get_logger(__name__)

LOOK_EVERY_S = 1.0
"""Seconds between two checks of the file, and of a pending restart: kubelet updates a changed
ConfigMap within a minute or two."""


class Reload:
    """The settings in force, and the changes of the file that are not.

    Attributes:
        settings: the settings in force.
        problem: reason why the current file is refused; empty if it is valid.
        awaiting_restart: changed fields that take effect with the next start.
        awaited: the settings after the next start; None if they are those in force.
    """

    def __init__(self, settings: Settings, assembly: Assembly) -> None:
        self.settings = settings
        self.problem = ""
        self.awaiting_restart: Sequence[str] = ()
        self.awaited: Settings | None = None
        self._assembly = assembly
        self._file = ConfigurationFile(settings.config or Path())

    async def run(self) -> None:
        """Check the file for changes until cancelled."""
        while self.settings.config is not None:
            with quarantined("pass", "configuration"):
                if self._file.has_changed():
                    await self.look()
            await asyncio.sleep(LOOK_EVERY_S)

    async def look(self) -> None:
        """Read the file, and apply the changes that need no restart."""
        try:
            # A quarter of a mebibyte of YAML takes half a second to read.
            desired = await asyncio.to_thread(self._file.settings, self.settings)
            default_quota(desired)
        except ConfigurationError as exc:
            self._refuse(str(exc))
            self.awaited = None  # A start would fail.
            return
        self.problem = ""
        differing = changes(self.settings, desired)
        if differing.live:
            before, self.settings = self.settings, live(self.settings, desired)
            await self._apply(before)
            log.info("configuration read again", fields=differing.live)
        if differing.others and differing.others != self.awaiting_restart:
            fields = ", ".join(differing.others)
            log.warning("a change of the configuration needs a restart", fields=fields)
            message = f"{fields}: takes effect with a restart, which follows once it is safe"
            self._warn("ConfigurationNeedsRestart", message)
        self.awaiting_restart = differing.others
        self.awaited = desired if differing.others else None

    def _refuse(self, problem: str) -> None:
        if problem == self.problem:
            return
        self.problem = problem
        log.error("configuration refused, the former settings stay", why=problem.splitlines())
        self._warn("ConfigurationRefused", problem)

    def _warn(self, reason: str, message: str) -> None:
        """Queue an event on this pod, whose name is the hostname."""
        pod = Metadata(socket.gethostname(), self.settings.namespace)
        self._assembly.recorder.warn(pod, reason, message, POD)

    async def _apply(self, before: Settings) -> None:
        now, parts = self.settings, self._assembly
        if now.log_level != before.log_level:
            logs.configure(now.log_level, now.logging_format)
        if now.default_quota != before.default_quota:
            quotas = parts.state.ledger.quotas
            await Pacer().run(quotas.default_to(default_quota(now)))
        parts.ceiling.follow(now)
        parts.reminder.before_s = now.warn_before_expiry
        parts.archivist.archive.kept_s = now.history_ttl
        parts.accountant.held.least_use = (read_percent(now.warn_use_below) or 0) / 100
        parts.accountant.prices = prices.parse(now.prices)
        if parts.features.mover is not None:
            allow(parts.features.mover, now)
        if now.exempt_namespaces != before.exempt_namespaces:
            snapshot = parts.state.snapshot
            snapshot.exempt_namespaces = EXEMPT_NAMESPACES.union(now.exempt_namespaces)
            for node in snapshot.node_names():  # A waiting pod may have room now.
                parts.waker.on_capacity_freed(node)

    def configz(self) -> bytes:
        """Return the settings in force, and the state of the file, as JSON."""
        file: dict[str, Any] = {
            "path": str(self.settings.config or ""),
            "problem": self.problem,
            "awaitingRestart": self.awaiting_restart,
        }
        return encode({API_VERSION.partition("/")[0]: document(self.settings), "file": file})

    def measured(self) -> Iterator[Metric]:
        """Yield whether the file is in force, and the feature gates."""
        help_text = "1 while the file is refused."
        yield gauge("reserver_configuration_invalid", help_text, bool(self.problem))
        help_text = "Fields of the file whose change takes effect with a restart."
        waiting = len(self.awaiting_restart)
        yield gauge("reserver_configuration_awaiting_restart", help_text, waiting)
        help_text = "1 of a feature gate that is on, 0 of one that is off, by stage."
        gates = [((g.name, g.stage), g.is_enabled) for g in feature_gates(self.settings)]
        yield gauge("reserver_feature_enabled", help_text, gates, ("name", "stage"))


STANDBY_FIRST_S = 30.0
"""Seconds for which a leader waits: its standby has the same file, and restarts meanwhile."""


class Restart:
    """Decides when this process ends, so that the next start reads the file.

    A standby ends at once, a leader only once a standby is able to lead.

    Attributes:
        due: set when the process has to end.
    """

    def __init__(
        self,
        reload: Reload,
        client: ApiClient,
        lease: Lease | None,
        startable: Callable[[Settings], Awaitable[None]],
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        """End for the changes of `reload`; `startable` raises if a start would fail."""
        self.due = asyncio.Event()
        self._reload = reload
        self._client = client
        self._lease = lease
        self._startable = startable
        self._timer = timer
        self._since: float | None = None
        self._waiting_for = ""

    async def run(self) -> None:
        """Check periodically until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(LOOK_EVERY_S)

    async def look(self) -> None:
        """Set `due` if the file asks for a restart and this process may end."""
        desired = self._reload.awaited
        if desired is None:
            self._since = None
            return
        self._since = self._timer() if self._since is None else self._since
        try:
            obstacle = await self._obstacle(desired)
        except (ApiError, ConfigurationError, InvalidInput) as exc:
            obstacle = str(exc)
        if not obstacle and not self.due.is_set():
            log.warning("restarting for the configuration", fields=self._reload.awaiting_restart)
            self.due.set()
        if obstacle != self._waiting_for:
            log.info("the restart for the configuration waits", why=obstacle)
        self._waiting_for = obstacle

    async def _obstacle(self, desired: Settings) -> str:
        await self._startable(desired)
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
