"""The commands of docs/certificates.md rotate each certificate, and the process stays.

The tests do the work of the kubelet, and of an operator who copies files to nodes.
"""

from __future__ import annotations

import base64
import json
import shutil
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hack.controlplane.cluster import ControlPlane
from hack.controlplane.kubeconfig import kubectl
from hack.controlplane.process import HeldPort
from hack.reserver_process import ReserverProcess, wait_for
from tests.e2e.apart.patching import COMPONENT, configurations, dump
from tests.e2e.conftest import install_crd
from tests.pages import Reader, commands, section

pytestmark = pytest.mark.controlplane

PAGE = "docs/certificates.md"
_SECRET = "kubectl -n reserver-system get secret {} -o json"


class Rotated:
    """A Reserver with the certificates of docs/install.md.

    Attributes:
        reader: runs the commands of the page.
        process: Reserver, which must not end meanwhile.
    """

    def __init__(self, reader: Reader, process: ReserverProcess, mounted: Path) -> None:
        self.reader, self.process, self._mounted = reader, process, mounted

    def follow(self, title: str) -> None:
        for line in section(PAGE, title):
            self.reader.has(line)

    def apply(self) -> None:
        """Apply the Secret, and have the kubelet write the pod's files."""
        self.reader.has(section(PAGE, "Server")[-1])
        mount(self.reader, self._mounted)

    def copied(self, name: str) -> Path:
        """Copy kube-scheduler's files to a node."""
        node = self.reader.folder / name
        node.mkdir()
        for file in ("client.crt", "client.key", "ca.crt"):
            shutil.copy(self.reader.folder / file, node)
        return node

    def answers(self, node: Path) -> bool:
        """Return whether kube-scheduler could call it, on a new connection."""
        files = f"--cacert {node}/ca.crt --cert {node}/client.crt --key {node}/client.key"
        line = f"curl -s -o /dev/null -w '%{{http_code}}' {files} {self.process.url}/readyz"
        return self.reader.run(line)[1] == "200"

    def served(self) -> str:
        return ssl.get_server_certificate(("127.0.0.1", self.process.port))

    def secret(self, name: str) -> dict[str, str]:
        status, said = self.reader.run(_SECRET.format(name))
        return dict(json.loads(said)["data"]) if status == 0 else {}


def mount(reader: Reader, folder: Path) -> None:
    data = json.loads(reader.run(_SECRET.format("reserver-tls"))[1])["data"]
    for name, text in data.items():
        (folder / name).write_bytes(base64.b64decode(text))


@pytest.fixture
def rotated(control_plane: ControlPlane, api: Any, tools: str, tmp_path: Path) -> Iterator[Rotated]:
    admin = control_plane.kubeconfig
    install_crd(api.api_client, "schedpatches.reserver.io", COMPONENT / "crd-patch.yaml")
    reader = Reader(tmp_path, {"KUBECONFIG": str(admin), "PATH": tools})
    made = [each.line for each in commands("docs/install.md")]
    for line in made:
        if line.startswith("openssl ") or "create secret generic reserver-tls" in line:
            reader.has(line)
    (mounted := tmp_path / "mounted").mkdir()
    mount(reader, mounted)
    held = HeldPort()
    for document in configurations(held.number):
        kubectl(admin, "apply", "-f", str(dump(tmp_path / "hook.json", document)))
    flags = (
        f"--tls-cert-file={mounted}/tls.crt",
        f"--tls-private-key-file={mounted}/tls.key",
        f"--extender-client-ca-file={mounted}/ca.crt",
        "--health-address=127.0.0.1:0",
        f"--webhook-address=127.0.0.1:{held.number}",
    )
    with ReserverProcess(admin, tmp_path / "log", *flags, wait_ready=False) as process:
        yield Rotated(reader, process, mounted)
    for kind in ("mutating", "validating"):
        kubectl(admin, "delete", f"{kind}webhookconfiguration", "reserver")
    kubectl(admin, "-n", "reserver-system", "delete", "secret", "reserver-tls", "reserver-webhook")


def test_each_certificate_is_rotated_while_calls_go_on(rotated: Rotated) -> None:
    old = rotated.copied("old")
    wait_for(lambda: rotated.answers(old), "kube-scheduler may call it")
    pid = rotated.process.process.pid
    rotated.follow("Alert")

    before = rotated.served()
    rotated.follow("Server")
    rotated.apply()
    wait_for(lambda: rotated.served() != before, "the new certificate is served")
    assert rotated.answers(old)
    rotated.follow("Client")
    assert rotated.answers(rotated.copied("renewed"))

    rotated.follow("Trust both")
    rotated.apply()
    both = rotated.copied("both")
    wait_for(lambda: rotated.answers(both), "the former client may call it")
    rotated.follow("Server")
    rotated.follow("Client")
    rotated.apply()
    new = rotated.copied("new")
    wait_for(lambda: rotated.answers(new), "a client of the new CA may call it")
    assert rotated.answers(both)

    rotated.follow("Trust the new one")
    rotated.apply()
    wait_for(lambda: not rotated.answers(both), "clients of the former CA are refused")
    assert rotated.answers(rotated.copied("last"))

    wait_for(lambda: rotated.secret("reserver-webhook"), "the webhooks have a certificate")
    made = rotated.secret("reserver-webhook")
    rotated.follow("Webhooks")
    wait_for(
        lambda: rotated.secret("reserver-webhook") not in ({}, made), "the webhooks have another"
    )
    assert rotated.process.process.pid == pid
    assert rotated.process.process.poll() is None
