"""The imitation of a Kubernetes Service for storms, on which their `standby` run relies."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from hack.bed.service import Service


class _Replica(ThreadingHTTPServer):
    def __init__(self, name: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.name = name
        self.is_ready = False


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        replica = self.server
        assert isinstance(replica, _Replica)
        body = replica.name.encode()
        is_refusal = self.path == "/readyz" and not replica.is_ready
        self.send_response(503 if is_refusal else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def _replica(name: str) -> Iterator[_Replica]:
    with _Replica(name) as replica:
        thread = threading.Thread(target=replica.serve_forever)
        thread.start()
        try:
            yield replica
        finally:
            replica.shutdown()
            thread.join()


def _answer(connection: http.client.HTTPConnection) -> str:
    connection.request("GET", "/")
    return connection.getresponse().read().decode()


def test_new_connections_go_to_whichever_is_ready_and_old_ones_stay() -> None:
    with (
        _replica("a") as a,
        _replica("b") as b,
        Service((a.server_port, b.server_port)) as service,
    ):
        a.is_ready = True
        first = http.client.HTTPConnection("127.0.0.1", service.port, timeout=10)
        assert _answer(first) == "a"
        a.is_ready, b.is_ready = False, True
        second = http.client.HTTPConnection("127.0.0.1", service.port, timeout=10)
        assert (_answer(first), _answer(second)) == ("a", "b")
        first.close()
        second.close()


def test_nobody_answers_while_none_is_ready() -> None:
    with _replica("a") as a, Service((a.server_port,)) as service:
        connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=10)
        with pytest.raises((ConnectionError, http.client.HTTPException)):
            _answer(connection)
        connection.close()


@pytest.mark.parametrize("way", ["calls", "answers"])
def test_what_is_held_up_by_a_partition_comes_late(way: str) -> None:
    with _replica("a") as a, Service((a.server_port,)) as service:
        a.is_ready = True
        connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=10)
        assert _answer(connection) == "a"
        service.part(calls=way == "calls", answers=way == "answers")
        connection.request("GET", "/")
        assert connection.sock is not None
        connection.sock.settimeout(0.2)
        with pytest.raises(TimeoutError):
            connection.sock.recv(1)
        service.heal(drop=False)
        connection.sock.settimeout(10)
        assert connection.getresponse().read() == b"a"
        connection.close()


def test_connections_that_a_partition_broke_are_closed_and_new_ones_go_through() -> None:
    with _replica("a") as a, Service((a.server_port,)) as service:
        a.is_ready = True
        connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=10)
        assert _answer(connection) == "a"
        service.part(calls=True, answers=True)
        connection.request("GET", "/")
        service.heal(drop=True)
        with pytest.raises((ConnectionError, http.client.HTTPException)):
            connection.getresponse()
        connection.close()
        assert _answer(connection) == "a"
        connection.close()
