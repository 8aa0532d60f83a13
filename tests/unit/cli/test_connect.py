"""The addresses that a command tries, and its error without a server."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from reserver.cli import failure
from reserver.cli.main import app
from reserver.cli.terminal import Retries
from reserver.client import CallFailed
from reserver.errors import ApiError


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["get", "x", *arguments], env={"KUBECONFIG": "/no/such/file"})


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("127.0.0.1", "is not an address; write ADDRESS:PORT"),
        ("http://127.0.0.1:9440", "is a URL"),
        (":9443", "is not HOST:PORT"),
        ("127.0.0.1:0", "is not HOST:PORT"),
        ("127.0.0.1:99999", "is not an address"),
        ("127.0.0.1:x", "is not an address"),
    ],
)
def test_what_is_no_address_is_refused(address: str, words: str) -> None:
    result = run("--address", address)
    assert result.exit_code == 2
    assert result.stderr.startswith("reserver: --address: ")
    assert words in result.stderr


def test_beyond_loopback_it_wants_a_ca_and_a_token() -> None:
    result = run("--address", "reserver.example:9443")
    assert result.exit_code == 2
    assert "--ca-file: is missing" in result.stderr
    result = run("--address", "reserver.example:9443", "--token", "t")
    assert result.exit_code == 2
    assert "--ca-file: is missing" in result.stderr
    result = run("--address", "reserver.example:9443", "--ca-file", "/none", "--token", "t")
    assert (result.exit_code, result.stderr) == (
        2,
        "reserver: --ca-file: /none cannot be read: No such file or directory\n",
    )


def test_where_nobody_answers_the_address_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reserver.cli.connection._CONNECT_S", 0.3)
    result = run("--address", "127.0.0.1:1")
    assert result.exit_code == 3
    assert "retrying" not in result.stderr
    assert "cannot reach reserver at 127.0.0.1:1" in result.stderr
    assert "--address" in result.stderr


def test_a_shell_of_a_demo_that_has_ended_is_told_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("reserver.cli.connection._CONNECT_S", 0.3)
    monkeypatch.setenv("DEMO", str(tmp_path))
    assert "the demo of" not in run("--address", "127.0.0.1:1").stderr
    monkeypatch.setenv("DEMO", str(tmp_path / "gone"))
    assert "the demo of this shell has ended; start" in run("--address", "127.0.0.1:1").stderr


def test_without_a_kubeconfig_it_names_the_file() -> None:
    result = run()
    assert result.exit_code == 2
    said = "kubeconfig /no/such/file cannot be used: No such file or directory"
    assert result.stderr == f"reserver: {said}; set KUBECONFIG, or give --kubeconfig\n"


def test_where_no_api_server_answers_the_kubeconfig_is_named(tmp_path: Path) -> None:
    cluster = {"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    users = [{"name": "u", "user": {"token": "t"}}]
    config = {"clusters": [cluster], "contexts": [context], "users": users, "current-context": "c"}
    (tmp_path / "config").write_text(json.dumps(config))
    result = run("--kubeconfig", str(tmp_path / "config"))
    assert result.exit_code == 3
    said = "the API server cannot be reached: 127.0.0.1:1: Connection refused"
    assert result.stderr.startswith(f"reserver: {said}; check the server that the kubeconfig names")


def test_who_waits_for_longer_than_a_second_is_told_why(capsys: pytest.CaptureFixture[str]) -> None:
    retries = Retries("127.0.0.1:1")
    where = "UNKNOWN: ipv4:127.0.0.1:1: Failed to connect to remote host: "
    why = CallFailed("UNAVAILABLE", f"last error: {where}Connection refused", "", {})
    retries(why, 0.9, 2.1)
    assert capsys.readouterr().err == ""
    for waited in (1.2, 2.0):
        retries(why, waited, 3 - waited)
    assert capsys.readouterr().err == (
        "reserver: no answer from reserver at 127.0.0.1:1 (Connection refused); "
        "retrying for 2 more seconds\n"
    )


def test_who_is_not_known_is_told_to_log_in_again() -> None:
    reported = failure.of(ApiError(401, "Unauthorized", "Unauthorized"))
    assert reported.status == failure.ExitStatus.REFUSED
    assert "401 Unauthorized" in reported.message
    assert "may have expired: log in again" in reported.message
    over_tls = failure.of(CallFailed("UNAUTHENTICATED", "send a token", "NO_VALID_TOKEN", {}))
    assert "may have expired: log in again, or pass another --token" in over_tls.message


@pytest.mark.parametrize(
    ("why", "remedy"),
    [
        ('nodes is forbidden: User "a" cannot list resource "nodes"', "ask for a role with this"),
        ('pods "a" is forbidden: exceeded quota: small', ""),
    ],
)
def test_who_lacks_a_right_is_told_to_ask_for_it_and_nobody_else(why: str, remedy: str) -> None:
    reported = failure.of(ApiError(403, "Forbidden", why))
    assert reported.status == failure.ExitStatus.REFUSED
    assert why in reported.message
    assert reported.message.endswith(why) if not remedy else remedy in reported.message
