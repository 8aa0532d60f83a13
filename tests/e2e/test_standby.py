"""Two Reservers of which one answers, and the extender over mutual TLS."""

from __future__ import annotations

import signal
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml

from hack.controlplane.cluster import ControlPlane
from hack.controlplane.scheduler_config import render_scheduler_config
from hack.reserver_process import ReserverProcess, wait_for
from tests.e2e.cluster import Corner
from tests.e2e.forms import SPEC

pytestmark = pytest.mark.controlplane

ROOT = Path(__file__).parents[2]
EXTENDER = ROOT / "scheduler-config/standby/kube-scheduler-extender.yaml"
SCHEDULER = "over-tls"


@pytest.fixture
def two(reserver_kubeconfig: Path, tmp_path: Path) -> Iterator[list[ReserverProcess]]:
    """Two replicas, the leader first."""
    replicas = [
        ReserverProcess(reserver_kubeconfig, tmp_path / name, "--leader-elect", wait_ready=False)
        for name in ("a", "b")
    ]
    with replicas[0], replicas[1]:
        leader = wait_for(
            lambda: next((each for each in replicas if each.is_ready()), None), "one leads"
        )
        yield sorted(replicas, key=lambda each: each is not leader)


def test_one_answers_and_the_other_says_who(two: list[ReserverProcess]) -> None:
    _, standby = two
    wait_for(lambda: "standing by: " in standby.get("/readyz")[1], "it stands by")
    assert standby.get("/readyz")[0] == 503
    pod = b'{"metadata":{"name":"p","namespace":"default","uid":"u"},"spec":{}}'
    call = b'{"Pod":%s,"Nodes":null,"NodeNames":["a"]}' % pod
    assert "standing by: " in standby.post("/filter", call)[1]["Error"]


def test_the_standby_takes_over_at_once_from_a_leader_that_ends(
    two: list[ReserverProcess],
) -> None:
    leader, standby = two
    assert leader.stop()[0] == 0
    wait_for(standby.is_ready, "the standby leads")  # It looks every two seconds.
    leader.start()


@pytest.mark.release
def test_a_leader_that_was_paused_ends_when_somebody_else_leads(
    two: list[ReserverProcess],
) -> None:
    leader, standby = two
    leader.process.send_signal(signal.SIGSTOP)
    wait_for(standby.is_ready, "the standby leads")
    leader.process.send_signal(signal.SIGCONT)
    assert leader.wait_ended() == 1
    assert "leadership lost" in leader.log.read_text()
    assert standby.is_ready()
    leader.start()


def test_kube_scheduler_calls_over_mutual_tls(
    control_plane: ControlPlane, reserver_kubeconfig: Path, api: Any, tmp_path: Path
) -> None:
    """With the extender's configuration that we ship, but for its address and its files."""
    ca, name = trustme.CA(), "reserver.reserver-system.svc"
    ca.cert_pem.write_to_path(tmp_path / "ca.crt")
    for who, certificate in (
        ("tls", ca.issue_cert(name)),
        ("client", ca.issue_cert(common_name="system:kube-scheduler")),
    ):
        certificate.private_key_pem.write_to_path(tmp_path / f"{who}.key")
        certificate.cert_chain_pems[0].write_to_path(tmp_path / f"{who}.crt")
    flags = {
        "tls-cert-file": "tls.crt",
        "tls-private-key-file": "tls.key",
        "extender-client-ca-file": "ca.crt",
    }
    arguments = [f"--{flag}={tmp_path / file}" for flag, file in flags.items()]
    arguments.append("--health-address=127.0.0.1:0")
    log = tmp_path / "log"
    with ReserverProcess(reserver_kubeconfig, log, *arguments, wait_ready=False) as reserver:
        assert reserver.url.startswith("https://")
        wait_for(lambda: _answers(f"{reserver.health_url}/readyz"), "reserver is ready")
        assert not _answers(reserver.url + "/readyz")  # Without a certificate.
        config = tmp_path / "scheduler.yaml"
        config.write_text(_scheduler_config(control_plane, tmp_path, reserver.port))
        control_plane.start_scheduler(config, SCHEDULER)
        corner = Corner(control_plane.kubeconfig, SCHEDULER, api)
        corner.open()
        try:
            (node,) = corner.add_nodes(1, cpu="4")
            corner.reserve(SPEC, node, "owner", cpu="3")
            corner.wait_held(node)
            corner.create_pod("stranger", {"cpu": "2"})
            corner.wait_refused("stranger", "held by reservation")
            corner.create_pod("owner", {"cpu": "3"})
            assert corner.wait_bound("owner") == node
        finally:
            corner.close()
            control_plane.stop_scheduler(SCHEDULER)


def _scheduler_config(control_plane: ControlPlane, folder: Path, port: int) -> str:
    shipped = yaml.safe_load(EXTENDER.read_text())
    for extender in shipped["extenders"]:
        extender["urlPrefix"] = f"https://127.0.0.1:{port}"
        for key in ("certFile", "keyFile", "caFile"):
            extender["tlsConfig"][key] = str(folder / Path(extender["tlsConfig"][key]).name)
    whole = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "profiles": [{"schedulerName": SCHEDULER}],
        **shipped,
    }
    written = folder / "shipped.yaml"
    written.write_text(yaml.safe_dump(whole))
    return render_scheduler_config(written, kubeconfig=control_plane.kubeconfig)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, ConnectionError):
        return False
