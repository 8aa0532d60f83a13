"""Strict reading of the JSON and YAML that people put into a ConfigMap value.

Stricter than the standard readers where leniency would hide a mistake or cost everybody else time:
a name that stands twice in one object is refused, and so are YAML aliases and great depth.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

import yaml

from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput

MAX_YAML_BYTES = 65_536
"""Bound on one YAML value, in bytes; JSON is read a hundred times faster and has none but 1 MiB."""

MAX_YAML_DEPTH = 32
"""Bound on nesting; a reservation needs six."""

_REMEDY = "write a reservation as JSON or YAML"
_TIMESTAMP = "tag:yaml.org,2002:timestamp"


def parse(text: str) -> Any:  # noqa: ANN401 - whatever JSON can hold
    """Return the value that a text stands for: JSON if it begins like JSON, YAML otherwise.

    Raises:
        InvalidInput: it is neither, too deep, too large for YAML, or a name stands twice.
    """
    stripped = text.strip()
    if not stripped:
        raise InvalidInput("", "the value is empty", "write a reservation, or remove the key")
    try:
        if stripped[0] in "[{":
            return json.loads(
                stripped, object_pairs_hook=_without_duplicates, parse_constant=_refuse_constant
            )
        if len(text.encode()) > MAX_YAML_BYTES:
            problem = f"{len(text)} characters of YAML are too many"
            raise InvalidInput("", problem, f"keep it under {MAX_YAML_BYTES} bytes, or write JSON")
        _check_yaml_structure(stripped)
        return yaml.load(stripped, Loader=_StrictLoader)  # noqa: S506 - a SafeLoader
    except json.JSONDecodeError as exc:
        problem = f"invalid JSON: {exc.msg} at line {exc.lineno}, column {exc.colno}"
        raise InvalidInput("", problem, _REMEDY) from exc
    except yaml.YAMLError as exc:
        problem = f"invalid YAML: {shorten(' '.join(str(exc).split()), 200)}"
        raise InvalidInput("", problem, _REMEDY) from exc
    except RecursionError as exc:
        raise InvalidInput("", "the value is nested too deeply", _REMEDY) from exc
    except (ValueError, OverflowError) as exc:
        raise InvalidInput("", f"unreadable: {shorten(str(exc), 200)}", _REMEDY) from exc


def _check_yaml_structure(text: str) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.AliasEvent):
            raise InvalidInput("", "YAML aliases are not read", "write the value out")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_YAML_DEPTH:
            raise InvalidInput("", "the value is nested too deeply", _REMEDY)


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidInput("", f"the name {shorten(twice)!r} stands twice", "remove one of them")
    return fields


def _refuse_constant(name: str) -> NoReturn:
    raise InvalidInput("", f"{name} is not a number that JSON knows", "write a whole number")


class _StrictLoader(yaml.CSafeLoader):
    """YAML without times, which would lose their offset from UTC."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's way to configure a loader
        first: [(tag, regexp) for tag, regexp in resolvers if tag != _TIMESTAMP]
        for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - PyYAML's signature
        pairs = [(str(self.construct_object(key, deep=True)), None) for key, _ in node.value]
        _without_duplicates(pairs)
        return super().construct_mapping(node, deep)
