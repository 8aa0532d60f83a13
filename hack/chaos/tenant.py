"""The hostile tenant in a storm: it writes all the time, on nodes that are nobody else's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hack.bed.api import Api, ApiFault
from hack.chaos.world import LABEL, SCHEDULER
from hack.controlplane.nodes import create_nodes
from hack.hostile.catalogue import CATALOGUE
from hack.hostile.tenant import PATHS, at_work
from hack.hostile.world import TENANT, tenant_kubeconfig

__all__ = ["TENANT", "Tenant"]

_NODES = 5
_RATE = 3.0
"""Writes a second: others have to get something done on the same cores."""

_TRIES = 8


@dataclass(frozen=True)
class Tenant:
    """The tenant.

    Attributes:
        grpc_address: of Reserver.
        seed: what it writes when follows from it.
        only: of the catalogue; empty for all of it.
    """

    grpc_address: str
    seed: int
    only: frozenset[str]

    @contextmanager
    def at_work(self, kubeconfig: Path, api: Api, folder: Path) -> Iterator[None]:
        """Has it write until the block ends, and removes then what it wrote.

        What it reserves and runs may only be on nodes of its own: how much room there is elsewhere
        is what the storm counts.
        """
        api.create("/api/v1/namespaces", {"metadata": {"name": TENANT}})
        nodes = create_nodes(kubeconfig, _NODES, prefix=f"{TENANT}-w", labels={LABEL: TENANT})
        own = folder / "tenant-kubeconfig"
        tenant_kubeconfig(kubeconfig, api, own)
        try:
            with at_work(
                own,
                folder,
                seed=self.seed,
                rate=_RATE,
                nodes=_NODES,
                node_name=f"{TENANT}-w-{{}}",
                label=f"{LABEL}={TENANT}",
                scheduler=SCHEDULER,
                grpc_address=self.grpc_address,
                only=",".join(sorted(self.only or CATALOGUE)),
            ):
                yield
        finally:
            for path in PATHS.values():
                _delete_all(api, path.format(TENANT))
            for node in nodes:
                api.delete(f"/api/v1/nodes/{node}")


def _delete_all(api: Api, path: str) -> None:
    """Delete a collection; the API server may take longer for one than a call may last."""
    for tries_left in reversed(range(_TRIES)):
        try:
            api.delete(path, grace_seconds=0)
        except ApiFault as fault:
            if fault.status or not tries_left:
                raise
        else:
            return
