"""`reserver serve` started with what cannot work: one clear line, and exit status 2."""

from __future__ import annotations

import subprocess
import sys

import pytest

CERTIFICATE = ("--tls-cert-file", "a", "--tls-private-key-file", "b")


BEYOND_LOOPBACK = ["--bind-address", "0.0.0.0", *CERTIFICATE, "--extender-client-ca-file", "c"]


def _serve(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "reserver", "serve", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--kubeconfig", "/does/not/exist"], "No such file or directory"),
        (["--configmap", "no-slash"], "'no-slash' is not of the form NAMESPACE/NAME"),
        (["--bind-address", "0.0.0.0"], "0.0.0.0 is not a loopback address"),
        (
            ["--bind-address", "0.0.0.0", *CERTIFICATE, "--grpc-client-ca-file", "c"],
            "--extender-client-ca-file",
        ),
        (["--extender-allowed-name", ""], "--extender-allowed-name: is empty"),
        (["--extender-client-ca-file", "c"], "--tls-cert-file, --tls-private-key-file: missing"),
        (["--bind-address", "here"], "'here' is not an IP address"),
        (["--tls-cert-file", "a.crt"], "--tls-private-key-file: missing"),
        (["--health-address", "9441"], "'9441' is not an address; write ADDRESS:PORT"),
        (["--health-address", "localhost:1"], "--health-address: 'localhost' is not an IP"),
        (["--grpc-address", "9443"], "--grpc-address: '9443' is not an address"),
        (["--grpc-address", "0.0.0.0:9443"], "0.0.0.0 is not a loopback address; callers send"),
        (["--grpc-loopback-tls"], "--grpc-loopback-tls: needs --tls-cert-file"),
        (["--grpc-audience", ""], "--grpc-audience: is empty"),
        (["--namespace", "../secrets"], "--namespace: '../secrets' is not a name"),
        (["--rebalance-mode", "reserve-first"], "--rebalance-mode: `reserver serve` does not reba"),
        (["--no-rebalance-dry-run"], "run `reserver rebalance run` with --dry-run as a Deployment"),
        (
            [*BEYOND_LOOPBACK, "--webhook-address", "0.0.0.0:9444"],
            "--webhook-address: with --bind-address 0.0.0.0 it needs --leader-elect; else",
        ),
    ],
    ids=[
        "kubeconfig",
        "configmap",
        "not-loopback",
        "no-ca-of-the-extender",
        "no-name",
        "no-certificate",
        "no-address",
        "tls",
        "health",
        "health-host",
        "grpc",
        "grpc-not-loopback",
        "grpc-tls",
        "grpc-audience",
        "namespace",
        "rebalance-mode",
        "rebalance-dry-run",
        "webhooks-without-lease",
    ],
)
def test_a_setting_that_cannot_work_is_named(arguments: list[str], words: str) -> None:
    ended = _serve(*arguments)
    assert ended.returncode == 2
    (line,) = ended.stderr.splitlines()
    assert line.startswith("reserver: ")
    assert words in line


@pytest.mark.parametrize("flag", ["--client-ca-file", "--grpc-client-certificates"])
def test_the_flags_of_one_ca_for_both_are_refused_and_not_passed_over(flag: str) -> None:
    ended = _serve(*CERTIFICATE, flag, "c")
    assert ended.returncode == 2
    assert "No such option" in ended.stderr
    assert flag in ended.stderr
