"""Two kube-schedulers that elect a leader, each with a Reserver of its own, as in the manifests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import yaml
from aiohttp import web
from kubernetes import client

from hack.bed.bed import SCHEDULER_CONFIG
from hack.bed.mishaps import Forward, Mishaps
from hack.bed.proxy import Proxy
from hack.controlplane.cluster import ControlPlane
from hack.controlplane.scheduler_config import render_scheduler_config
from hack.reserver_process import ReserverProcess, wait_for
from tests.e2e.cluster import Corner
from tests.e2e.forms import SPEC, STORE
from tests.e2e.test_status import wait_status

pytestmark = pytest.mark.controlplane

SCHEDULER = "over-sidecars"
LEASE_S = 5
STRANGERS_BESIDE = 30
"""So many of 300 millicores fit on 12 CPUs of which 3 are held."""
DECIDED = 'reserver_extender_calls_total{outcome="%s",verb="filter"}'


class Severed(Mishaps):
    """Bindings go through, or do not reach the API server."""

    def __init__(self) -> None:
        super().__init__(seed=0)
        self.is_severed = False
        self.asked = 0

    async def bind(self, forward: Forward, request: web.BaseRequest) -> web.Response:
        self.asked += 1
        if self.is_severed and request.transport is not None:
            request.transport.abort()
            return web.Response()
        return await forward()


class Pair:
    """A kube-scheduler and its Reserver."""

    def __init__(
        self, name: str, lease: str, control_plane: ControlPlane, kubeconfig: Path, folder: Path
    ) -> None:
        self.name = f"sidecar-{name}"
        self._lease = lease
        self.control_plane = control_plane
        self._config = folder / f"{name}.yaml"
        self.severed = Severed()
        self.proxy = Proxy(kubeconfig, self.severed)
        self._kubeconfig = folder / f"{name}.kubeconfig"
        self.reserver = ReserverProcess(self._kubeconfig, folder / f"{name}.log")

    def start(self) -> None:
        self.proxy.write_kubeconfig(self._kubeconfig)
        self.reserver.start()
        shipped = render_scheduler_config(
            SCHEDULER_CONFIG,
            kubeconfig=self.control_plane.kubeconfig,
            port=self.reserver.port,
            scheduler_name=SCHEDULER,
        )
        times = {"leaseDuration": f"{LEASE_S}s", "renewDeadline": "3s", "retryPeriod": "1s"}
        config = yaml.safe_load(shipped)
        config["leaderElection"] |= {"resourceName": self._lease, **times}
        self._config.write_text(yaml.safe_dump(config))
        self.start_scheduler()

    def start_scheduler(self) -> None:
        self.control_plane.start_scheduler(self._config, self.name, leader_elect=True)

    def end(self, *, crash: bool) -> None:
        """End both, as a machine does that is lost, or as the kubelet does: its Reserver last."""
        if crash:
            self.reserver.process.kill()
            self.control_plane.kill_scheduler(self.name)
            self.reserver.kill()
        else:
            self.control_plane.stop_scheduler(self.name)
            self.reserver.stop()

    def decided(self) -> float:
        """Return how many pods it was asked about."""
        return sum(self.reserver.metric(DECIDED % outcome) for outcome in ("passed", "refused"))


@pytest.fixture
def pairs(
    control_plane: ControlPlane, reserver_kubeconfig: Path, api: Any, tmp_path: Path
) -> Iterator[tuple[Pair, Pair]]:
    """Two of them; the first leads, by a lease that no test had before it."""
    lease = f"{SCHEDULER}-{uuid4().hex[:8]}"
    leases = client.CoordinationV1Api(api.api_client)
    first, second = (
        Pair(name, lease, control_plane, reserver_kubeconfig, tmp_path) for name in ("a", "b")
    )
    with first.proxy, second.proxy, ExitStack() as ends:
        first.start()
        ends.callback(first.end, crash=True)
        where, of_ours = STORE[0], {"field_selector": f"metadata.name={lease}"}
        wait_for(lambda: leases.list_namespaced_lease(where, **of_ours).items, "it leads")
        second.start()
        ends.callback(second.end, crash=True)
        yield first, second


@pytest.fixture
def corner(control_plane: ControlPlane, api: Any, pairs: tuple[Pair, Pair]) -> Iterator[Corner]:  # noqa: ARG001 - they run as long
    corner = Corner(control_plane.kubeconfig, SCHEDULER, api)
    corner.open()
    yield corner
    corner.close()


@pytest.mark.release
@pytest.mark.parametrize("crash", [True, False], ids=["crash", "shutdown"])
def test_the_next_leader_keeps_the_hold_among_pods_that_the_last_one_was_binding(
    corner: Corner, pairs: tuple[Pair, Pair], *, crash: bool
) -> None:
    (node,) = corner.add_nodes(1, cpu="12")
    for leader, other in (pairs, pairs[::-1]):
        owner = _change_leader(corner, node, leader, other, crash=crash)
        assert corner.wait_bound(owner) == node
        assert len(_bound(corner)) == STRANGERS_BESIDE + 1
        for name in corner.pod_names():
            corner.api.delete_namespaced_pod(name, corner.name, grace_period_seconds=0)
        wait_for(lambda: not corner.pod_names(), "all are gone")
        leader.reserver.start()
        leader.start_scheduler()


def _change_leader(corner: Corner, node: str, leader: Pair, other: Pair, *, crash: bool) -> str:
    """End the leader while it binds more pods than fit next to a hold; return the hold's owner."""
    owner = f"owner-{uuid4().hex[:8]}"
    corner.reserve(SPEC, node, owner, cpu="3")
    corner.wait_held(node)
    before = other.decided()
    for _ in range(STRANGERS_BESIDE + 10):
        corner.create_pod(f"stranger-{uuid4().hex[:8]}", {"cpu": "300m"})
    wait_for(lambda: _bound(corner), "the leader binds")
    leader.end(crash=crash)
    wait_for(lambda: other.decided() > before, "the other one leads")
    wait_for(lambda: len(_bound(corner)) >= STRANGERS_BESIDE, "all but the hold is taken")
    corner.create_pod(owner, {"cpu": "3"})
    return owner


def _bound(corner: Corner) -> list[str]:
    pods = corner.api.list_namespaced_pod(corner.name).items
    return [pod.metadata.name for pod in pods if pod.spec.node_name]


def test_a_binding_of_a_leader_that_ended_takes_nothing_that_the_next_one_holds(
    corner: Corner, pairs: tuple[Pair, Pair]
) -> None:
    (node,) = corner.add_nodes(1, cpu="4")
    leader, other = pairs
    corner.create_pod("first", {"cpu": "100m"})  # Now it knows the node.
    assert corner.wait_bound("first") == node
    leader.severed.is_severed = True
    corner.create_pod("stranger", {"cpu": "3"})
    wait_for(lambda: leader.severed.asked > 2, "its binding is asked for, again and again")
    leader.control_plane.kill_scheduler(leader.name)
    before = other.decided()
    key = corner.reserve(SPEC, node, "owner", cpu="3")
    wait_status(corner, SPEC, key, backed=True)
    corner.wait_refused("stranger", "held by reservation")
    assert other.decided() > before
    leader.severed.is_severed = False
    wait_for(lambda: "binding failed" in leader.reserver.log.read_text(), "it is given up")
    corner.create_pod("owner", {"cpu": "3"})
    assert corner.wait_bound("owner") == node
    assert corner.node_of("stranger") is None
    leader.start_scheduler()
