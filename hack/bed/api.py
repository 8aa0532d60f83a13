"""A client of the API server for many threads: JSON in, JSON out, no models and no retries."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http import HTTPStatus
from pathlib import Path
from typing import Any, TypeVar

import urllib3
import yaml

_TIMEOUT = urllib3.Timeout(connect=2, read=15)  # seconds
_WATCH_SECONDS = 5  # soon enough for whoever waits for its end
_CONNECTIONS = 16
_MERGE_PATCH = "application/merge-patch+json"

T = TypeVar("T")


class ApiFault(Exception):
    """The API server refused, or did not answer.

    Attributes:
        status: of the answer; 0 if there was none, and then nobody knows whether it was done.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status} {message}")
        self.status = status

    @property
    def is_definite(self) -> bool:
        """Whether it is known that nothing was done."""
        return HTTPStatus.BAD_REQUEST <= self.status < HTTPStatus.INTERNAL_SERVER_ERROR


class Api:
    """A client of the API server whose methods may be called from any thread.

    Args:
        kubeconfig: of a user with a token, as `write_kubeconfig` makes it.
    """

    def __init__(self, kubeconfig: Path) -> None:
        content = yaml.safe_load(kubeconfig.read_text())
        cluster = content["clusters"][0]["cluster"]
        self.server: str = cluster["server"]
        self.ca_file: str = cluster["certificate-authority"]
        self.token: str = content["users"][0]["user"]["token"]
        self._pool = urllib3.PoolManager(
            maxsize=_CONNECTIONS, ca_certs=self.ca_file, retries=False, timeout=_TIMEOUT
        )

    def close(self) -> None:
        """Closes all connections."""
        self._pool.clear()

    def get(self, path: str) -> Any:  # noqa: ANN401 (JSON)
        """Reads an object or a list.

        Raises:
            ApiFault: as all methods.
        """
        return self._send("GET", path)

    def create(self, path: str, body: object) -> None:
        """Creates an object; one that is there already is left as it is."""
        try:
            self._send("POST", path, body)
        except ApiFault as fault:
            if fault.status != HTTPStatus.CONFLICT:
                raise

    def create_all(self, path: str, bodies: Iterable[object]) -> None:
        """Creates many objects, several at once."""
        at_once(lambda body: self.create(path, body), bodies)

    def patch(self, path: str, body: object) -> None:
        """Merges a patch into an object."""
        self._send("PATCH", path, body, content_type=_MERGE_PATCH)

    def delete(self, path: str, grace_seconds: int | None = None, uid: str = "") -> None:
        """Deletes an object; one that is gone already, or has another uid, is passed over."""
        body: dict[str, Any] = {"preconditions": {"uid": uid}} if uid else {}
        if grace_seconds is not None:
            body["gracePeriodSeconds"] = grace_seconds
        try:
            self._send("DELETE", path, body)
        except ApiFault as fault:
            if fault.status not in {HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT}:
                raise

    def watch(self, path: str, version: str) -> Iterator[dict[str, Any]]:
        """Yields the events of a collection after a resourceVersion, until the watch ends.

        Raises:
            ApiFault: also when an event says so (410: the version is too old).
        """
        query = f"watch=true&resourceVersion={version}&timeoutSeconds={_WATCH_SECONDS}"
        rest = b""
        try:
            with closing(self._open("GET", f"{path}?{query}")) as response:
                for chunk in response.stream(amt=None):
                    *lines, rest = (rest + chunk).split(b"\n")
                    for line in lines:
                        event = json.loads(line)
                        if event["type"] == "ERROR":
                            raise ApiFault(event["object"]["code"], event["object"]["message"])
                        yield event
        except urllib3.exceptions.HTTPError as error:
            raise ApiFault(0, str(error)) from error

    def _send(
        self, method: str, path: str, body: object = None, content_type: str = "application/json"
    ) -> Any:  # noqa: ANN401 (JSON)
        try:
            with closing(self._open(method, path, body, content_type)) as response:
                return json.loads(response.read())
        except urllib3.exceptions.HTTPError as error:
            raise ApiFault(0, str(error)) from error

    def _open(
        self, method: str, path: str, body: object = None, content_type: str = "application/json"
    ) -> urllib3.BaseHTTPResponse:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": content_type}
        data = None if body is None else json.dumps(body)
        response = self._pool.request(
            method, self.server + path, body=data, headers=headers, preload_content=False
        )
        if response.status >= HTTPStatus.BAD_REQUEST:
            with closing(response):
                raise ApiFault(response.status, response.read().decode(errors="replace"))
        return response


def at_once(call: Callable[[T], object], each: Iterable[T], threads: int = 8) -> None:
    """Call a function for each item in several threads; raise the first exception."""
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(call, each):
            pass
