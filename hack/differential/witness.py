"""An extender that takes down where kube-scheduler would place a pod, and lets no node pass."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self


class Witness:
    """An extender that takes down the names it is sent, as a context manager.

    Attributes:
        seen: by UID of the pod, the names of the last Filter call for it.
    """

    def __init__(self) -> None:
        self.seen: dict[str, frozenset[str]] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self.seen))

    @property
    def port(self) -> int:
        """Its port on loopback."""
        return int(self._server.server_address[1])

    def __enter__(self) -> Self:
        """Starts to listen."""
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stops."""
        self._server.shutdown()
        self._server.server_close()


def _handler(seen: dict[str, frozenset[str]]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            arguments = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            names = arguments["NodeNames"]
            seen[arguments["Pod"]["metadata"]["uid"]] = frozenset(names)
            refused = dict.fromkeys(names, "taken down")
            answer = json.dumps({"NodeNames": [], "FailedAndUnresolvableNodes": refused}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return Handler
