"""The checks of `reserver drain` before any change: volumes, and room elsewhere."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec
import typer

from reserver.cli import failure, plan_inputs
from reserver.cli.failure import Failed
from reserver.cli.podmoves import KubeClient
from reserver.cli.target import Target
from reserver.cli.terminal import progress
from reserver.cluster.pod import Pod, PodName
from reserver.errors import ApiError
from reserver.moves.feasibility import too_many_claims
from reserver.rebalance.capacity import NOTHING_HELD, Held, snapshot_of
from reserver.rebalance.cluster_state import ClusterState
from reserver.rebalance.dump import list_cluster
from reserver.rebalance.dump_reader import DumpReading
from reserver.rebalance.evacuation import without_room
from reserver.scheduling.node_rules import confinement

_CLAIMS = "/api/v1/namespaces/{}/persistentvolumeclaims"
_OTHERS = ("/api/v1/persistentvolumes", "/api/v1/nodes")
_REMEDY = "evict it by kubectl drain; its replacement waits until {} is uncordoned"


async def held_by_reservations(target: Target) -> Held:
    """Return what reservations hold, by node; nothing if Reserver cannot be reached."""
    try:
        return await plan_inputs.held(target)
    except Failed as exc:
        why = str(exc).partition(";")[0]
        failure.report(f"room elsewhere is computed without reservations: {why}")
        return NOTHING_HELD


async def roomless(
    client: KubeClient, node: str, leaving: Collection[PodName], held: Held
) -> Mapping[PodName, str]:
    """Return the pods without room on another node, with the reasons; all pods move at once.

    A caller without the right to read the cluster gets the reasons from the moves instead.

    Args:
        node: the node to drain.
        leaving: the pods that get a seat.
        held: resources that reservations hold, by node.

    Raises:
        ApiError: the API server does not answer.
    """
    if not leaving:
        return {}
    try:
        async with progress("Looking for room elsewhere"):
            cluster = (await list_cluster(client)).inventory
    except ApiError as exc:
        if not exc.is_definite:
            raise
        failure.report(f"cannot look for room elsewhere before the moves: {exc}")
        return {}
    return without_room(cluster, held, node, frozenset(leaving))


async def confined(client: KubeClient, node: str, pods: bytes) -> Mapping[PodName, str]:
    """Return the reasons why volumes keep pods on a node, by pod.

    A caller without the right to read volumes gets the reasons from the moves instead.

    Args:
        node: the node of the pods.
        pods: the list of pods as the API server sends it.

    Raises:
        ApiError: the API server does not answer.
    """
    bound = [pod for pod in _inventory([pods]).pods if _lasting(pod.pod)]
    if not bound:
        return {}
    paths = [_CLAIMS.format(name) for name in sorted({pod.name.namespace for pod in bound})]
    try:
        lists = [await client.get(path) for path in (*paths, *_OTHERS)]
    except ApiError as exc:
        if not exc.is_definite:
            raise
        typer.echo(f"cannot look at volumes before the moves: {exc}", err=True)
        return {}
    snapshot = snapshot_of(_inventory(lists))
    rows = snapshot.exists.copy()
    if (row := snapshot.row(node)) is not None:
        rows[row] = False
    found = {}
    for pod in bound:
        if why := too_many_claims(pod.pod):
            found[pod.name] = f"{why}; evict it by kubectl drain"
        elif why := confinement(pod.pod, snapshot, rows):
            found[pod.name] = f"{why}; {_REMEDY.format(node)}"
    return found


def _lasting(pod: Pod) -> bool:
    return any(not use.is_ephemeral for use in pod.volume_claims)


def _inventory(lists: list[bytes]) -> ClusterState:
    reading = DumpReading()
    for each in lists:
        reading.take("the API server's answer", msgspec.Raw(each))
    return reading.result().inventory
