"""No text of another user steers a terminal, or displays otherwise than it is written."""

import json
from collections.abc import Callable, Iterable
from http import HTTPStatus

import grpc
import pytest
import yaml
from google.rpc import error_details_pb2, status_pb2
from hypothesis import given
from hypothesis import strategies as st

from reserver.cli import failure, output, table
from reserver.cli.output import Output
from reserver.errors import ApiError, InvalidInput
from reserver.extender import reservation_events
from reserver.grpc.status_errors import CallError
from reserver.http import message
from reserver.k8s.objects.objects import Metadata
from reserver.printable import is_printable, printable
from reserver.process import logs
from reserver.reservations.status import ShortNodes
from reserver.stores.configmap import status_codec as companion
from reserver.stores.configmap.entries import read_key
from reserver.stores.entries import EntryProblem
from reserver.stores.object.status_codec import invalid
from tests.builders import node, ref, reservation, state_of
from tests.unit.k8s.fakes import ScriptedClient
from tests.unit.k8s.test_events import events, recording

NASTY = {
    "a terminal's command": "\x1b[2J",
    "the bell, and a line of its own": "\a\r\n",
    "DEL": "\x7f",
    "a command of C1": "\x9b31m",
    "a line feed of C1": "\x85",
    "right to left": "\u202egpj.exe",
    "an isolate": "\u2066a\u2069",
    "marks": "\u200e\u200f\u061c",
    "separators": "\u2028\u2029",
    "no width": "a\u200b\u200c\u200d\u2060\ufeff",
    "tags": "\U000e0041",
}
nasty = pytest.mark.parametrize("text", NASTY.values(), ids=NASTY)


def error(text: str) -> InvalidInput:
    return InvalidInput(f"resources.{text}", f"{text} is not known", f"write no {text}").under(text)


def _conditions(text: str) -> Iterable[str]:
    status = invalid(EntryProblem(ref("r"), error(text)), None, 1, 0.0)
    return (condition.message for condition in status.conditions)


def _companion(text: str) -> Iterable[str]:
    entries = read_key(ref("r"), json.dumps({f"a{text}": 1}), 0.0)
    assert entries.problems
    yield json.loads(companion.show(entries, lambda _: None))["message"]


def _status(text: str) -> Iterable[str]:
    hold = reservation("r", cpu="1")
    state = state_of(node("worker-1", cpu="4"), hold)
    state.ledger.note_unwritten(hold.ref, f"denied: {text}")
    message = ShortNodes.of(state.snapshot).status(hold, state.ledger).message
    assert "denied: " in message
    yield message


def _refusal(text: str) -> Iterable[str]:
    code = grpc.StatusCode.INVALID_ARGUMENT
    refusal = CallError(code, "INVALID", f"no {text}", [(f"spec.{text}", f"{text} is wrong")])
    yield refusal.message
    request = error_details_pb2.BadRequest()
    status = status_pb2.Status.FromString(refusal.details())
    assert status.details[1].Unpack(request)
    yield from (status.message, request.field_violations[0].field)
    yield request.field_violations[0].description


def _body(text: str) -> Iterable[str]:
    body = message.error(HTTPStatus.BAD_REQUEST, text).body
    assert isinstance(body, bytes)
    yield json.loads(body)["error"]


PLACES: dict[str, Callable[[str], Iterable[str]]] = {
    "an error": lambda text: [str(error(text))],
    "its parts": lambda text: [error(text).path, error(text).problem, error(text).remedy],
    "a problem": lambda text: [str(EntryProblem(ref(text), error(text)))],
    "the API server's error": lambda text: [str(ApiError(422, "Invalid", f"denied: {text}"))],
    "a condition": _conditions,
    "a companion": _companion,
    "a status": _status,
    "a call's refusal": _refusal,
    "the body of an HTTP error": _body,
    "a table": lambda text: table.plain([(text, table.Cell(text), [table.Cell(text)])]),
    "a table on a terminal": lambda text: [
        str(cell) for cell in table.drawn(("A",), [(table.Cell(text),)]).columns[0].cells
    ],
}


@nasty
@pytest.mark.parametrize("place", PLACES)
def test_what_is_not_seen_is_escaped(place: str, text: str) -> None:
    shown = list(PLACES[place](text))
    assert shown
    assert all(map(is_printable, shown))


@nasty
async def test_an_event_holds_nothing_that_is_not_seen(text: str) -> None:
    client = ScriptedClient({}, {}, {})
    store = Metadata(name="store", namespace="shop", uid="u", resource_version="7")
    async with recording(client) as recorder:
        reservation_events.unread(recorder, store, EntryProblem(ref(text), error(text)))
        recorder.warn(store, "A", text * 1000)
        recorder.note(store, "B", text * 1000)
    messages = [event["message"] for event in events(client)]
    assert len(messages) == 3
    assert all(is_printable(message) and len(message) <= 1024 for message in messages)


@nasty
@pytest.mark.parametrize("form", [Output.JSON, Output.YAML])
@pytest.mark.parametrize("show", [output.document, output.item])
def test_programs_get_the_same_value_escaped(
    show: Callable[[object, Output], None],
    form: Output,
    text: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    value = {"key": text, text: [f"{text} …"]}
    show(value, form)
    printed = capsys.readouterr().out
    assert is_printable(printed, "\n")
    assert (json.loads if form is Output.JSON else yaml.safe_load)(printed) == value


@pytest.mark.parametrize("form", [Output.JSON, Output.YAML])
def test_what_is_seen_stays_readable(form: Output, capsys: pytest.CaptureFixture[str]) -> None:
    output.document({"message": "zu groß …"}, form)
    assert "zu groß …" in capsys.readouterr().out


@nasty
def test_names_and_failures_show_nothing_that_is_not_seen(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    output.names([text])
    failure.report(text)
    assert all(is_printable(printed, "\n") for printed in capsys.readouterr())


@nasty
def test_a_log_line_on_a_terminal_keeps_its_lines_and_nothing_else(text: str) -> None:
    line = logs._printable(None, "", {"event": text, "exception": f"a\n\t{text}", "count": 1})
    assert is_printable(line["event"], "\n\t")
    assert line["exception"].startswith("a\n\t")
    assert line["count"] == 1


@given(st.text())
def test_escapes_are_escaped_once(text: str) -> None:
    shown = printable(text)
    assert is_printable(shown)
    assert printable(shown) == shown
    assert (shown == text) == is_printable(text)
