"""Watches that the API server has accepted, and that show no event yet."""

from __future__ import annotations

import pytest

from hack.reserver_process import wait_for
from tests.e2e.cluster import on_node
from tests.e2e.conftest import Proxied
from tests.e2e.forms import SPEC

pytestmark = pytest.mark.controlplane


def test_nothing_is_decided_on_what_was_missed_until_it_is_told(proxied: Proxied) -> None:
    """A watch breaks, a hold is written, and the next watch is accepted but omits the hold."""
    corner, reserver, proxy = proxied.corner, proxied.reserver, proxied.proxy
    (node,) = corner.add_nodes(1, cpu="4")
    corner.reserve(SPEC, node, "known", cpu="1")
    corner.wait_held(node)
    passed = proxied.calls("passed")
    proxy.hush(silent=True)
    proxy.cut()
    corner.reserve(SPEC, node, "owner", cpu="2")
    corner.create_pod("stranger", {"cpu": "2"}, affinity=on_node(node))
    wait_for(
        lambda: proxied.calls("passed") > passed or not reserver.is_ready(),
        "it may be bound as far as is known",
    )
    wait_for(lambda: "is out of date" in reserver.get("/readyz")[1], "the view is too old")
    assert corner.node_of("stranger") is None
    proxy.hush(silent=False)
    wait_for(reserver.is_ready, "all is told")
    corner.wait_refused("stranger", "held by reservation")
    corner.create_pod("owner", {"cpu": "2"})
    assert corner.wait_bound("owner") == node
    assert corner.node_of("stranger") is None


def test_a_watch_that_was_accepted_and_never_speaks_is_given_up_soon(proxied: Proxied) -> None:
    """Long before the bookmarks would be missed, which come once a minute."""
    corner, reserver, proxy = proxied.corner, proxied.reserver, proxied.proxy
    (node,) = corner.add_nodes(1, cpu="4")
    corner.reserve(SPEC, node, "known", cpu="1")
    corner.wait_held(node)
    proxy.hush(silent=True)
    proxy.cut()
    corner.reserve(SPEC, node, "owner", cpu="2")
    wait_for(lambda: not reserver.is_ready(), "the view is too old to decide on")
    proxy.strand()
    wait_for(reserver.is_ready, "all is told by watches that were begun anew")
    corner.create_pod("stranger", {"cpu": "2"}, affinity=on_node(node))
    corner.wait_refused("stranger", "held by reservation")
