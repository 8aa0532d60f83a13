"""Finds the pods of a node whose volumes no other node can use, before anything is changed."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import typer

from reserver.cli.podmoves import Client
from reserver.cluster.pod import Pod, PodName
from reserver.errors import ApiError
from reserver.rebalance.capacity import snapshot_of
from reserver.rebalance.cluster_state import ClusterState
from reserver.scheduling.volumes import confinement
from reserver.wire.rebalance.reading import Reading

_CLAIMS = "/api/v1/namespaces/{}/persistentvolumeclaims"
_OTHERS = ("/api/v1/persistentvolumes", "/api/v1/nodes")
_REMEDY = "kubectl drain evicts it without a seat, and it waits until {} is uncordoned"


async def confined(client: Client, node: str, pods: bytes) -> Mapping[PodName, str]:
    """Return why pods of a node cannot move because of their volumes, by name.

    Who may not look at volumes learns it from the moves: Reserver judges them in any case.

    Args:
        client: of the API server.
        node: where they are.
        pods: a list of them as the API server sends it.

    Raises:
        ApiError: the API server does not answer.
    """
    bound = [pod for pod in _read([pods]).pods if _lasting(pod.pod)]
    if not bound:
        return {}
    paths = [_CLAIMS.format(name) for name in sorted({pod.name.namespace for pod in bound})]
    try:
        lists = [await client.get(path) for path in (*paths, *_OTHERS)]
    except ApiError as exc:
        if not exc.is_definite:
            raise
        typer.echo(f"where volumes are cannot be seen before the moves: {exc}", err=True)
        return {}
    snapshot = snapshot_of(_read(lists))
    rows = snapshot.exists.copy()
    if (row := snapshot.row(node)) is not None:
        rows[row] = False
    found = {pod.name: confinement(pod.pod, snapshot, rows) for pod in bound}
    return {name: f"{why}; {_REMEDY.format(node)}" for name, why in found.items() if why}


def _lasting(pod: Pod) -> bool:
    return any(not use.is_ephemeral for use in pod.volume_claims)


def _read(lists: list[bytes]) -> ClusterState:
    reading = Reading()
    for each in lists:
        reading.take("the API server's answer", msgspec.Raw(each))
    return reading.result().inventory
