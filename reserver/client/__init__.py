"""A typed asyncio client of the gRPC API.

```python
async with Client("127.0.0.1:9443") as client:
    spec = Spec(owners=(PodOwner("shop", "web-0"),), node="worker-7", resources={"cpu": "2"})
    async with client.hold("web-move-1", spec) as reservation:
        ...  # Nobody but shop/web-0 gets those two CPUs.
```

Calls have deadlines. When reserver is not ready or does not answer, the client repeats those that
are safe to repeat. Create is one of them, because each request has an id.
"""

from __future__ import annotations

from reserver.client.capacity import (
    Amounts,
    Capacity,
    NamespaceQuota,
    NodeCapacity,
    Shortage,
    Verdict,
)
from reserver.client.client import Client
from reserver.client.connection import DEADLINE_S
from reserver.client.values import (
    EVERYTHING,
    CallFailed,
    Change,
    ChangeKind,
    Claim,
    Controller,
    OwnerRule,
    PastClaim,
    PastReservation,
    PlacedSlots,
    PodOwner,
    Replaced,
    Requirement,
    Reservation,
    Selection,
    Spec,
)
from reserver.reservations.enums import Outcome, Phase, Policy

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
    "NamespaceQuota",
    "NodeCapacity",
    "Outcome",
    "OwnerRule",
    "PastClaim",
    "PastReservation",
    "Phase",
    "PlacedSlots",
    "PodOwner",
    "Policy",
    "Replaced",
    "Requirement",
    "Reservation",
    "Selection",
    "Shortage",
    "Spec",
    "Verdict",
]
