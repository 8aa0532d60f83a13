"""Metrics of this process and of its container, without those of calls."""

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
"""Unit names of kube-state-metrics, each with its factor to ours; others are integers."""


def measured(parts: Assembly) -> Iterator[Metric]:
    """Yield the counters of the parts, and their current sizes."""
    yield from _counters(parts)
    yield from _watches(parts)
    yield from _resources(parts)
    yield from _queues(parts)
    yield from _features(parts.features)
    yield from _leadership(parts.readiness.lease)
    yield from parts.measured.families(parts.stores.problem_counts())
    yield from hold_metrics.account_families(parts.accountant.held)


def _leadership(lease: Lease | None) -> Iterator[Metric]:
    help_text = "1 while this process leads, or needs no Lease to."  # Same name for all replicas.
    leads = {("reserver",): lease is None or lease.is_held}
    yield gauge("leader_election_master_status", help_text, leads.items(), ("name",))


def _counters(parts: Assembly) -> Iterator[Metric]:
    stores = parts.stores
    help_text = "Reservations in force that exceed a limit set after them."
    beyond = (known for store in stores for known in store.cache.all_known())
    exceeding = {
        (EXCEEDS_QUOTA,): parts.state.ledger.quotas.exceeding_count(),
        (EXCEEDS_BOUNDS,): sum(bool(each.entries.beyond) for each in beyond),
    }
    yield gauge("reserver_reservations_exceeding", help_text, exceeding.items(), ("reason",))
    lost = "Edits that were not made because another client changed the key."
    deprecated = "Deprecated: use reserver_store_edit_conflicts_total."
    unclaimed = "Reservations that expired with unclaimed slots."
    placed = "Placements of reservations without a node, repeated ones included."
    woken = "Waiting pods sent back to kube-scheduler because less is held."
    status_writes = sum(store.statuses.writes for store in stores)
    history_writes = parts.archivist.writes
    for name, help_text, value in (
        ("problems", "Entries reported as not enforced.", parts.recorder.reported),
        ("store_edits", "Edits that the cleaner made.", parts.cleaner.edits),
        ("store_edit_conflicts", lost, parts.cleaner.lost),
        ("store_edits_lost", deprecated, parts.cleaner.lost),
        ("status_writes", "Writes of statuses of reservations.", status_writes),
        ("quota_status_writes", "Writes of used amounts of quotas.", parts.quota_writer.writes),
        ("expired_unclaimed", unclaimed, parts.archivist.unclaimed),
        ("history_writes", "Writes of the history of reservations.", history_writes),
        ("account_writes", "Writes of the accounts.", parts.accountant.writes),
        ("placements", placed, parts.placer.placed),
        ("woken_pods", woken, parts.waker.woken),
    ):
        yield counter(f"reserver_{name}", help_text, value)


def _watches(parts: Assembly) -> Iterator[Metric]:
    """Yield the state of the watches, by collection; several watches of one count together."""
    lists, watches, unreadable = Tally[str](), Tally[str](), Tally[str]()
    is_current: dict[str, bool] = {}
    for each in (*parts.reflectors, *parts.features.unawaited):
        name = each.path.rsplit("/", 1)[1]
        lists[name] += each.lists
        watches[name] += each.watches
        unreadable[name] += each.view.unreadable
        is_current[name] = is_current.get(name, True) and each.current.is_set()
    passed_over = "Objects that were passed over because they could not be read."
    for family, help_text, by_name in (
        ("reserver_lists", "Lists of a watched collection.", lists),
        ("reserver_watches", "Watches begun, resumed ones included.", watches),
        ("reserver_unreadable_objects", passed_over, unreadable),
    ):
        yield counter(family, help_text, _by(by_name), ("collection",))
    synced = "1 while a watch is known to have missed no change."
    for family, help_text in (
        ("reserver_watch_synced", synced),
        ("reserver_watch_current", "Deprecated: use reserver_watch_synced."),
    ):
        yield gauge(family, help_text, _by(is_current), ("collection",))


def _by(values: Mapping[str, float]) -> Iterator[tuple[tuple[str], float]]:
    """Yield values as samples with one label."""
    return (((name,), value) for name, value in values.items())


def _resources(parts: Assembly) -> Iterator[Metric]:
    """Yield the amounts that all nodes offer, and that pods and holds take."""
    snapshot = parts.state.snapshot
    for kind, help_text, layer in (
        ("allocatable", "Allocatable resources of all nodes.", snapshot.allocatable),
        ("requested", "Requests of the pods on the nodes.", snapshot.requested),
        ("held", "Resources that reservations hold on the nodes.", snapshot.held),
    ):
        totals = layer.sum(axis=0, dtype=np.float64)  # The sum may exceed int64.
        by_name = {name: totals[column] for name, column in snapshot.columns.items()}
        yield gauge(
            f"reserver_resources_{kind}", help_text, _in_units(by_name), ("resource", "unit")
        )
    ceiling = parts.state.ledger.quotas.ceiling
    limits, used = ceiling.quota.hard, ceiling.used
    for kind, help_text, amounts in (
        ("ceiling", "Ceiling on the holds of all tenants together.", limits),
        ("held", "Holds of all tenants together, counted as for quotas.", used),
    ):
        by_name = {counted.removeprefix(HELD): amount for counted, amount in amounts.items()}
        yield gauge(f"reserver_tenant_{kind}", help_text, _in_units(by_name), ("resource", "unit"))


def _in_units(amounts: Mapping[str, float]) -> Iterator[tuple[tuple[str, str], float]]:
    """Yield amounts by resource as samples, in the units of kube-state-metrics."""
    for name, amount in amounts.items():
        unit, per_unit = _UNITS.get(name, ("integer", 1))
        yield (name, unit), amount / per_unit


def _queues(parts: Assembly) -> Iterator[Metric]:
    help_text = "Work that waits for its turn, or is under way."
    depths = [((queue.name,), queue.depth) for queue in parts.queues()]
    yield gauge("reserver_queue_depth", help_text, depths, ("queue",))


def _features(features: Features) -> Iterator[Metric]:
    """Yield the metrics of enabled features, and always those of ProvisioningRequests."""
    yield from _provisioning(features.provisioner)
    if features.mover is not None:
        yield from _moves(features.mover)
    if features.maintainer is not None:
        yield from _maintenance(features.maintainer)
    if features.buffers is not None:
        writer = features.buffers.writer
        help_text = "CapacityBuffers that make autoscalers add room for reservations and pods."
        yield gauge("reserver_capacity_buffers", help_text, len(writer))
        help_text = "Writes and deletions of CapacityBuffers."
        yield counter("reserver_capacity_buffer_writes", help_text, writer.writes)
    if features.patches is not None:
        patches = features.patches
        yield gauge("reserver_sched_patches", "SchedPatches.", len(patches.names()))
        help_text = "Writes of statuses of SchedPatches."
        yield counter("reserver_sched_patch_status_writes", help_text, patches.writes)


def _moves(mover: MoveController) -> Iterator[Metric]:
    from reserver.moves.phases import ENDED, MovePhase  # noqa: PLC0415 - imported with the mover

    help_text = "PodMoves that have not ended, by phase."
    counts = Tally(known.move.status.phase for known in mover.moves if known.move)
    phases = [((phase,), counts[phase]) for phase in MovePhase if phase not in ENDED]
    yield gauge("reserver_pod_moves_under_way", help_text, phases, ("phase",))
    writes = mover.writes
    yield counter("reserver_pod_move_status_writes", "Writes of statuses of PodMoves.", writes)


def _maintenance(maintainer: MaintenanceController) -> Iterator[Metric]:
    from reserver.maintenance.model import NodePhase  # noqa: PLC0415 - imported with the maintainer

    help_text = "Nodes of MaintenanceWindows that are not over, by phase."
    phases = [((phase,), maintainer.counts.get(phase, 0)) for phase in NodePhase]
    yield gauge("reserver_maintenance_nodes", help_text, phases, ("phase",))
    help_text = "Writes of nodes for MaintenanceWindows."
    yield counter("reserver_maintenance_node_writes", help_text, maintainer.writes)


def _provisioning(provisioner: Provisioner | None) -> Iterator[Metric]:
    help_text = "ProvisioningRequests of hold.reserver.io, by the conditions that are true."
    requests = provisioner.requests if provisioner else ()
    counts = Tally(kind for known in requests for kind in Kind if known.request.holds(kind))
    by_condition = [((kind,), counts[kind]) for kind in Kind]
    yield gauge("reserver_provisioning_requests", help_text, by_condition, ("condition",))
    writes = provisioner.writes if provisioner else 0
    help_text = "Writes of statuses of ProvisioningRequests."
    yield counter("reserver_provisioning_request_status_writes", help_text, writes)


_CGROUPS = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")
_UNLIMITED = 1 << 60
"""The limit that cgroup version 1 shows without a limit is larger."""


def memory_limit(own: Path = _OWN, cgroups: Path = _CGROUPS) -> int:
    """Return the current memory limit in bytes; 0 without one."""
    try:
        lines = own.read_text().splitlines()
    except OSError:  # Not on Linux.
        return 0
    found = [limit for line in lines for limit in _limits(line, cgroups)]
    return min(found, default=0)


def _limits(line: str, cgroups: Path) -> Iterator[int]:
    """Yield the limits of a cgroup and of its parents."""
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
        except OSError:  # A container sees only its own cgroup, as the root.
            continue
        if text.isdecimal() and int(text) < _UNLIMITED:
            yield int(text)


def memory_measured() -> Iterator[Metric]:
    """Yield the memory limit."""
    help_text = "Memory limit of the container, by its cgroup; 0 without one."
    yield gauge("reserver_memory_limit_bytes", help_text, memory_limit())
