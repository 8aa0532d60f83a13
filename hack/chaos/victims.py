"""What faults strike."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hack.chaos.mishaps import Mishaps
from hack.chaos.proxy import Proxy
from hack.chaos.replicas import Replicas
from hack.chaos.wall_clock import WallClock
from hack.controlplane.cluster import ControlPlane


@dataclass(frozen=True, kw_only=True)
class Victims:
    """What faults strike.

    Attributes:
        plane: the control plane.
        reserver: one replica or more.
        proxy: between the two; None if no fault needs one.
        mishaps: of the requests that go through the proxy.
        clock: that Reserver runs on; None if no fault needs one.
        scheduler: name of the kube-scheduler in `plane`.
        scheduler_config: what to start it with.
    """

    plane: ControlPlane
    reserver: Replicas
    proxy: Proxy | None
    mishaps: Mishaps
    clock: WallClock | None
    scheduler: str
    scheduler_config: Path
