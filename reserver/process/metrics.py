"""Metrics of the parts of this process and of its container, apart from calls."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import numpy as np
from prometheus_client.core import Metric

from reserver.extender.metrics import counter, gauge
from reserver.k8s.lease import Lease
from reserver.process import hold_metrics
from reserver.process.assembly import Assembly
from reserver.process.features import Features
from reserver.provisioning.model import Kind
from reserver.reservations.quota import HELD
from reserver.reservations.status import EXCEEDS_BOUNDS, EXCEEDS_QUOTA

if TYPE_CHECKING:
    from reserver.maintenance.controller import MaintenanceController
    from reserver.moves.controller import MoveController
    from reserver.provisioning.controller import Provisioner

_UNITS = {"cpu": ("core", 1000), "memory": ("byte", 1), "ephemeral-storage": ("byte", 1)}
"""Names of units as kube-state-metrics has them, and how many of ours are one; others: integer."""


def measured(parts: Assembly) -> Iterator[Metric]:
    """Yield what the parts count, and how much they have at this moment."""
    yield from _counters(parts)
    yield from _watches(parts)
    yield from _resources(parts)
    yield from _queues(parts)
    yield from _features(parts.features)
    yield from _leadership(parts.readiness.lease)
    yield from parts.measured.families(parts.stores.problem_counts())
    yield from hold_metrics.account_families(parts.accountant.held)


def _leadership(lease: Lease | None) -> Iterator[Metric]:
    told = "1 while this process leads, or needs no Lease to."  # Under everybody's name.
    leads = {("reserver",): lease is None or lease.is_held}
    yield gauge("leader_election_master_status", told, leads.items(), ("name",))


def _counters(parts: Assembly) -> Iterator[Metric]:
    stores = parts.stores
    told = "Reservations that hold and exceed a limit that was made or lowered after them."
    beyond = (known for store in stores for known in store.cache.all_known())
    exceeding = {
        (EXCEEDS_QUOTA,): parts.state.ledger.quotas.exceeding_count(),
        (EXCEEDS_BOUNDS,): sum(bool(each.entries.beyond) for each in beyond),
    }
    yield gauge("reserver_reservations_exceeding", told, exceeding.items(), ("reason",))
    lost = "Edits that were not made because somebody wrote the key in between."
    deprecated = "Deprecated: use reserver_store_edit_conflicts_total."
    unclaimed = "Reservations that expired with slots that nobody had claimed."
    placed = "Reservations that name no node placed, or placed again."
    woken = "Waiting pods sent back to kube-scheduler because less is held."
    status_writes = sum(store.statuses.writes for store in stores)
    history_writes = parts.archivist.writes
    for name, told, value in (
        ("problems", "Entries reported as not enforced.", parts.recorder.reported),
        ("store_edits", "Edits that the cleaner made.", parts.cleaner.edits),
        ("store_edit_conflicts", lost, parts.cleaner.lost),
        ("store_edits_lost", deprecated, parts.cleaner.lost),
        ("status_writes", "Writes of what became of entries.", status_writes),
        ("quota_status_writes", "Writes of what is used of quotas.", parts.quota_writer.writes),
        ("expired_unclaimed", unclaimed, parts.archivist.unclaimed),
        ("history_writes", "Writes of what became of reservations.", history_writes),
        ("account_writes", "Writes of the accounts.", parts.accountant.writes),
        ("placements", placed, parts.placer.placed),
        ("woken_pods", woken, parts.waker.woken),
    ):
        yield counter(f"reserver_{name}", told, value)


def _watches(parts: Assembly) -> Iterator[Metric]:
    """Yield how the watches are, by collection; several watches of one count together."""
    lists, watches, unreadable = Tally[str](), Tally[str](), Tally[str]()
    is_current: dict[str, bool] = {}
    for each in (*parts.reflectors, *parts.features.unawaited):
        name = each.path.rsplit("/", 1)[1]
        lists[name] += each.lists
        watches[name] += each.watches
        unreadable[name] += each.view.unreadable
        is_current[name] = is_current.get(name, True) and each.current.is_set()
    passed_over = "Objects that were passed over because they could not be read."
    for family, told, by_name in (
        ("reserver_lists", "Lists of a watched collection.", lists),
        ("reserver_watches", "Watches begun, resumed ones included.", watches),
        ("reserver_unreadable_objects", passed_over, unreadable),
    ):
        yield counter(family, told, _by(by_name), ("collection",))
    synced = "1 while a watch has shown everything that happened, as far as is known."
    for family, told in (
        ("reserver_watch_synced", synced),
        ("reserver_watch_current", "Deprecated: use reserver_watch_synced."),
    ):
        yield gauge(family, told, _by(is_current), ("collection",))


def _by(values: Mapping[str, float]) -> Iterator[tuple[tuple[str], float]]:
    """Yield the samples of values by one label."""
    return (((name,), value) for name, value in values.items())


def _resources(parts: Assembly) -> Iterator[Metric]:
    """Yield what all nodes offer, and what pods and holds take of it."""
    snapshot = parts.state.snapshot
    for kind, told, layer in (
        ("allocatable", "What the nodes offer to pods.", snapshot.allocatable),
        ("requested", "What pods on the nodes request.", snapshot.requested),
        ("held", "What reservations hold on the nodes for pods to come.", snapshot.held),
    ):
        totals = layer.sum(axis=0, dtype=np.float64)  # Integers of 64 bits might overflow.
        by_name = {name: totals[column] for name, column in snapshot.columns.items()}
        yield gauge(f"reserver_resources_{kind}", told, _in_units(by_name), ("resource", "unit"))
    ceiling = parts.state.ledger.quotas.ceiling
    limits, used = ceiling.quota.hard, ceiling.used
    for kind, told, amounts in (
        ("ceiling", "The most that all tenants may hold together.", limits),
        ("held", "What all tenants hold together, counted as quotas count it.", used),
    ):
        by_name = {counted.removeprefix(HELD): amount for counted, amount in amounts.items()}
        yield gauge(f"reserver_tenant_{kind}", told, _in_units(by_name), ("resource", "unit"))


def _in_units(amounts: Mapping[str, float]) -> Iterator[tuple[tuple[str, str], float]]:
    """Yield amounts by resource as samples, in the units of kube-state-metrics."""
    for name, amount in amounts.items():
        unit, per_unit = _UNITS.get(name, ("integer", 1))
        yield (name, unit), amount / per_unit


def _queues(parts: Assembly) -> Iterator[Metric]:
    told = "What waits for its turn, or is worked on."
    depths = [((queue.name,), queue.depth) for queue in parts.queues()]
    yield gauge("reserver_queue_depth", told, depths, ("queue",))


def _features(asked: Features) -> Iterator[Metric]:
    """Yield what is counted where it is asked for, and of ProvisioningRequests in any case."""
    yield from _provisioning(asked.provisioner)
    if asked.mover is not None:
        yield from _moves(asked.mover)
    if asked.maintainer is not None:
        yield from _maintenance(asked.maintainer)
    if asked.buffers is not None:
        writer = asked.buffers.writer
        told = "CapacityBuffers that have autoscalers make room for reservations and pods."
        yield gauge("reserver_capacity_buffers", told, len(writer))
        told = "Writes and deletions of CapacityBuffers."
        yield counter("reserver_capacity_buffer_writes", told, writer.writes)
    if asked.patches is not None:
        patches = asked.patches
        yield gauge("reserver_sched_patches", "SchedPatches.", len(patches.names()))
        told = "Writes of statuses of SchedPatches."
        yield counter("reserver_sched_patch_status_writes", told, patches.writes)


def _moves(mover: MoveController) -> Iterator[Metric]:
    from reserver.moves.phases import ENDED, MovePhase  # noqa: PLC0415 - imported with the mover

    told = "PodMoves that have not ended, by phase."
    counts = Tally(known.move.status.phase for known in mover.moves if known.move)
    phases = [((phase,), counts[phase]) for phase in MovePhase if phase not in ENDED]
    yield gauge("reserver_pod_moves_under_way", told, phases, ("phase",))
    writes = mover.writes
    yield counter("reserver_pod_move_status_writes", "Writes of statuses of PodMoves.", writes)


def _maintenance(maintainer: MaintenanceController) -> Iterator[Metric]:
    from reserver.maintenance.model import NodePhase  # noqa: PLC0415 - imported with the maintainer

    told = "Nodes of MaintenanceWindows that are not over, by phase."
    phases = [((phase,), maintainer.counts.get(phase, 0)) for phase in NodePhase]
    yield gauge("reserver_maintenance_nodes", told, phases, ("phase",))
    told = "Writes of nodes for MaintenanceWindows."
    yield counter("reserver_maintenance_node_writes", told, maintainer.writes)


def _provisioning(provisioner: Provisioner | None) -> Iterator[Metric]:
    told = "ProvisioningRequests of hold.reserver.io, by the conditions that are true."
    requests = provisioner.requests if provisioner else ()
    counts = Tally(kind for known in requests for kind in Kind if known.request.holds(kind))
    by_condition = [((kind,), counts[kind]) for kind in Kind]
    yield gauge("reserver_provisioning_requests", told, by_condition, ("condition",))
    writes = provisioner.writes if provisioner else 0
    told = "Writes of statuses of ProvisioningRequests."
    yield counter("reserver_provisioning_request_status_writes", told, writes)


_CGROUPS = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")
_UNLIMITED = 1 << 60
"""So much version 1 has where nobody has set a limit."""


def memory_limit(own: Path = _OWN, cgroups: Path = _CGROUPS) -> int:
    """Return the limit in bytes, as it is now; 0 without one."""
    try:
        lines = own.read_text().splitlines()
    except OSError:  # Not on Linux.
        return 0
    found = [limit for line in lines for limit in _limits(line, cgroups)]
    return min(found, default=0)


def _limits(line: str, cgroups: Path) -> Iterator[int]:
    """Yield the limits of a cgroup, and of those that it is in."""
    _, controllers, path = line.split(":", 2)
    if controllers and "memory" not in controllers.split(","):
        return
    folder, name = (
        (cgroups / "memory", "memory.limit_in_bytes") if controllers else (cgroups, "memory.max")
    )
    within = PurePosixPath(path.lstrip("/"))
    for each in (within, *within.parents):
        try:
            text = (folder / each / name).read_text().strip()
        except OSError:  # A container sees only its own, as the root.
            continue
        if text.isdecimal() and int(text) < _UNLIMITED:
            yield int(text)


def memory_measured() -> Iterator[Metric]:
    """Yield the memory limit."""
    told = "Memory limit of the container, by its cgroup; 0 without one."
    yield gauge("reserver_memory_limit_bytes", told, memory_limit())
