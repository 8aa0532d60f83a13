"""Writes the accounts where a restart finds them, and looks at all reservations every minute."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress

import structlog

from reserver.base.backoff import Backoff
from reserver.base.pacer import Pacer
from reserver.base.quarantine import quarantined
from reserver.errors import ApiError, InvalidInput
from reserver.k8s.client import ApiClient
from reserver.k8s.objects.objects import ConfigMapObject, decode
from reserver.reservations.view import LedgerView
from reserver.stores.codec import account_codec
from reserver.stores.codec.prices import Prices
from reserver.stores.hold_accounts import LOOK_EVERY_S, HoldAccounts

log = structlog.get_logger(__name__)

NAME = "reserver-accounts"
LABEL = "reserver.io/accounts"
"""On the ConfigMap of the accounts."""

_LOOKS = 5
"""So many looks are written at once: a restart loses what has changed since."""


class AccountWriter:
    """Keeps the ConfigMap of the accounts.

    Attributes:
        held: what is counted.
        prices: what an hour of a resource costs.
        writes: how many writes were made.
    """

    def __init__(
        self, client: ApiClient, namespace: str, held: HoldAccounts, clock: Callable[[], float]
    ) -> None:
        """Write into a ConfigMap of a namespace; `clock` gives unix seconds."""
        self.held = held
        self.prices = Prices()
        self.writes = 0
        self._client = client
        self._collection = f"/api/v1/namespaces/{namespace}/configmaps"
        self._path = f"{self._collection}/{NAME}"
        self._clock = clock
        self._written: dict[str, int] = {}
        self._problem = ""

    async def run(self, ledger: LedgerView) -> None:
        """Read what was counted before; then count and write, until cancelled."""
        await self.read()
        while True:
            for _ in range(_LOOKS):
                with quarantined("pass", "accounts"):
                    await self.held.look(ledger, Pacer())
                await asyncio.sleep(LOOK_EVERY_S)
            with quarantined("pass", "accounts"):
                await self.write()

    async def read(self) -> None:
        """Take what was counted before; nothing is written until that is known."""
        backoff = Backoff(1.0, LOOK_EVERY_S)
        data: Mapping[str, str] = {}
        while True:
            try:
                raw = await self._client.get(self._path)
            except ApiError as exc:
                if exc.is_absent:
                    break
                self._failed("accounts cannot be read", exc)
                await backoff.sleep()
                continue
            with suppress(InvalidInput):  # Else it is not written by us, and replaced.
                data = decode(ConfigMapObject, raw).data or {}
            break
        accounts, until = await Pacer().run(account_codec.read(data))
        self._written = dict.fromkeys(data, 0)
        self.held.resume(accounts, until or self._clock())

    async def write(self) -> None:
        """Write what has changed."""
        until = self._clock()
        data = await Pacer().run(account_codec.write(self.held.accounts, until))
        changes: dict[str, str | None] = {
            name: text for name, text in data.items() if self._written.get(name) != hash(text)
        }
        changes |= dict.fromkeys(self._written.keys() - data.keys())
        try:
            await self._send(changes, data)
        except ApiError as exc:
            self._failed("accounts cannot be written", exc)
            return
        self.writes += 1
        self._problem = ""
        self._written = {name: hash(text) for name, text in data.items()}

    async def _send(self, changes: Mapping[str, str | None], whole: Mapping[str, str]) -> None:
        try:
            await self._client.patch(self._path, {"data": changes})
        except ApiError as exc:
            if not exc.is_absent:
                raise
            metadata = {"name": NAME, "labels": {LABEL: "true"}}
            await self._client.create(self._collection, {"metadata": metadata, "data": whole})

    def _failed(self, event: str, error: ApiError) -> None:
        if (problem := str(error)) != self._problem:
            self._problem = problem
            log.warning(event, configmap=NAME, why=problem)
