"""The page that says how much each input may say has the numbers of the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from reserver.autoscaling.buffer_writer import MOST_A_TURN, MOST_POD_BYTES
from reserver.base.schedule import MOST_CRON
from reserver.cluster.lending import MOST_BORROWERS
from reserver.cluster.pod import MOST_UNOFFERED
from reserver.grpc import service
from reserver.grpc.concurrency import CallCounts
from reserver.grpc.selection import MOST_IN_PAGE
from reserver.http.message import ListenerLimits
from reserver.k8s.objects import budgets, limits, move_windows
from reserver.k8s.objects.limits import HOME, POD, TENANT
from reserver.maintenance import codec as windows
from reserver.moves import podmove, podmove_group, surge_object
from reserver.moves.index import MOST_ENDED, MOST_MOVES, MOST_MOVES_IN_ALL
from reserver.moves.model import MOST_IN_GROUP
from reserver.moves.windows import _MOST_LOOKS
from reserver.patches.book import MOST_MERGED, MOST_PATCHES
from reserver.patches.codec import MOST_PODS
from reserver.patches.model import MOST_BYTES
from reserver.provisioning import codec, template
from reserver.provisioning.model import MOST_POD_SETS
from reserver.provisioning.observe import MOST_REQUESTS
from reserver.reservations import accounts
from reserver.scheduling.buffers import MOST_BUFFERS
from reserver.settings import configuration
from reserver.settings import strict_yaml as document
from reserver.stores.codec import account_codec
from reserver.stores.object.codec import MOST_CLAIMS
from reserver.stores.quota_codec import MOST_HARD

PAGE = Path(__file__).parents[2] / "docs/limits.md"

_SHARES, _HTTP = CallCounts(), ListenerLimits()
ROWS: dict[str, list[float]] = {
    "Reservation": [
        *TENANT[:2],
        TENANT.resources,
        TENANT.slots,
        TENANT.terms,
        limits.SLOTS_BESIDE_EACH_OTHER,
        limits.MOST_OBJECTS,
    ],
    "Reservation in Reserver": [
        *HOME[:2],
        HOME.resources,
        HOME.slots,
        HOME.terms,
        limits.MOST_KEYS,
        limits.MOST_ITEMS,
    ],
    "`schedule`": [
        MOST_CRON,
        limits.MOST_OCCURRENCES,
        limits.MOST_SKIPPED,
        limits.MOST_LEAD_S // 3_600,
        limits.MOST_REFILLED,
        int(limits.MOST_IDLE_S) // 3_600,
        MOST_BORROWERS,
    ],
    "ReservationQuota": [MOST_HARD],
    "PodMove": [
        podmove.MOST_BYTES,
        podmove.MOST_LABELS,
        MOST_IN_GROUP,
        MOST_CLAIMS,
        MOST_MOVES,
        MOST_MOVES_IN_ALL,
        MOST_ENDED,
    ],
    "window for moves": [
        MOST_CRON,
        move_windows.MOST_LABELS,
        move_windows.MOST_WINDOWS,
        _MOST_LOOKS,
    ],
    "ReplicaSet of a surge": [surge_object.ReplicaSetObject.MOST_BYTES],
    "PodDisruptionBudget": [
        budgets.BudgetObject.MOST_BYTES,
        budgets.MOST_TERMS,
        budgets.MOST_VALUES,
        budgets.MOST_BUDGETS,
    ],
    "metadata of Reserver's objects": [POD.labels, POD.part_bytes],
    "accounts": [
        account_codec.MOST_BYTES,
        accounts.MOST_WEEKS,
        accounts.MOST_NAMESPACES,
        accounts.MOST_OWNERS,
        accounts.MOST_RESOURCES,
    ],
    "PodMoveGroup": [podmove_group.MOST_BYTES, MOST_IN_GROUP],
    "MaintenanceWindow": [
        windows.MOST_BYTES,
        windows.MOST_NODES,
        windows.MOST_TERMS,
        windows.MOST_VALUES,
        windows.MOST_WINDOWS,
    ],
    "SchedPatch": [MOST_PODS, MOST_BYTES, MOST_PATCHES, MOST_MERGED],
    "ProvisioningRequest": [
        codec.MOST_BYTES,
        MOST_POD_SETS,
        TENANT.slots,
        limits.SET_SLOTS_BESIDE_EACH_OTHER,
        MOST_REQUESTS,
    ],
    "PodTemplate": [template._Object.MOST_BYTES, MOST_POD_SETS],
    "Pod": [*POD[:6], POD.things, POD.claims, MOST_UNOFFERED],
    "what a CapacityBuffer": [MOST_POD_BYTES, MOST_BUFFERS, MOST_A_TURN],
    "Node": [limits.MOST_OFFERED],
    "gRPC call": [
        service.MOST_BYTES,
        service.MOST_METADATA_BYTES,
        limits.MOST_IN_SET,
        limits.SET_BYTES,
        MOST_IN_PAGE,
        _SHARES.users._each,
        _SHARES.watches._each,
        _SHARES.peers._each,
        service.MOST_CONNECTIONS,
    ],
    "configuration file": [document.MOST_BYTES, configuration.MOST_ITEMS],
    "policy of": [document.MOST_BYTES],
    "HTTP call": [
        _HTTP.headers,
        _HTTP.header_bytes,
        int(_HTTP.request_s),
        _HTTP.connections,
        _HTTP.new_per_peer,
    ],
}


@pytest.mark.parametrize("name", ROWS)
def test_each_bound_on_the_page_is_that_of_the_code(name: str) -> None:
    section = PAGE.read_text().split("## Inputs")[1].split("\n## ")[0]
    (row,) = [
        line
        for line in section.splitlines()
        if line.startswith((f"| {name} ", f"| {name}'", f"| {name},"))
        and (name != "Reservation" or line.startswith("| Reservation |"))
    ]
    words = row.replace(";", " ").replace(", ", " ").split()
    missing = [number for number in ROWS[name] if f"{number:,}" not in words]
    assert not missing, row


def test_every_row_of_the_page_is_compared() -> None:
    section = PAGE.read_text().split("## Inputs")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")]
    assert len(rows) == len(ROWS) + 1
