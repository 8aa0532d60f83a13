"""The refusals of a node itself: cordon, taints, node affinity, host ports, volumes.

The rules of volumes are those of kube-scheduler's plugins/volumebinding, volumezone and
volumerestrictions for bound claims; `docs/fit.md` lists the rules for unbound claims that are
not judged.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from reserver.cluster.categorical import Bools
from reserver.cluster.constraints import Constraints, Taint
from reserver.cluster.node import CORDON
from reserver.cluster.pod import ClaimUse, Pod, PodName
from reserver.cluster.snapshot import Snapshot
from reserver.cluster.storage import ZONE_LABELS, Volume, VolumeClaim
from reserver.reservations.placement import Part, nodes_of
from reserver.scheduling.reasons import (
    EXCLUSIVE_CLAIM,
    NODE_AFFINITY,
    NOT_JUDGED,
    PORTS,
    TAINTED,
    UNBOUND_CLAIM,
    UNSCHEDULABLE,
    VOLUME_AFFINITY,
    VOLUME_ELSEWHERE,
    VOLUME_GONE,
    VOLUME_ZONE,
    Reason,
    Refusal,
)


def node_refusals(pod: Pod, snapshot: Snapshot) -> Iterator[Refusal]:
    """Yield the refusals by the pod's constraints and the nodes' own."""
    constraints, topology = pod.constraints, snapshot.topology
    if constraints.are_too_many:
        yield Refusal(NOT_JUDGED, np.ones(len(snapshot.exists), dtype=np.bool_))
        return
    if not _tolerates(constraints, CORDON):
        yield Refusal(UNSCHEDULABLE, topology.cordoned)
    yield Refusal(TAINTED, ~tolerated(constraints, snapshot))
    if constraints.node_selector.requirements or constraints.node_terms is not None:
        yield Refusal(NODE_AFFINITY, ~allowed_by_affinity(constraints, snapshot))
    if constraints.host_ports:
        yield Refusal(PORTS, _ports_taken(constraints, snapshot))


def is_closed(pod: Pod, snapshot: Snapshot, row: int) -> bool:
    """Return whether a row's node is cordoned, or has a taint that a pod does not tolerate."""
    demands = pod.constraints
    is_cordoned = bool(snapshot.topology.cordoned[row]) and not _tolerates(demands, CORDON)
    return is_cordoned or not tolerated(demands, snapshot)[row]


def untolerated(pod: Pod, snapshot: Snapshot, row: int) -> list[Taint]:
    """Return the taints of a row's node that a pod does not tolerate, a cordon included."""
    topology = snapshot.topology
    taints = (*((CORDON,) if topology.cordoned[row] else ()), *topology.taints_at(row))
    return [each for each in dict.fromkeys(taints) if not _tolerates(pod.constraints, each)]


def tolerated(constraints: Constraints, snapshot: Snapshot) -> Bools:
    """Return, for each row, whether a pod tolerates all taints there that exclude pods."""
    untolerated = snapshot.topology.taints.where(
        lambda taints: not all(_tolerates(constraints, taint) for taint in taints)
    )
    return ~untolerated


def allowed_by_affinity(constraints: Constraints, snapshot: Snapshot) -> Bools:
    """Return, for each row, whether node selector and required node affinity match."""
    topology = snapshot.topology
    allowed = topology.labels.matching(constraints.node_selector)
    if constraints.node_terms is not None:
        allowed &= topology.meeting(constraints.node_terms)
    return allowed


def _tolerates(constraints: Constraints, taint: Taint) -> bool:
    return any(toleration.tolerates(taint) for toleration in constraints.tolerations)


def _ports_taken(constraints: Constraints, snapshot: Snapshot) -> Bools:
    taken = np.zeros(len(snapshot.exists), dtype=np.bool_)
    taken[snapshot.residents.rows_taking(constraints.host_ports)] = True
    return taken


def volume_refusals(pod: Pod, snapshot: Snapshot) -> Iterator[Refusal]:
    """Yield the refusals by a pod's volume claims."""
    everywhere = np.ones(len(snapshot.exists), dtype=np.bool_)
    usable: list[tuple[ClaimUse, VolumeClaim]] = []
    for use in pod.volume_claims:
        claim = snapshot.storage.claims.get(PodName(pod.name.namespace, use.name))
        problem = _problem(pod, use, claim, snapshot)
        if problem is not None:
            yield Refusal(problem, everywhere)
        if claim is not None:
            usable.append((use, claim))
    for use, claim in usable:
        is_its_own = use.is_ephemeral or use.is_inherited
        if claim.is_exclusive and not is_its_own and snapshot.residents.uses(claim.name):
            yield Refusal(EXCLUSIVE_CLAIM, everywhere)
    for use, claim in usable:
        yield from _claim_refusals(use, claim, snapshot, everywhere)


def confinement(pod: Pod, snapshot: Snapshot, rows: Bools) -> str:
    """Return the volumes that exclude a pod's replacement from all these rows; or empty.

    Ephemeral volumes do not count. A claim that names its volume counts even before its status is
    Bound, if the volume is its own: where volumes of other namespaces are is not said.
    """
    everywhere: Bools = snapshot.exists.copy()
    together, names = everywhere.copy(), []
    for use in pod.volume_claims:
        claim = snapshot.storage.claims.get(PodName(pod.name.namespace, use.name))
        volume = snapshot.storage.volumes.get(claim.volume) if claim is not None else None
        if use.is_ephemeral or claim is None or volume is None or not volume.is_of(claim):
            continue
        reach = everywhere.copy()
        for refusal in _volume_refusals(use, volume, snapshot):
            reach &= ~refusal.rows
        name = f"{claim.volume} (claim {use.name})"
        if not np.any(reach & rows):
            return f"its volume {name} is on {_nodes(reach, snapshot)} only"
        together &= reach
        names.append(name)
    if not names or np.any(together & rows):
        return ""
    return f"its volumes {' and '.join(names)} are together on {_nodes(together, snapshot)} only"


def _nodes(rows: Bools, snapshot: Snapshot) -> str:
    names = (snapshot.name_of(row) for row in np.flatnonzero(rows).tolist())
    return nodes_of(Part(name, 1) for name in names) or "no node"


def _problem(
    pod: Pod, use: ClaimUse, claim: VolumeClaim | None, snapshot: Snapshot
) -> Reason | None:
    """Return the reason for which a volume claim excludes every node; None if it does not."""
    if claim is None:
        return _missing(use)
    text = ""
    if claim.is_lost:
        lost = f'bound to non-existent persistentvolume "{claim.volume}"'
        text = f'persistentvolumeclaim "{use.name}" {lost}'
    elif claim.terminating:
        text = f'persistentvolumeclaim "{use.name}" is being deleted'
    elif use.is_ephemeral and claim.owner_uid != pod.uid:
        text = f"PVC {claim.name} was not created for pod {pod.name} (pod is not owner)"
    if text:
        return Reason(UNBOUND_CLAIM.plugin, text)
    return None if claim.is_bound or _waits(claim, snapshot) else UNBOUND_CLAIM


def _missing(use: ClaimUse) -> Reason:
    if not use.is_ephemeral:
        text = f'persistentvolumeclaim "{use.name}" not found'
        return Reason(EXCLUSIVE_CLAIM.plugin, text)
    waits = "waiting for ephemeral volume controller to create the persistentvolumeclaim"
    return Reason(UNBOUND_CLAIM.plugin, f'{waits} "{use.name}"')


def _waits(claim: VolumeClaim, snapshot: Snapshot) -> bool:
    """Return whether a volume claim is bound only once its pod has a node."""
    storage_class = snapshot.storage.classes.get(claim.storage_class)
    return storage_class is not None and storage_class.waits and not claim.volume


def _claim_refusals(
    use: ClaimUse, claim: VolumeClaim, snapshot: Snapshot, everywhere: Bools
) -> Iterator[Refusal]:
    if not claim.is_bound:
        if claim.selected_node and _waits(claim, snapshot):
            rows = everywhere.copy()
            row = snapshot.row(claim.selected_node)
            if row is not None:
                rows[row] = False
            yield Refusal(VOLUME_ELSEWHERE, rows)
        return
    volume = snapshot.storage.volumes.get(claim.volume)
    if volume is None:
        yield Refusal(VOLUME_GONE, everywhere)
        if not use.is_ephemeral:
            text = f'persistentvolume "{claim.volume}" not found'
            yield Refusal(Reason(VOLUME_ZONE.plugin, text), everywhere)
        return
    yield from _volume_refusals(use, volume, snapshot)


def _volume_refusals(use: ClaimUse, volume: Volume, snapshot: Snapshot) -> Iterator[Refusal]:
    """Yield the refusals of nodes that cannot use a volume."""
    if volume.node_terms is not None:
        yield Refusal(VOLUME_AFFINITY, ~_reachable(volume, snapshot))
    if volume.zones and not use.is_ephemeral:
        yield Refusal(VOLUME_ZONE, _in_other_zone(volume, snapshot))


def _reachable(volume: Volume, snapshot: Snapshot) -> Bools:
    """Return, for each row, whether a volume's node affinity matches.

    Only labels count: `CheckNodeAffinity` ignores matchFields.
    """
    reachable = np.zeros(len(snapshot.exists), dtype=np.bool_)
    for term in volume.node_terms or ():
        reachable |= snapshot.topology.labels.matching(term.labels)
    return reachable


def _in_other_zone(volume: Volume, snapshot: Snapshot) -> Bools:
    """Return, for each row, whether its zone labels exclude a volume; no labels never do."""
    labels = snapshot.topology.labels
    is_zoned = np.zeros(len(snapshot.exists), dtype=np.bool_)
    for key in ZONE_LABELS:
        is_zoned |= labels.column(key).present()
    suits = np.ones(len(snapshot.exists), dtype=np.bool_)
    for key, zones in volume.zones:
        own, todays = labels.column(key), labels.column(ZONE_LABELS[key])
        suits &= np.where(own.present(), own.among(zones), todays.among(zones))
    return is_zoned & ~suits
