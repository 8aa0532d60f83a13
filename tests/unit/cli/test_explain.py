"""`reserver explain pod` against something that answers over HTTP."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from reserver.cli.explain_view import duration
from reserver.cli.main import app
from reserver.scheduling.explain import explain
from reserver.wire.objects import encode
from tests.builders import NOW, node, pod, reservation, state_of


def explained() -> bytes:
    full = [pod(f"b{number}", node=f"w{number}", cpu="3") for number in range(2, 12)]
    holds = [
        reservation("web", node="w1", owners=("x",), expires=NOW + 90, cpu="3"),
        reservation("[bold]", node="w1", owners=("x",), cpu="1"),
        reservation("seat", node="w2", cpu="1", expires=NOW + 90_000),
    ]
    nodes = [node(f"w{number}", cpu="4") for number in range(1, 12)]
    return encode(explain(pod("owner", cpu="2"), state_of(*nodes, *full, *holds), NOW))


@contextmanager
def answering(status: int, body: bytes) -> Iterator[tuple[str, list[str]]]:
    """Answer each GET alike; yield the address, and the paths that were asked for."""
    paths: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", paths
        server.shutdown()
        thread.join()


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["explain", "pod", *arguments])


def test_a_table_names_reasons_reservations_and_the_time_left() -> None:
    with answering(200, explained()) as (address, paths):
        result = run("shop/owner", "--address", f"{address}/")
    assert (result.exit_code, paths) == (0, ["/explain/shop/owner"])
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert lines[0] == (
        "shop/owner: 0/11 nodes are available: 10 Insufficient cpu, "
        "1 capacity held by reservations."
    )
    assert "10 Insufficient cpu w2, w3, w4, w5, w6, …" in lines
    assert "1 capacity held by reservations w1" in lines
    assert "shop/store/web w1 1m 30s" in lines
    assert "shop/store/[bold] w1 no end" in lines
    assert lines.index("held for it node ends in") < lines.index("shop/store/seat w2 1d 1h")


@pytest.mark.parametrize(("output", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_programs_get_all_that_reserver_says(output: str, read: Callable[[str], Any]) -> None:
    with answering(200, explained()) as (address, _):
        result = run("shop/owner", "--address", address, "-o", output)
    assert result.exit_code == 0
    assert read(result.stdout) == json.loads(explained())


def test_a_pod_that_does_not_exist_has_an_exit_status_of_its_own() -> None:
    with answering(404, b'{"error":"there is no pod shop/ghost"}') as (address, _):
        result = run("shop/ghost", "--address", address)
    assert (result.exit_code, result.stderr) == (1, "reserver: there is no pod shop/ghost\n")


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (503, b'{"error":"pods are not listed yet"}', "cannot answer: pods are not listed yet"),
        (404, b"<html>not found</html>", "is not reserver: HTTP status 404"),
        (500, b"[]", "is not reserver: HTTP status 500"),
        (200, b"<html>hello</html>", "cannot ask reserver at"),
        (200, b"\xff", "cannot ask reserver at"),
        (200, b'["summary"]', "is not reserver"),
        (200, b"{}", "is not reserver"),
    ],
)
def test_what_is_not_a_running_reserver_is_named(status: int, body: bytes, words: str) -> None:
    with answering(status, body) as (address, _):
        result = run("shop/a", "--address", address)
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert words in line
    assert address in line


@pytest.mark.parametrize("address", ["127.0.0.1:9440", "ftp://x", "", "http://", "file:///etc/x"])
def test_what_is_no_address_is_refused(address: str) -> None:
    result = run("shop/a", "--address", address)
    assert result.exit_code == 2
    assert f"--address: {address!r} is no address" in result.stderr


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:1", "http://[::1", "http://127.0.0.1:99999", "http://a b"]
)
def test_where_nobody_answers_the_address_is_named(address: str) -> None:
    result = run("shop/a", "--address", address)
    assert result.exit_code == 2
    assert address in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.parametrize("name", ["web", "/web", "shop/", "a/b/c", ""])
def test_what_names_no_pod_is_refused(name: str) -> None:
    result = run(name)
    assert result.exit_code == 2
    assert "NAMESPACE/NAME" in result.stderr


def test_no_proxy_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with answering(200, explained()) as (address, _):
        assert run("shop/owner", "--address", address).exit_code == 0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "no end"),
        (-5, "0s"),
        (0.4, "0s"),
        (59, "59s"),
        (60, "1m 0s"),
        (3_725, "1h 2m"),
        (90_061, "1d 1h"),
        (1e9, "11574d 1h"),
    ],
)
def test_time_left_is_told_in_two_units(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text
