"""The completions of Tab, and its silence without a server."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from typer.testing import CliRunner

from reserver.cli import completion, entry, main


def complete(monkeypatch: pytest.MonkeyPatch, *words: str) -> None:
    monkeypatch.setattr("sys.argv", ["kubectl_complete-reserver", *words])
    monkeypatch.setenv("RESERVER_ADDRESS", "127.0.0.1:1")
    for name in ("_RESERVER_COMPLETE", "_TYPER_COMPLETE_FISH_ACTION", "_TYPER_COMPLETE_ARGS"):
        monkeypatch.setenv(name, "")  # Restores the variables that the command sets.
    entry.complete()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("val",), ["validate"]),
        (("top", "n"), ["nodes"]),
        (("get", "--ph"), ["--phase"]),
        (("create", "--policy", ""), ["Prefer", "Require"]),
    ],
)
def test_kubectl_is_told_commands_options_and_values(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    offered: list[str],
) -> None:
    complete(monkeypatch, *words)
    *lines, directive = capsys.readouterr().out.splitlines()
    assert [line.partition("\t")[0] for line in lines] == offered
    assert directive == ":4"


class Moves(BaseHTTPRequestHandler):
    """An API server with PodMoves in namespace shop."""

    def do_GET(self) -> None:
        moves = [
            {"metadata": {"name": name, "creationTimestamp": "t"}, "status": {"phase": phase}}
            for name, phase in (("web-0-x7", "Reserving"), ("web-1-k2", "Failed"), ("api", ""))
        ]
        found = json.dumps({"items": moves if "/namespaces/shop/podmoves" in self.path else []})
        self.send_response(200)
        self.send_header("Content-Length", str(len(found)))
        self.end_headers()
        self.wfile.write(found.encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("moves", "pause", "-n", "shop", "w"), ["web-0-x7"]),
        (("moves", "resume", "-n", "shop", "api", ""), ["api", "web-0-x7"]),
        (("moves", "pause", "w"), []),
    ],
)
def test_moves_that_go_on_are_offered(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    words: tuple[str, ...],
    offered: list[str],
) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Moves) as server:
        Thread(target=server.serve_forever).start()
        cluster = {"server": f"http://127.0.0.1:{server.server_port}"}
        config = {
            "clusters": [{"name": "c", "cluster": cluster}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": ""}}],
            "current-context": "x",
        }
        (tmp_path / "kubeconfig").write_text(json.dumps(config))
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
        complete(monkeypatch, *words)
        server.shutdown()
    assert capsys.readouterr().out.split()[:-1] == offered


@pytest.mark.parametrize("words", [("describe", "web"), ("create", "--node", "w"), ("get", "'")])
def test_where_nobody_answers_nothing_is_offered_or_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    monkeypatch.setattr(completion, "_DEADLINE_S", 0.2)
    complete(monkeypatch, *words)
    printed = capsys.readouterr()
    assert (printed.out.strip(), printed.err) == (":4", "")


def test_files_and_folders_are_offered_as_far_as_they_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ab.yaml").touch()
    (tmp_path / "aa").mkdir()
    (tmp_path / "aa" / "c.yaml").touch()
    assert completion.files(f"{tmp_path}/a") == [f"{tmp_path}/aa/", f"{tmp_path}/ab.yaml"]
    assert completion.files(f"{tmp_path}/aa/") == [f"{tmp_path}/aa/c.yaml"]
    assert completion.files(f"{tmp_path}/no/such") == []
    monkeypatch.chdir(tmp_path)
    assert completion.files("a") == ["aa/", "ab.yaml"]


@pytest.mark.parametrize(
    ("path", "name"),
    [("/usr/bin/kubectl-reserver", "kubectl reserver"), ("/x/reserver", "reserver")],
)
def test_usage_names_the_command_as_it_was_called(path: str, name: str) -> None:
    assert entry.program_name(path) == name


@pytest.mark.parametrize(
    ("shell", "begins"),
    [
        ("bash", "_reserver_completion() {"),
        ("zsh", "#compdef reserver"),
        ("fish", "function __reserver_complete"),
    ],
)
def test_each_shell_gets_its_own_script(shell: str, begins: str) -> None:
    result = CliRunner().invoke(main.app, ["completion", shell])
    assert (result.exit_code, result.stdout.startswith(begins)) == (0, True)
    assert CliRunner().invoke(main.app, ["completion", "tcsh"]).exit_code == 2
