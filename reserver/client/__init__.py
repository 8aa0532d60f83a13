"""Typed clients of the gRPC API: `SyncClient` blocks, `Client` is for asyncio.

```python
owner = PodOwner(namespace="shop", name="web-0")
spec = Spec(owners=[owner], node="worker-3", resources={"cpu": "2"})
with SyncClient("127.0.0.1:9443") as client, client.hold("web-move-1", spec):
    ...  # Only shop/web-0 can use these two CPUs.
```

Calls have deadlines. If Reserver is not ready or does not answer, the client repeats each call that
is safe to repeat. This includes Create, because each request has an id.
"""

from __future__ import annotations

from reserver.client.call_errors import CallFailed
from reserver.client.capacity import (
    Capacity,
    HoldAccount,
    NamespaceQuota,
    NodeCapacity,
    Shortage,
    Verdict,
)
from reserver.client.client import Client, SyncCapacity, SyncClient
from reserver.client.connection import DEADLINE_S
from reserver.client.spec_parts import Nodes, OccurrenceInfo, RecurringSchedule
from reserver.client.values import (
    EVERYTHING,
    Change,
    ChangeKind,
    Claim,
    ControllerOwner,
    LabelRequirement,
    Lend,
    OwnerSelector,
    PastClaim,
    PastReservation,
    PlacedSlots,
    PodOwner,
    ReplacedPod,
    ReservationInfo,
    ResourceAmounts,
    Selection,
    Spec,
)
from reserver.reservations.enums import Outcome, Phase, Policy

# Former names, for programs that import them.
Amounts = ResourceAmounts
Controller = ControllerOwner
OwnerRule = OwnerSelector
Replaced = ReplacedPod
Requirement = LabelRequirement
Reservation = ReservationInfo

__all__ = [
    "DEADLINE_S",
    "EVERYTHING",
    "Amounts",
    "CallFailed",
    "Capacity",
    "Change",
    "ChangeKind",
    "Claim",
    "Client",
    "Controller",
    "ControllerOwner",
    "HoldAccount",
    "LabelRequirement",
    "Lend",
    "NamespaceQuota",
    "NodeCapacity",
    "Nodes",
    "OccurrenceInfo",
    "Outcome",
    "OwnerRule",
    "OwnerSelector",
    "PastClaim",
    "PastReservation",
    "Phase",
    "PlacedSlots",
    "PodOwner",
    "Policy",
    "RecurringSchedule",
    "Replaced",
    "ReplacedPod",
    "Requirement",
    "Reservation",
    "ReservationInfo",
    "ResourceAmounts",
    "Selection",
    "Shortage",
    "Spec",
    "SyncCapacity",
    "SyncClient",
    "Verdict",
]
