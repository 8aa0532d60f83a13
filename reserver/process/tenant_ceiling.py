"""The ceiling on the holds of all tenants, as shares of the nodes' allocatable."""

from __future__ import annotations

import asyncio

import numpy as np

from reserver.cluster.node import NODES
from reserver.reservations.ceiling import NO_LIMITS, CeilingLimits
from reserver.scheduling.state import State
from reserver.settings.flags import read_percent
from reserver.settings.serve import Settings

LOOK_EVERY_S = 1.0
"""Seconds between two sums of the nodes' allocatable."""

_Percents = tuple[int | None, int | None]
"""Shares of the cluster and of each node; None without a limit."""


class TenantCeiling:
    """Keeps the limits in line with the settings and the nodes."""

    def __init__(self, state: State, settings: Settings) -> None:
        """Begin without limits; `look` sets them."""
        self._state = state
        self._before: tuple[_Percents, object] = (None, None), None
        state.ledger.quotas.ceiling.freed = state.listener.on_node_changed
        self.follow(settings)

    def follow(self, settings: Settings) -> None:
        """Use the shares of new settings from the next `look` on."""
        self._percent_of_cluster = read_percent(settings.cluster_ceiling)
        self._percent_of_node = read_percent(settings.tenant_ceiling_node)

    async def run(self) -> None:
        """Update the limits until cancelled."""
        while True:
            self.look()
            await asyncio.sleep(LOOK_EVERY_S)

    def look(self) -> None:
        """Update the limits if settings or nodes have changed."""
        percents = self._percent_of_cluster, self._percent_of_node
        offered = self._offered() if percents != (None, None) else {}
        if (percents, offered) == self._before:
            return
        is_other = percents[1] != self._before[0][1]
        self._before = percents, offered
        of_cluster = {} if percents[0] is None else _shares(offered, percents[0])
        limits = CeilingLimits(of_cluster, self._of_node, percents[1]) if offered else NO_LIMITS
        self._state.ledger.quotas.ceiling.limit(limits)
        for node in self._state.snapshot.node_names() if is_other else ():
            self._state.listener.on_node_changed(node)  # A waiting reservation may fit now.

    def _offered(self) -> dict[str, int]:
        snapshot = self._state.snapshot
        totals = snapshot.allocatable.sum(axis=0, dtype=np.float64)  # The sum may exceed int64.
        offered = {name: int(totals[column]) for name, column in snapshot.columns.items()}
        return offered | {NODES: snapshot.node_count}

    def _of_node(self, node: str, resource: str) -> int | None:
        offered = self._state.snapshot.amounts(node, resource).allocatable
        percent = self._percent_of_node
        return None if percent is None or not offered else _share(offered, percent)


def _shares(offered: dict[str, int], percent: int) -> dict[str, int]:
    """Return the limits; a resource that no node offers has none."""
    return {name: _share(amount, percent) for name, amount in offered.items() if amount}


def _share(amount: int, percent: int) -> int:
    """Return a share of an amount, rounded up; above 1 GiB rounded down to a readable whole MiB."""
    share = -(-amount * percent // 100)
    return share - share % 2**20 if share > 2**30 else share
