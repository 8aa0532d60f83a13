r"""Templates of `-o jsonpath=…`, as kubectl has them: fields, indices, `*`, `range` and texts.

``{.reservations[*].id}``, ``{range .reservations[*]}{.name}{"\n"}{end}``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput

_PART = re.compile(r"\{((?:\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[^{}])*)\}|([^{}]+)")
_STEP = re.compile(r"\.(?P<field>[\w-]+|\*)|\[(?P<index>-?\d{1,6}|\*)\]|\['(?P<key>[^']*)'\]")
_FORMS = 'write e.g. {.reservations[*].id} or {range .reservations[*]}{.name}{"\\n"}{end}'
_ALL = "*"

Step = str | int


@dataclass(slots=True)
class _Path:
    """The values that steps lead to; `body` is the body of a range, written for each."""

    steps: Sequence[Step]
    body: list[str | _Path] | None = None

    def write(self, value: Any) -> str:  # noqa: ANN401 - whatever JSON can hold
        found = list(_values(value, self.steps))
        if self.body is None:
            return " ".join(map(_text, found))
        return "".join(_write(self.body, each) for each in found)


@dataclass(slots=True)
class JsonPath:
    """A template, read once."""

    text: str
    _parts: list[str | _Path] = field(init=False)

    def __post_init__(self) -> None:
        """Read it.

        Raises:
            InvalidInput: it is no template.
        """
        is_bare = self.text.startswith((".", "$")) and "{" not in self.text
        self._parts = _read(f"{{{self.text}}}" if is_bare else self.text)

    def render(self, value: Any) -> str:  # noqa: ANN401 - whatever JSON can hold
        """Return the text of the template for a value.

        A missing inner field is empty, as in kubectl, because it may be optional. The fields of a
        list are always there.

        Raises:
            InvalidInput: the value is a list, and the template begins with a field that lists lack.
        """
        if isinstance(value, dict) and all(isinstance(each, list) for each in value.values()):
            self._check(value)
        return _write(self._parts, value)

    def _check(self, fields: Mapping[str, Any]) -> None:
        for part in self._parts:
            first = part.steps[0] if isinstance(part, _Path) and part.steps else _ALL
            if first != _ALL and first not in fields:
                written = f"{{.{first}}}" if isinstance(first, str) else f"{{[{first}]}}"
                named = " or ".join(f"{{.{name}[*]}}" for name in fields)
                raise InvalidInput(
                    "--output", f"jsonpath: there is no {shorten(written)}", f"write {named}"
                )


TEMPLATE: ContextVar[JsonPath | None] = ContextVar("template", default=None)
"""The template of `-o jsonpath=…` on the command line."""

_FLAG = "jsonpath="


def without_template(arguments: Sequence[str]) -> list[str]:
    """Return arguments with `jsonpath` alone for `jsonpath=TEMPLATE`, and remember the template.

    Raises:
        InvalidInput: it is no template.
    """
    rest = []
    for each in arguments:
        flag, found, template = each.partition(_FLAG)
        is_output = found and flag in {"", "-o", "-o=", "--output="}
        if is_output:
            TEMPLATE.set(JsonPath(template))
        rest.append(f"{flag}{_FLAG.rstrip('=')}" if is_output else each)
    return rest


def _read(text: str) -> list[str | _Path]:
    parts: list[str | _Path] = []
    open_: list[list[str | _Path]] = [parts]
    at = 0
    while at < len(text):
        match = _PART.match(text, at)
        if match is None:
            raise _error(text[at:])
        at = match.end()
        if match[2]:
            open_[-1].append(match[2])
            continue
        said = match[1].strip()
        if said[:1] in {'"', "'"}:
            open_[-1].append(_literal(said))
        elif said == "end" and len(open_) > 1:
            open_.pop()
        elif said.startswith("range "):
            loop = _Path(_steps(said.removeprefix("range ").strip()), [])
            open_[-1].append(loop)
            open_.append(loop.body or [])
            loop.body = open_[-1]
        else:
            open_[-1].append(_Path(_steps(said)))
    if len(open_) > 1:
        raise InvalidInput("", "{range} has no {end}", _FORMS)
    return parts


def _literal(text: str) -> str:
    try:
        inner = text[1:-1].replace('"', '\\"') if text[0] == "'" else text[1:-1]
        return str(json.loads(f'"{inner}"'))
    except ValueError as exc:
        raise _error(text) from exc


def _steps(text: str) -> list[Step]:
    rest = text.removeprefix("$").removeprefix("@")
    steps: list[Step] = []
    at = 0
    while at < len(rest):
        match = _STEP.match(rest, at)
        if match is None:
            raise _error(text)
        at = match.end()
        index = match["index"]
        if index is not None and index != _ALL:
            steps.append(int(index))
        else:
            steps.append(next(each for each in match.groups() if each is not None))
    return steps


def _error(text: str) -> InvalidInput:
    return InvalidInput("", f"{shorten(text)!r} is not a path", _FORMS)


def _values(value: Any, steps: Sequence[Step]) -> Iterator[Any]:  # noqa: ANN401 - as above
    if not steps:
        yield value
        return
    step, *rest = steps
    for each in _children(value, step):
        yield from _values(each, rest)


def _children(value: Any, step: Step) -> Iterator[Any]:  # noqa: ANN401 - as above
    if step == _ALL:
        whole = value if isinstance(value, list) else []
        yield from value.values() if isinstance(value, dict) else whole
    elif isinstance(step, int):
        if isinstance(value, list) and -len(value) <= step < len(value):
            yield value[step]
    elif isinstance(value, dict) and step in value:
        yield value[step]


def _write(parts: Sequence[str | _Path], value: Any) -> str:  # noqa: ANN401 - as above
    return "".join(each if isinstance(each, str) else each.write(value) for each in parts)


def _text(value: Any) -> str:  # noqa: ANN401 - as above
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
