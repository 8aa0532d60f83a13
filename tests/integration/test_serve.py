"""`reserver serve` started with what cannot work: one clear line, and exit status 2."""

from __future__ import annotations

import subprocess
import sys

import pytest


def _serve(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "reserver", "serve", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--kubeconfig", "/does/not/exist"], "No such file or directory"),
        (["--configmap", "no-slash"], "'no-slash' is not of the form NAMESPACE/NAME"),
        (["--bind-address", "0.0.0.0"], "0.0.0.0 is not a loopback address"),
        (["--bind-address", "here"], "'here' is not an IP address"),
        (["--tls-cert-file", "a.crt"], "--tls-private-key-file: missing"),
        (["--health-address", "9441"], "'9441' is not an address; write ADDRESS:PORT"),
        (["--health-address", "localhost:1"], "--health-address: 'localhost' is not an IP"),
        (["--grpc-address", "9443"], "--grpc-address: '9443' is not an address"),
        (["--grpc-address", "0.0.0.0:9443"], "0.0.0.0 is not a loopback address; callers send"),
        (["--grpc-loopback-tls"], "--grpc-loopback-tls: needs --tls-cert-file"),
        (["--grpc-audience", ""], "--grpc-audience: is empty"),
        (["--namespace", "../secrets"], "--namespace: '../secrets' is not a name"),
    ],
    ids=[
        "kubeconfig",
        "configmap",
        "not-loopback",
        "no-address",
        "tls",
        "health",
        "health-host",
        "grpc",
        "grpc-not-loopback",
        "grpc-tls",
        "grpc-audience",
        "namespace",
    ],
)
def test_a_setting_that_cannot_work_is_named(arguments: list[str], words: str) -> None:
    ended = _serve(*arguments)
    assert ended.returncode == 2
    (line,) = ended.stderr.splitlines()
    assert line.startswith("reserver: ")
    assert words in line
