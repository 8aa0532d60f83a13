"""Tokens of the real API server on loopback: their audiences and claims."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
import trustme

from hack.controlplane.cluster import ControlPlane
from hack.reserver_process import ReserverProcess, wait_for
from reserver.client import CallFailed, Client
from tests.e2e.test_grpc import SYSTEM, give_role, token_of

pytestmark = pytest.mark.controlplane

AUDIENCE = "reserver.test"
CALLER = "grpc-scoped"
RESERVER = Path(sys.executable).parent / "reserver"


@pytest.fixture
def guarded(reserver_kubeconfig: Path, api: Any, tmp_path: Path) -> Iterator[ReserverProcess]:
    """Reserver that requires tokens on loopback, too."""
    ca = trustme.CA()
    made = ca.issue_cert("127.0.0.1")
    made.private_key_pem.write_to_path(tmp_path / "tls.key")
    made.cert_chain_pems[0].write_to_path(tmp_path / "tls.crt")
    ca.cert_pem.write_to_path(tmp_path / "ca.crt")
    give_role(api, CALLER, "reserver-view", SYSTEM)
    flags = (
        "--grpc-address=127.0.0.1:0",
        "--grpc-loopback-tokens",
        "--grpc-loopback-tls",
        f"--grpc-audience={AUDIENCE}",
        f"--tls-cert-file={tmp_path / 'tls.crt'}",
        f"--tls-private-key-file={tmp_path / 'tls.key'}",
    )
    log = tmp_path / "log"
    with ReserverProcess(reserver_kubeconfig, log, *flags, wait_ready=False) as process:
        wait_for(lambda: '"event": "ready"' in log.read_text(), "reserver is ready")
        yield process


def get(process: ReserverProcess, folder: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    """Run `reserver get` without a kubeconfig: it has no other token than it is given."""
    command = [str(RESERVER), "get", "--address", process.grpc_address, "-o", "json", *flags]
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, env=environment
    )


def test_on_loopback_tokens_and_tls_are_wanted_of_the_command_line_as_well(
    api: Any, guarded: ReserverProcess, tmp_path: Path
) -> None:
    over_tls = ("--ca-file", str(tmp_path / "ca.crt"))
    ours, others = token_of(api, CALLER, AUDIENCE), token_of(api, CALLER)
    done = get(guarded, tmp_path, *over_tls, "--token", ours)
    assert done.returncode == 0, done.stderr
    assert "reservations" in json.loads(done.stdout)
    for flags in ((), ("--token", others)):
        refused = get(guarded, tmp_path, *over_tls, *flags)
        assert (refused.returncode, refused.stdout) == (1, ""), refused.stderr
        assert "send a token that the API server knows" in refused.stderr
    plain = get(guarded, tmp_path, "--token", ours)
    assert (plain.returncode, plain.stdout) == (3, ""), plain.stderr


async def test_a_token_counts_for_its_audience_and_all_that_it_says_is_asked_about(
    api: Any, guarded: ReserverProcess, tmp_path: Path, control_plane: ControlPlane
) -> None:
    roots = (tmp_path / "ca.crt").read_bytes()

    async def look(token: str) -> str:
        async with Client(guarded.grpc_address, token=token, root_certificates=roots) as client:
            try:
                await client.get("nothing")
            except CallFailed as exc:
                return exc.code
        return "OK"

    ours = token_of(api, CALLER, AUDIENCE)
    assert await look(ours) == "NOT_FOUND"
    for other in ((), (f"{AUDIENCE}.evil",)):
        assert await look(token_of(api, CALLER, *other)) == "UNAUTHENTICATED"
    # A token of the API server says which credential it is, and so does the question about rights.
    credential = f"JTI={claims(ours)['jti']}"

    def is_asked_about() -> bool:
        return any(
            credential
            in spec.get("extra", {}).get("authentication.kubernetes.io/credential-id", ())
            for spec in questions(control_plane.audit_log)
        )

    await asyncio.to_thread(wait_for, is_asked_about, "the audit log has the question")


def claims(token: str) -> dict[str, Any]:
    """Return the claims of a token."""
    payload = token.split(".")[1]
    said: dict[str, Any] = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return said


def questions(audit_log: Path) -> Iterator[dict[str, Any]]:
    """Yield what Reserver has asked about the rights of its callers."""
    with audit_log.open() as lines:
        whole = takewhile(lambda line: line.endswith("\n"), lines)  # The last is being written.
        for event in map(json.loads, whole):
            if event.get("objectRef", {}).get("resource") == "subjectaccessreviews":
                yield event["requestObject"]["spec"]
