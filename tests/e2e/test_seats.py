"""Seats that kube-scheduler refuses for a while: it counts somebody there who will not come."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from hack.chaos.mishaps import Mishaps
from hack.chaos.proxy import Proxy
from hack.controlplane.cluster import ControlPlane
from hack.controlplane.scheduler_config import render_scheduler_config
from hack.reserver_process import ReserverProcess, wait_for
from tests.e2e.cluster import SPEC, Corner, on_node
from tests.e2e.conftest import SCHEDULER_CONFIG

pytestmark = pytest.mark.controlplane

SCHEDULER = "over-proxy"


class Proxied(NamedTuple):
    """A corner whose kube-scheduler asks a reserver that reaches the API server through a proxy."""

    corner: Corner
    reserver: ReserverProcess
    proxy: Proxy

    def calls(self, outcome: str) -> float:
        """Return how many Filter calls were answered so."""
        labels = f'{{outcome="{outcome}",verb="filter"}}'
        return self.reserver.metric(f"reserver_extender_calls_total{labels}")


@pytest.fixture
def proxied(
    control_plane: ControlPlane, reserver_kubeconfig: Path, api: Any, tmp_path: Path
) -> Iterator[Proxied]:
    kubeconfig, config = tmp_path / "kubeconfig", tmp_path / "scheduler.yaml"
    corner = Corner(control_plane.kubeconfig, SCHEDULER, api)
    corner.open()
    with Proxy(reserver_kubeconfig, Mishaps(seed=0)) as proxy:
        proxy.write_kubeconfig(kubeconfig)
        with ReserverProcess(kubeconfig, tmp_path / "log") as reserver:
            config.write_text(
                render_scheduler_config(
                    SCHEDULER_CONFIG,
                    kubeconfig=control_plane.kubeconfig,
                    port=reserver.port,
                    scheduler_name=SCHEDULER,
                )
            )
            control_plane.start_scheduler(config, SCHEDULER)
            try:
                yield Proxied(corner, reserver, proxy)
            finally:
                corner.close()
                control_plane.stop_scheduler(SCHEDULER)


def test_an_owner_waits_for_its_seat_until_those_are_refused_who_were_to_be_bound_there(
    proxied: Proxied,
) -> None:
    """Two pods fit beside the hold, each by itself; kube-scheduler gives both the node."""
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
