"""Reserver as a process: starting, failing, being killed, and the API server going away."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hack.controlplane.cluster import ControlPlane
from hack.controlplane.kubeconfig import write_kubeconfig
from hack.reserver_process import ReserverProcess, wait_for
from tests.e2e.cluster import Corner
from tests.e2e.forms import SPEC

pytestmark = pytest.mark.controlplane

POD = {"metadata": {"name": "p", "namespace": "default", "uid": "u"}, "spec": {}}
CALL = json.dumps({"Pod": POD, "Nodes": None, "NodeNames": ["a", "b"]}).encode()


def test_a_claim_outlives_a_crash(corner: Corner, reserver: ReserverProcess) -> None:
    """Two slots: the one that was claimed before the crash is not held again after it."""
    (node,) = corner.add_nodes(1, cpu="4")
    owners = [{"pod": {"name": name, "namespace": corner.name}} for name in ("first", "second")]
    spec = {"owners": owners, "slots": 2, "node": node, "resources": {"cpu": "1500m"}, "ttl": "1h"}
    corner.patch_store(SPEC.store, {f"{corner.name}.pair": json.dumps(spec)})
    corner.wait_held(node)
    key = f"{corner.name}.pair"
    wait_for(lambda: "expiresAt" in corner.keys(SPEC.store)[key], "the expiry is written down")
    corner.create_pod("first", {"cpu": "1500m"})
    assert corner.wait_bound("first") == node
    reserver.restart()
    # 4 CPUs: 1.5 used by the first, 1.5 held for the second, 1 left.
    corner.create_pod("too-big", {"cpu": "1100m"})
    corner.wait_refused("too-big", "held by reservation")
    corner.create_pod("fits", {"cpu": "1"})
    assert corner.wait_bound("fits") == node
    corner.create_pod("second", {"cpu": "1500m"})
    assert corner.wait_bound("second") == node


def test_pods_wait_while_reserver_is_away(corner: Corner, reserver: ReserverProcess) -> None:
    (node,) = corner.add_nodes(1, cpu="4")
    with reserver.down():
        corner.create_pod("stranger", {"cpu": "1"})
        corner.wait_refused("stranger")
        assert corner.node_of("stranger") is None
    assert corner.wait_bound("stranger") == node


def test_a_pod_that_was_refused_before_a_crash_lands_when_its_room_came_meanwhile(
    corner: Corner, reserver: ReserverProcess
) -> None:
    """Nobody asks for it again, for five minutes, but the Reserver that comes back."""
    (node,) = corner.add_nodes(1, cpu="4")
    key = corner.reserve(SPEC, node, "never-comes", cpu="3")
    corner.wait_held(node)
    corner.create_pod("stranger", {"cpu": "2"})
    corner.wait_refused("stranger", "held by reservation")
    with reserver.down():
        corner.patch_store(SPEC.store, {key: None})
    assert corner.wait_bound("stranger") == node


def test_holds_survive_a_restart_of_the_api_server(
    corner: Corner, control_plane: ControlPlane
) -> None:
    (node,) = corner.add_nodes(1, cpu="4")
    corner.reserve(SPEC, node, "before", cpu="2")
    corner.wait_held(node)
    control_plane.restart_apiserver()
    corner.reserve(SPEC, node, "after", cpu="1")
    corner.wait_held(node, "2")  # Only both holds together keep it away.
    corner.create_pod("before", {"cpu": "2"})
    corner.create_pod("after", {"cpu": "1"})
    assert {corner.wait_bound("before"), corner.wait_bound("after")} == {node}


def test_calls_are_answered_with_errors_until_all_is_listed(
    control_plane: ControlPlane, reserver_kubeconfig: Path, tmp_path: Path
) -> None:
    control_plane.stop_apiserver()
    try:
        log = tmp_path / "log"
        with ReserverProcess(reserver_kubeconfig, log, wait_ready=False) as reserver:
            assert reserver.get("/healthz")[0] == 200
            assert reserver.get("/readyz")[0] == 503
            status, answer = reserver.post("/filter", CALL)
            assert (status, answer["NodeNames"]) == (200, [])
            assert "does not see the cluster yet" in answer["Error"]
            wait_for(lambda: "cannot be reached" in log.read_text(), "the log says why")
            control_plane.start_apiserver()
            reserver.wait_ready()
            assert reserver.post("/filter", CALL)[1]["NodeNames"] == ["a", "b"]
    finally:
        if "kube-apiserver" not in control_plane.pids:
            control_plane.start_apiserver()


def test_what_may_be_out_of_date_is_not_decided_on(
    control_plane: ControlPlane, reserver_kubeconfig: Path, tmp_path: Path
) -> None:
    with ReserverProcess(reserver_kubeconfig, tmp_path / "log") as reserver:
        control_plane.stop_apiserver()
        try:
            wait_for(lambda: reserver.get("/readyz")[0] == 503, "it is not ready any more")
            assert "is out of date: the API server" in reserver.get("/readyz")[1]
            assert "out of date" in reserver.post("/filter", CALL)[1]["Error"]
        finally:
            control_plane.start_apiserver()
        reserver.wait_ready()
        assert reserver.post("/filter", CALL)[1]["NodeNames"] == ["a", "b"]


def test_sigterm_ends_it_cleanly(reserver_kubeconfig: Path, tmp_path: Path) -> None:
    reserver = ReserverProcess(reserver_kubeconfig, tmp_path / "log")
    reserver.start()
    status, printed = reserver.stop()
    assert status == 0
    assert not printed, "all goes to the log"
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert lines[-1]["event"] == "stopped"
    assert not any("Traceback" in str(line) for line in lines)


def test_a_missing_permission_is_named_once_and_retried(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    nobody = tmp_path / "kubeconfig"
    cluster = {"server": control_plane.url, "certificate-authority": str(control_plane.ca_file)}
    write_kubeconfig(nobody, cluster, "not-a-token")
    log = tmp_path / "log"
    with ReserverProcess(nobody, log, wait_ready=False) as reserver:
        wait_for(lambda: "does not accept the credentials" in log.read_text(), "the log says why")
        why = "/api/v1/pods is not listed yet: the API server does not accept"
        wait_for(lambda: why in reserver.get("/readyz")[1], "so does /readyz")


def _serve(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "reserver", "serve", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


def test_a_port_that_is_taken_ends_it_with_one_clear_line(
    reserver: ReserverProcess, reserver_kubeconfig: Path
) -> None:
    taken = ("--kubeconfig", str(reserver_kubeconfig), "--http-port", str(reserver.port))
    ended = _serve(*taken)
    assert ended.returncode == 2
    lines = [json.loads(line) for line in ended.stderr.splitlines()]
    (line,) = [line for line in lines if line["event"] == "cannot start"]
    assert f"127.0.0.1:{reserver.port}" in line["why"]
