"""The hostile tenant in a storm: it writes all the time, on nodes that are nobody else's."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hack.chaos.api import Api
from hack.chaos.world import LABEL, SCHEDULER
from hack.controlplane.cluster import create_nodes
from hack.hostile.catalogue import CATALOGUE
from hack.hostile.tenant import PATHS
from hack.hostile.world import TENANT, tenant_kubeconfig

__all__ = ["TENANT", "Tenant"]

_NODES = 5
_RATE = 3.0
"""Writes a second: others have to get something done on the same cores."""


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
            with self._writing(own, folder):
                yield
        finally:
            for path in PATHS.values():
                api.delete(path.format(TENANT), grace_seconds=0)
            for node in nodes:
                api.delete(f"/api/v1/nodes/{node}")

    @contextmanager
    def _writing(self, kubeconfig: Path, folder: Path) -> Iterator[None]:
        command: list[str | Path] = [sys.executable, "-m", "hack.hostile.tenant"]
        command += [kubeconfig, TENANT, folder / "tenant.jsonl"]
        command += ["--seed", str(self.seed), "--rate", str(_RATE)]
        command += ["--nodes", str(_NODES), "--node-name", f"{TENANT}-w-{{}}"]
        command += ["--label", f"{LABEL}={TENANT}", "--scheduler", SCHEDULER]
        command += ["--grpc-address", self.grpc_address]
        command += ["--only", ",".join(sorted(self.only or CATALOGUE))]
        with (folder / "tenant.log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            yield
            if process.poll() is not None:
                raise RuntimeError(f"the tenant has ended by itself: {log.name}")
        finally:
            process.terminate()
            process.wait()
