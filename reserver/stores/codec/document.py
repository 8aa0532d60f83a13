"""Strict parsing of the JSON and YAML in ConfigMap values.

Stricter than the standard parsers where leniency would hide a mistake or cost others CPU time:
it refuses duplicate fields, YAML tags and aliases, and deep nesting.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any, NoReturn

import msgspec
import yaml

from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput
from reserver.k8s.objects.limits import MOST_ITEMS, check_number

MAX_YAML_BYTES = 65_536
"""Bound on one YAML value, in characters. JSON, which parses 100 times faster, may have 1 MiB."""

MAX_YAML_DEPTH = 32
"""Bound on nesting; a reservation needs six."""

_MAX_DIGITS = 100
_SPACE = re.compile(r"[ \t\r\n]*")
_REMEDY = "write a reservation as JSON or YAML"
_REMEDY_JSON = "a value that begins with { or [ is JSON: quote all names, or write YAML in lines"


def parse(text: str, most_yaml: int = MAX_YAML_BYTES) -> Any:  # noqa: ANN401 - whatever JSON can hold
    """Return the value of a text: JSON if it begins like JSON, YAML otherwise.

    Args:
        most_yaml: bound on YAML, in characters.

    Raises:
        InvalidInput: the text is neither, is too deep, is too large for YAML, or repeats a field.
    """
    stripped = text.strip()
    if not stripped:
        raise InvalidInput("", "the value is empty", "write a reservation, or remove the key")
    try:
        if stripped[0] in "[{":
            value = _parse_json(stripped)
        else:  # A block scalar at the end includes the newline.
            value = _parse_yaml(f"{stripped}\n", most_yaml)
        if "\\u" in stripped:
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as exc:
        problem = f"invalid JSON: {exc.msg} at line {exc.lineno}, column {exc.colno}"
        raise InvalidInput("", problem, _REMEDY_JSON) from exc
    except yaml.YAMLError as exc:
        problem = f"invalid YAML: {shorten(' '.join(str(exc).split()), 200)}"
        raise InvalidInput("", problem, _REMEDY) from exc
    except RecursionError as exc:
        raise InvalidInput("", "the value is nested too deeply", _REMEDY) from exc
    except UnicodeEncodeError as exc:
        raise InvalidInput("", "a string has half a character", "write whole ones") from exc
    return value


def split_list(text: str) -> list[str]:
    """Return the items of a JSON list, each as its own JSON text.

    So a broken item does not affect others, and unchanged items are written back unmodified.

    Raises:
        InvalidInput: the text is not JSON, or there are more than `MOST_ITEMS`.
    """
    try:
        items = msgspec.json.decode(text, type=list[msgspec.Raw])
        check_number(len(items), "", MOST_ITEMS, "items")
        return [bytes(raw).decode() for raw in items]
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return _split_leniently(text)


def _split_leniently(text: str) -> list[str]:
    """Split a list with items that msgspec refuses but whose JSON structure is intact."""
    decoder, items = json.JSONDecoder(), []
    position = text.index("[") + 1
    try:
        while True:
            position = _SPACE.match(text, position).end()  # type: ignore[union-attr]  # always matches
            _, end = decoder.raw_decode(text, position)
            items.append(text[position:end])
            check_number(len(items), "", MOST_ITEMS, "items")
            position = _SPACE.match(text, end).end()  # type: ignore[union-attr]
            if text[position : position + 1] != ",":
                break
            position += 1
    except (json.JSONDecodeError, RecursionError, ValueError):
        parse(text)  # Raises with the position of the error.
        raise InvalidInput("", "the list cannot be read", "write a JSON list") from None
    if text[position:].strip() != "]":
        parse(text)
    return items


def _parse_json(text: str) -> Any:  # noqa: ANN401 - whatever JSON can hold
    return json.loads(
        text,
        object_pairs_hook=_without_duplicates,
        parse_constant=_refuse_constant,
        parse_int=_whole_number,
    )


def _parse_yaml(text: str, most: int) -> Any:  # noqa: ANN401 - whatever YAML can hold
    if len(text) > most:
        problem = f"{len(text)} characters of YAML are too many"
        raise InvalidInput("", problem, f"keep it under {most}, or write JSON")
    depth = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.AliasEvent):
            raise InvalidInput("", "YAML aliases are not supported", "write the value out")
        if getattr(event, "tag", None) is not None:
            raise InvalidInput("", "YAML tags are not supported", "write the value without its tag")
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_YAML_DEPTH:
            raise InvalidInput("", "the value is nested too deeply", _REMEDY)
    return yaml.load(text, Loader=_StrictLoader)  # noqa: S506 - a SafeLoader


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        ((twice, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise InvalidInput("", f"the field {shorten(twice)!r} is given twice", "remove one of them")
    return fields


def _refuse_constant(name: str) -> NoReturn:
    raise InvalidInput("", f"{name} is not a JSON number", "write a whole number")


def _whole_number(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise InvalidInput("", f"{shorten(digits)} is out of range", "check the unit")
    return int(digits)


class _StrictLoader(yaml.CSafeLoader):
    """YAML with the plain values of JSON: no times (they lose their offset), no octal numbers."""

    yaml_implicit_resolvers = {}  # noqa: RUF012 - PyYAML's way to configure a loader

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - PyYAML's signature
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise InvalidInput("", "the name of a field is not text", "write a text")
        _without_duplicates([(key.value, None) for key, _ in node.value])
        return super().construct_mapping(node, deep)


for _kind, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?(?:0|[1-9][0-9]{0,18})", list("-+0123456789")),
    ("float", r"[-+]?[0-9]{1,19}\.[0-9]{1,19}", list("-+0123456789")),
):
    _StrictLoader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_kind}", re.compile(f"^(?:{_pattern})$"), _first
    )
