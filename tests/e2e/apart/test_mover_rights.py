"""The rights of four components beside the core: those that Reserver needs, and no others.

As tests/e2e/test_rights.py judges those that Reserver always has.
"""

from __future__ import annotations

import pytest

from hack.controlplane.cluster import ControlPlane
from tests.e2e.rights import (
    AUTOSCALERS,
    BUFFERS,
    CORE,
    MOVER,
    MOVES,
    PROVISIONING,
    granted,
    unknown,
    unused,
)

COMPONENTS = granted(MOVES) | granted(AUTOSCALERS) | granted(BUFFERS) | granted(PROVISIONING)
pytestmark = pytest.mark.controlplane


def test_reserver_asks_for_what_the_manifests_grant(control_plane: ControlPlane) -> None:
    assert unknown(control_plane.audit_log, MOVER, granted(CORE) | COMPONENTS) == set()


def test_what_the_manifests_grant_is_used(control_plane: ControlPlane) -> None:
    assert unused(control_plane.audit_log, MOVER, COMPONENTS) == set()
