"""A small storm: pods and managers at work while all restarts and bindings go wrong.

`make chaos` has the large ones.
"""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from hack.chaos.scale import Scale
from hack.chaos.storm import Storm
from hack.chaos.view import details
from hack.controlplane.cluster import ControlPlane

pytestmark = [pytest.mark.controlplane, pytest.mark.timeout(300)]

STRIKES = {"kill-reserver": 2, "restart-scheduler": 1}
SCALE = Scale(
    nodes=20,
    pods=150,
    reservations=40,
    groups=10,
    whole_groups=(1, 1),
    seconds=12,
    longest_seconds=45,
    settle_seconds=45,
    strikes=STRIKES,
)


def test_all_promises_are_kept_in_a_storm(
    control_plane: ControlPlane, reserver_kubeconfig: Path, tmp_path: Path
) -> None:
    storm = Storm(
        run="e2e",
        faults=frozenset({*STRIKES, "bind-faults"}),
        scale=SCALE,
        seed=1,
        plane=control_plane,
        reserver_kubeconfig=reserver_kubeconfig,
        folder=tmp_path / "storm",
        show=logging.getLogger(__name__).info,
    )
    outcome = storm.rage()
    assert outcome.is_good, details(outcome)
    # It was a storm at all.
    assert outcome.faults > sum(STRIKES.values()), details(outcome)
    assert outcome.owners > SCALE.reservations / 6, details(outcome)
    assert outcome.slots > SCALE.groups / 2, details(outcome)
    assert outcome.namesakes, details(outcome)
    assert outcome.pods_bound > SCALE.pods / 2, details(outcome)
