"""Maintenance is judged: no new holds on nodes that are emptied, and no cordon of others lifted."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.promises.tape import STORE, Tape

PLACED, LIFTED = "placed on a node in maintenance", "cordon of somebody else lifted"


class Maintained(Tape):
    """Two nodes, of which windows take one."""

    def __init__(self) -> None:
        super().__init__()
        self.node("worker-1")
        self.node("worker-2")
        self.wait(10)

    def become(self, *conditions: str, mark: str = "", is_cordoned: bool = True) -> None:
        """Write the first node as a window, or another client, leaves it."""
        body: dict[str, Any] = self._objects["nodes", "/worker-1"]
        body["metadata"]["annotations"] = {"reserver.io/maintenance": mark} if mark else {}
        body["spec"] = {"unschedulable": True} if is_cordoned else {}
        body["status"]["conditions"] = [{"type": each, "status": "True"} for each in conditions]
        self._write("nodes", "/worker-1", body)

    def place(self, node: str) -> None:
        self.edit(
            {"pool": self.entry("a", node="", placements=[{"node": node, "slots": 1}])}, STORE
        )


@pytest.mark.parametrize(
    ("conditions", "after_s", "node", "found"),
    [
        (["DrainInProgress"], 10, "worker-1", [PLACED]),
        (["Drained", "MaintenanceInProgress"], 10, "worker-1", [PLACED]),
        (["DrainInProgress"], 0.5, "worker-1", []),  # On the way already.
        (["MaintenancePlanned"], 10, "worker-1", []),  # The hold may end before.
        (["DrainInProgress"], 10, "worker-2", []),
    ],
)
def test_nothing_new_is_placed_on_a_node_that_is_emptied(
    conditions: list[str], after_s: float, node: str, found: list[str]
) -> None:
    tape = Maintained()
    tape.become(*conditions, mark="cordoned:window.1")
    tape.wait(after_s)
    tape.place(node)
    assert tape.kinds() == found


@pytest.mark.parametrize(
    ("found_as", "mark_after", "found"),
    [
        ("found-cordoned:window.1", "", [LIFTED]),
        ("cordoned:window.1", "", []),
        ("found-cordoned:window.1", "found-cordoned:window.1", []),  # Uncordoned by others.
        ("cordoned:other.1 found-cordoned:window.1", "", []),
    ],
)
def test_a_window_leaves_the_cordon_of_somebody_else(
    found_as: str, mark_after: str, found: list[str]
) -> None:
    tape = Maintained()
    tape.become("Drained", mark=found_as)
    tape.become(mark=mark_after, is_cordoned=False)
    assert tape.kinds() == found
