"""`reserver serve` started with what cannot work: one clear line, and exit status 2."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hack.reserver_process import ReserverProcess
from reserver_demo.cluster import EmbeddedCluster
from tests import forked

CERTIFICATE = ("--tls-cert-file", "a", "--tls-private-key-file", "b")


BEYOND_LOOPBACK = ["--bind-address", "0.0.0.0", *CERTIFICATE, "--extender-client-ca-file", "c"]


def _serve(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return forked.run("serve", *arguments, environment={**os.environ, **variables})


def _problem(ended: subprocess.CompletedProcess[str]) -> str:
    """Return the one line that says why it did not start, a line of the log or not."""
    (line,) = ended.stderr.splitlines()
    if line.startswith("{"):
        said = json.loads(line)
        assert (said["event"], said["level"]) == ("cannot start", "error")
        return f"reserver: {said['why']}"
    return line


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
            "--webhook-address: with --bind-address 0.0.0.0 it needs --leader-elect (leader",
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
    line = _problem(ended)
    assert line.startswith("reserver: ")
    assert words in line


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "c.yaml: is empty; begin with apiVersion: reserver.io/v1alpha1"),
        ("logging: {level: loud}", "c.yaml: logging.level: 'loud' is not known; write debug"),
        ("logging: {level: debug}", "logging.level: debug contradicts --log-level, which is info"),
        (None, "c.yaml: cannot be read: No such file or directory; mount it"),
    ],
    ids=["empty", "unknown", "contradiction", "absent"],
)
def test_a_configuration_file_that_cannot_work_is_named(
    tmp_path: Path, text: str | None, words: str
) -> None:
    head = "apiVersion: reserver.io/v1alpha1\nkind: ReserverConfiguration\n"
    if text is not None:
        (tmp_path / "c.yaml").write_text(head + text if text else "")
    ended = _serve("--config", str(tmp_path / "c.yaml"), "--log-level", "info")
    assert ended.returncode == 2
    line = _problem(ended)
    assert line.startswith("reserver: ")
    assert words in line


def test_a_variable_that_is_no_setting_is_named() -> None:
    ended = _serve(RESERVER_DEFAULT_QUTOA="none")
    assert ended.returncode == 2
    assert "RESERVER_DEFAULT_QUTOA: is not a setting of Reserver; did you mean" in ended.stderr


def test_a_variable_that_kubernetes_adds_for_a_service_is_ignored() -> None:
    ended = _serve("--kubeconfig", "/none", RESERVER_HTTP_PORT="tcp://10.0.0.7:80")
    assert "kubeconfig /none cannot be used" in ended.stderr


@pytest.mark.parametrize("gate", ["--tracing", "--keep-held-nodes"])
def test_a_gate_that_is_alpha_is_named_at_each_start(gate: str) -> None:
    ended = _serve("--kubeconfig", "/none", "--logging-format=json", gate)
    lines = [json.loads(line) for line in ended.stderr.splitlines()]
    named = [line["features"] for line in lines if line["event"].startswith("alpha features")]
    assert named == ([["Tracing"]] if gate == "--tracing" else [])


@pytest.mark.parametrize("flag", ["--client-ca-file", "--grpc-client-certificates"])
def test_the_flags_of_one_ca_for_both_are_refused_and_not_passed_over(flag: str) -> None:
    ended = _serve(*CERTIFICATE, flag, "c")
    assert ended.returncode == 2
    assert f"there is no option {flag}; did you mean --" in ended.stderr
    assert flag in ended.stderr


_WRITES = """
import logging, warnings
from reserver.process import logs
from reserver.settings.serve import LogFormat, LogLevel
logs.configure(LogLevel.INFO, LogFormat.{form})
import structlog
structlog.get_logger().info("ours", number=1)
logging.getLogger("theirs").error("of a library")
warnings.warn("of Python")
logs.configure(LogLevel.ERROR, LogFormat.{form})
structlog.get_logger().info("not any more")
logging.getLogger("theirs").warning("nor of a library")
raise ValueError("the end")
"""


def test_nothing_but_json_is_on_a_json_stream() -> None:
    ended = _python(_WRITES.format(form="JSON"))
    lines = [json.loads(line) for line in ended.stderr.splitlines()]
    assert [line["event"].partition(":")[0] for line in lines] == [
        "ours",
        "of a library",
        "<string>",
        "ended by a fault",
    ]
    assert all(line["level"] and line["timestamp"] for line in lines)
    assert "ValueError: the end" in lines[-1]["exception"]
    assert not ended.stdout


def test_text_is_for_people() -> None:
    ended = _python(_WRITES.format(form="TEXT"))
    first = ended.stderr.splitlines()[0]
    assert "ours" in first
    assert not first.startswith("{")
    assert "Traceback" in ended.stderr


def _python(code: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(("form", "is_json"), [("json", True), ("text", False)])
async def test_addresses_and_the_end_are_lines_of_the_log(
    tmp_path: Path, *, form: str, is_json: bool
) -> None:
    async with EmbeddedCluster() as cluster:
        cluster.write_kubeconfig(tmp_path / "kubeconfig")
        flags = ("--kubeconfig", str(tmp_path / "kubeconfig"), "--http-port=0")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "reserver", "serve", *flags, "--logging-format", form),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stderr
        lines: list[str] = []
        while lines := [*lines, (await process.stderr.readline()).decode()]:
            if "serving" in lines[-1]:
                process.terminate()
                break
        printed, logged = await process.communicate()
    lines += logged.decode().splitlines()
    assert not printed
    assert process.returncode == 0
    assert "stopped" in lines[-1]
    assert all(line.startswith("{") is is_json for line in lines)


async def test_a_gate_in_the_file_takes_effect_though_nobody_restarts_it(tmp_path: Path) -> None:
    """A kubelet would start the process again whenever it ends."""
    head = "apiVersion: reserver.io/v1alpha1\nkind: ReserverConfiguration\n"
    file = tmp_path / "config.yaml"
    file.write_text(head)
    async with EmbeddedCluster() as cluster:
        body = {"metadata": {"name": "reserver-system"}}
        await cluster.client.send("POST", "/api/v1/namespaces", body)
        cluster.write_kubeconfig(tmp_path / "kubeconfig")
        process = ReserverProcess(tmp_path / "kubeconfig", tmp_path / "log", f"--config={file}")

        def changed() -> tuple[int, str]:
            with process:
                assert '"KeepHeldNodes":false' in process.get("/configz")[1]
                file.write_text(f"{head}featureGates: {{KeepHeldNodes: true}}\n")
                status = process.wait_ended()
                process.start()
                return status, process.get("/configz")[1]

        status, shown = await asyncio.to_thread(changed)
    assert status == 1
    assert '"KeepHeldNodes":true' in shown
    assert '"awaitingRestart":[]' in shown
