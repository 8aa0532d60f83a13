"""What sends a pod back that Filter refused on all names, beside nominations for its seats."""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

import numpy as np

from reserver.cluster.categorical import Bools
from reserver.cluster.pod import Pod
from reserver.cluster.snapshot import Snapshot
from reserver.scheduling.effects import Effect, Nominate, Retry
from reserver.scheduling.fit import fits_where
from reserver.scheduling.gangs import Attempt
from reserver.scheduling.request_arrays import request_columns
from reserver.scheduling.waiting_pod import LEAST_SAMPLE

SHOWN_S = 0.2
"""When a watch will have shown what kube-scheduler knows already, in seconds."""


def once_read(pod: Pod, names: Sequence[str], snapshot: Snapshot) -> tuple[Effect, ...]:
    """Return what sends a pod back once Reserver has read of what kube-scheduler knows already.

    kube-scheduler names nodes where it sees room. Where Reserver sees none, holds aside, it has
    yet to read that a pod is gone, and kube-scheduler would not ask again by itself.
    """
    rows = snapshot.rows(names)
    rows = rows[rows >= 0]
    rows = rows[(snapshot.exists & snapshot.guarded)[rows]]
    columns, amounts = request_columns(pod, snapshot)
    at = np.ix_(rows, columns)
    offered, requested = snapshot.allocatable[at], snapshot.requested[at]
    is_behind = np.any((offered >= amounts) & (offered - requested < amounts))
    return (Retry(pod, attempts=1, after_s=SHOWN_S),) if is_behind else ()


def elsewhere(
    pod: Pod, names: Sequence[str], snapshot: Snapshot, beside: Bools, gang: Attempt
) -> tuple[Effect, ...]:
    """Return what sends a pod to a node that fits and that kube-scheduler's sample left out.

    Fewer names than the least sample are no sample: kube-scheduler has refused all other nodes.
    A nomination that somebody else made (preemption) is left alone; such a pod is tried again.

    Args:
        pod: the pod, refused on all names.
        names: of the call.
        beside: for each row, whether the pod fits beside the holds.
    """
    if len(names) < LEAST_SAMPLE:
        return ()
    fitting = fits_where(pod, snapshot, beside)
    if not fitting.any():
        return ()
    offered = snapshot.rows([*names, *gang.taken])
    fitting[offered[offered >= 0]] = False
    rows = np.flatnonzero(fitting)
    if not len(rows):
        return ()
    if pod.nominated_node:
        return (Retry(pod, attempts=-(-snapshot.node_count // len(names))),)
    # Pods that are refused together are sent to different nodes.
    row = rows[crc32(pod.uid.encode()) % len(rows)]
    return (Nominate(pod, snapshot.name_of(row)),)
