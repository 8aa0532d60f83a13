"""Metrics of the parts of this process, apart from calls (`extender/metrics.py`)."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

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
    leads = GaugeMetricFamily("leader_election_master_status", told, labels=("name",))
    leads.add_metric(("reserver",), lease is None or lease.is_held)
    yield leads


def _counters(parts: Assembly) -> Iterator[Metric]:
    stores = parts.stores
    told = "Reservations that hold and exceed a limit that was made or lowered after them."
    exceeding = GaugeMetricFamily("reserver_reservations_exceeding", told, labels=("reason",))
    quotas = parts.state.ledger.quotas
    exceeding.add_metric((EXCEEDS_QUOTA,), quotas.exceeding_count())
    beyond = (known for store in stores for known in store.cache.all_known())
    exceeding.add_metric((EXCEEDS_BOUNDS,), sum(bool(each.entries.beyond) for each in beyond))
    yield exceeding
    lost = "Edits that were not made because somebody wrote the key in between."
    yield _counter(
        "reserver_problems", "Entries reported as not enforced.", parts.recorder.reported
    )
    yield _counter("reserver_store_edits", "Edits that the cleaner made.", parts.cleaner.edits)
    yield _counter("reserver_store_edit_conflicts", lost, parts.cleaner.lost)
    deprecated = "Deprecated: use reserver_store_edit_conflicts_total."
    yield _counter("reserver_store_edits_lost", deprecated, parts.cleaner.lost)
    writes = sum(store.statuses.writes for store in stores)
    yield _counter("reserver_status_writes", "Writes of what became of entries.", writes)
    writes = parts.quota_writer.writes
    yield _counter("reserver_quota_status_writes", "Writes of what is used of quotas.", writes)
    unclaimed = "Reservations that expired with slots that nobody had claimed."
    yield _counter("reserver_expired_unclaimed", unclaimed, parts.archivist.unclaimed)
    writes = parts.archivist.writes
    yield _counter("reserver_history_writes", "Writes of what became of reservations.", writes)
    writes = parts.accountant.writes
    yield _counter("reserver_account_writes", "Writes of the accounts.", writes)
    placed = "Reservations that name no node placed, or placed again."
    yield _counter("reserver_placements", placed, parts.placer.placed)
    woken = "Waiting pods sent back to kube-scheduler because less is held."
    yield _counter("reserver_woken_pods", woken, parts.waker.woken)


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
        counter = CounterMetricFamily(family, told, labels=("collection",))
        for name, count in by_name.items():
            counter.add_metric((name,), count)
        yield counter
    for family, told in (
        (
            "reserver_watch_synced",
            "1 while a watch has shown everything that happened, as far as is known.",
        ),
        ("reserver_watch_current", "Deprecated: use reserver_watch_synced."),
    ):
        synced = GaugeMetricFamily(family, told, labels=("collection",))
        for name, value in is_current.items():
            synced.add_metric((name,), value)
        yield synced


def _resources(parts: Assembly) -> Iterator[Metric]:
    """Yield what all nodes offer, and what pods and holds take of it."""
    snapshot = parts.state.snapshot
    for kind, told, layer in (
        ("allocatable", "What the nodes offer to pods.", snapshot.allocatable),
        ("requested", "What pods on the nodes request.", snapshot.requested),
        ("held", "What reservations hold on the nodes for pods to come.", snapshot.held),
    ):
        family = GaugeMetricFamily(f"reserver_resources_{kind}", told, labels=("resource", "unit"))
        totals = layer.sum(axis=0, dtype=np.float64)  # Integers of 64 bits might overflow.
        for name, column in snapshot.columns.items():
            unit, per_unit = _UNITS.get(name, ("integer", 1))
            family.add_metric((name, unit), totals[column] / per_unit)
        yield family
    ceiling = parts.state.ledger.quotas.ceiling
    limits, used = ceiling.quota.hard, ceiling.used
    for kind, told, amounts in (
        ("ceiling", "The most that all tenants may hold together.", limits),
        ("held", "What all tenants hold together, counted as quotas count it.", used),
    ):
        family = GaugeMetricFamily(f"reserver_tenant_{kind}", told, labels=("resource", "unit"))
        for counted, amount in amounts.items():
            name = counted.removeprefix(HELD)
            unit, per_unit = _UNITS.get(name, ("integer", 1))
            family.add_metric((name, unit), amount / per_unit)
        yield family


def _queues(parts: Assembly) -> Iterator[Metric]:
    depth = GaugeMetricFamily(
        "reserver_queue_depth", "What waits for its turn, or is worked on.", labels=("queue",)
    )
    for queue in parts.queues():
        depth.add_metric((queue.name,), queue.depth)
    yield depth


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
        yield _gauge("reserver_capacity_buffers", told, len(writer))
        told = "Writes and deletions of CapacityBuffers."
        yield _counter("reserver_capacity_buffer_writes", told, writer.writes)
    if asked.patches is not None:
        patches = asked.patches
        yield _gauge("reserver_sched_patches", "SchedPatches.", len(patches.names()))
        told = "Writes of statuses of SchedPatches."
        yield _counter("reserver_sched_patch_status_writes", told, patches.writes)


def _moves(mover: MoveController) -> Iterator[Metric]:
    from reserver.moves.phases import ENDED, MovePhase  # noqa: PLC0415 - imported with the mover

    counts = Tally(known.move.status.phase for known in mover.moves if known.move)
    under_way = GaugeMetricFamily(
        "reserver_pod_moves_under_way", "PodMoves that have not ended, by phase.", labels=("phase",)
    )
    for phase in MovePhase:
        if phase not in ENDED:
            under_way.add_metric((phase,), counts[phase])
    yield under_way
    writes = mover.writes
    yield _counter("reserver_pod_move_status_writes", "Writes of statuses of PodMoves.", writes)


def _maintenance(maintainer: MaintenanceController) -> Iterator[Metric]:
    from reserver.maintenance.model import NodePhase  # noqa: PLC0415 - imported with the maintainer

    told = "Nodes of MaintenanceWindows that are not over, by phase."
    nodes = GaugeMetricFamily("reserver_maintenance_nodes", told, labels=("phase",))
    for phase in NodePhase:
        nodes.add_metric((phase,), maintainer.counts.get(phase, 0))
    yield nodes
    told = "Writes of nodes for MaintenanceWindows."
    yield _counter("reserver_maintenance_node_writes", told, maintainer.writes)


def _provisioning(provisioner: Provisioner | None) -> Iterator[Metric]:
    told = "ProvisioningRequests of hold.reserver.io, by the conditions that are true."
    by_condition = GaugeMetricFamily("reserver_provisioning_requests", told, labels=("condition",))
    requests = provisioner.requests if provisioner else ()
    counts = Tally(kind for known in requests for kind in Kind if known.request.holds(kind))
    for kind in Kind:
        by_condition.add_metric((kind,), counts[kind])
    yield by_condition
    writes = provisioner.writes if provisioner else 0
    told = "Writes of statuses of ProvisioningRequests."
    yield _counter("reserver_provisioning_request_status_writes", told, writes)


def _counter(name: str, documentation: str, value: int) -> Metric:
    return CounterMetricFamily(name, documentation, value=value)


def _gauge(name: str, documentation: str, value: int) -> Metric:
    return GaugeMetricFamily(name, documentation, value=value)
