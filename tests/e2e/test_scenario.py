"""The main scenario on the real kube-scheduler, in each form of the store, many times."""

from __future__ import annotations

from tests.e2e.cluster import Corner
from tests.e2e.forms import Form


def test_a_hold_keeps_strangers_away_until_its_owner_has_landed(
    corner: Corner, form: Form, run: int
) -> None:
    del run
    first, *others = corner.add_nodes(3, cpu="4")
    corner.reserve(form, first, "reserved-pod", cpu="2000m")
    corner.wait_held(first)

    corner.create_pod("filler-1", {"cpu": "3"})
    corner.create_pod("filler-2", {"cpu": "3"})
    assert {corner.wait_bound("filler-1"), corner.wait_bound("filler-2")} == set(others)

    corner.create_pod("normal-pod", {"cpu": "3"})
    refusal = corner.wait_refused("normal-pod", "1 held by reservation")
    assert first in refusal
    assert "reserved-pod" in refusal

    corner.create_pod("reserved-pod", {"cpu": "2"})
    assert corner.wait_bound("reserved-pod") == first

    corner.create_pod("small-pod", {"cpu": "1500m"})
    assert corner.wait_bound("small-pod") == first
    assert corner.node_of("normal-pod") is None
