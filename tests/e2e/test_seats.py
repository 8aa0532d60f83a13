"""Seats that kube-scheduler refuses for a while: it counts a pod that will not come."""

from __future__ import annotations

import pytest

from hack.reserver_process import wait_for
from tests.e2e.cluster import on_node
from tests.e2e.conftest import Proxied
from tests.e2e.forms import SPEC

pytestmark = pytest.mark.controlplane


def test_an_owner_waits_for_its_seat_until_those_are_refused_who_were_to_be_bound_there(
    proxied: Proxied,
) -> None:
    """Each of two pods fits next to the hold alone; kube-scheduler assumes both on the node."""
    corner, proxy = proxied.corner, proxied.proxy
    (seat,) = corner.add_nodes(1, cpu="4")
    corner.add_nodes(1, cpu="4")
    corner.reserve(SPEC, seat, "owner", cpu="2")
    corner.wait_held(seat)
    passed, refused = proxied.calls("passed"), proxied.calls("refused")
    proxy.refuse_watches(refuse=True)
    proxy.cut()  # Bind decides on nothing that a broken watch shows.
    for name in ("first", "second"):
        corner.create_pod(name, {"cpu": "2"}, affinity=on_node(seat))
    wait_for(lambda: proxied.calls("passed") >= passed + 2, "both are given the node")
    corner.create_pod("owner", {"cpu": "2"})
    wait_for(lambda: proxied.calls("refused") >= refused + 2, "its seat is refused when steered to")
    proxy.refuse_watches(refuse=False)
    assert corner.wait_bound("owner") == seat
    bound = wait_for(lambda: [n for n in ("first", "second") if corner.node_of(n)], "one is bound")
    assert len(bound) == 1
