"""PodMoves as people and programs read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reserver.cli import failure, output, table
from reserver.cli.options import Output
from reserver.moves.phases import ENDED
from reserver.printable import printable

Document = Mapping[str, Any]


def told(move: Document) -> str:
    """Return how far a move is, in a line."""
    status = move.get("status") or {}
    where = f" to {status['to']}" if status.get("to") else ""
    why = f": {status['message']}" if status.get("message") else ""
    pod = f"{move['metadata']['namespace']}/{_pod(move)}"
    return printable(f"{pod}{where} {phase(move) or 'written'}{why}")


def _pod(move: Document) -> str:
    """Return the name of the pod that a move is about, as far as it is known."""
    return str((move.get("status") or {}).get("pod") or move["spec"]["pod"]["name"])


def phase(move: Document) -> str:
    """Return the phase of a move; empty before anybody has looked at it."""
    return str((move.get("status") or {}).get("phase", ""))


def is_over(move: Document) -> bool:
    """Return whether a move has ended."""
    return phase(move) in ENDED


def name_of(move: Document) -> str:
    """Return the name of a PodMove."""
    return str(move["metadata"]["name"])


def show(found: Sequence[Document], form: Output, *, everywhere: bool = False) -> None:
    """Print moves."""
    if form is Output.NAME:
        output.names([name_of(each) for each in found])
    elif form in {Output.JSON, Output.YAML}:
        output.document({"apiVersion": "v1", "kind": "List", "items": list(found)}, form)
    elif not found:
        failure.tell("no moves")
    else:
        columns = ["NAME", "POD", "PHASE", "REASON", "FROM", "TO"]
        more = ["AFTER", "MESSAGE"] if form is Output.WIDE else []
        columns = ["NAMESPACE"] * everywhere + columns + more
        table.show(columns, [_row(each, form, everywhere=everywhere) for each in found])


def _row(move: Document, form: Output, *, everywhere: bool) -> list[str]:
    status = move.get("status") or {}
    row = [name_of(move), _pod(move), *(status.get(f) or "" for f in ("phase", "reason", "from"))]
    row.append(status.get("to") or (move["spec"].get("to") or {}).get("node", ""))
    spaces = [move["metadata"]["namespace"]] * everywhere
    more = [move["spec"]["pod"].get("after") or "", status.get("message") or ""]
    return spaces + row + (more if form is Output.WIDE else [])
