"""The hostile tenant in a storm: it writes continuously, on its own nodes."""

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
"""Writes a second, so few that others make progress on the same cores."""

_TRIES = 8


@dataclass(frozen=True)
class Tenant:
    """The tenant.

    Attributes:
        grpc_address: gRPC address of Reserver.
        seed: seed of its random writes.
        only: names of the catalogue; empty for all.
    """

    grpc_address: str
    seed: int
    only: frozenset[str]

    @contextmanager
    def at_work(self, kubeconfig: Path, api: Api, folder: Path) -> Iterator[None]:
        """Let it write until the block ends, then remove its objects.

        Its reservations and pods are restricted to its own nodes: the storm keeps account of the
        room on all other nodes.
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
    """Delete a collection, repeating requests that time out."""
    for tries_left in reversed(range(_TRIES)):
        try:
            api.delete(path, grace_seconds=0)
        except ApiFault as fault:
            if fault.status or not tries_left:
                raise
        else:
            return
