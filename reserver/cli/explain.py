"""`reserver explain`: asks a running reserver why things are as they are."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from enum import StrEnum
from http import HTTPStatus
from http.client import HTTPException
from typing import Annotated, Any, NoReturn
from urllib.parse import quote, urlsplit

import typer

DEFAULT_ADDRESS = "http://127.0.0.1:9440"

_TIMEOUT_S = 30.0
_NOT_FOUND = 1
_CANNOT = 2
_MOST_BYTES = 64 * 2**20

app = typer.Typer(help="Say why things are as they are.", no_args_is_help=True)


class Output(StrEnum):
    """How an explanation is printed."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


@app.callback()
def _explain() -> None:
    """Say why things are as they are."""


@app.command()
def pod(
    name: Annotated[str, typer.Argument(metavar="NAMESPACE/NAME", help="The pod.")],
    address: Annotated[
        str, typer.Option(envvar="RESERVER_ADDRESS", help="Where reserver serves.")
    ] = DEFAULT_ADDRESS,
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print it.")] = (
        Output.TABLE
    ),
) -> None:
    """Say which nodes a pod may have, and why not the others.

    Exit status: 0 explained; 1 there is no such pod; 2 wrong usage, or reserver cannot be asked.
    """
    namespace, slash, pod_name = name.partition("/")
    if not (namespace and slash and pod_name) or "/" in pod_name:
        _fail(f"{name!r} is not of the form NAMESPACE/NAME", _CANNOT)
    explanation = _get(address, f"/explain/{quote(namespace, '')}/{quote(pod_name, '')}")
    if output is Output.JSON:
        typer.echo(json.dumps(explanation, indent=2))
    elif output is Output.YAML:
        import yaml  # noqa: PLC0415 - not needed for a table

        typer.echo(yaml.safe_dump(explanation, sort_keys=False), nl=False)
    else:
        from reserver.cli import explain_view  # noqa: PLC0415 - what --help need not wait for

        explain_view.show(explanation)


def _get(address: str, path: str) -> dict[str, Any]:
    url = address.rstrip("/")
    if not _is_url(url):
        _fail(f"--address: {address!r} is no address; write e.g. {DEFAULT_ADDRESS}", _CANNOT)
    # Reserver listens on loopback, where no proxy finds it.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url + path, timeout=_TIMEOUT_S) as response:
            answer = json.loads(response.read(_MOST_BYTES))
    except urllib.error.HTTPError as exc:
        with exc:
            _refused(url, exc.code, exc.read(_MOST_BYTES))
    except (OSError, ValueError, HTTPException) as exc:
        reason = getattr(exc, "reason", exc)
        remedy = "give the address that `reserver serve` prints as --address"
        _fail(f"cannot ask reserver at {url}: {reason}; {remedy}", _CANNOT)
    if not isinstance(answer, dict) or "summary" not in answer:
        _fail(f"what answers at {url} is not reserver", _CANNOT)
    return answer


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname)


def _refused(url: str, status: int, body: bytes) -> NoReturn:
    try:
        message = json.loads(body)["error"]
    except (ValueError, LookupError, TypeError):
        _fail(f"what answers at {url} is not reserver: HTTP status {status}", _CANNOT)
    if status == HTTPStatus.NOT_FOUND:
        _fail(str(message), _NOT_FOUND)
    _fail(f"reserver at {url} cannot answer: {message}", _CANNOT)


def _fail(message: str, status: int) -> NoReturn:
    typer.echo(f"reserver: {message}", err=True)
    raise typer.Exit(status)
