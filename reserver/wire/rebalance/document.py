"""YAML and JSON as upstream reads them, where a stricter reader would refuse what upstream takes.

`sigs.k8s.io/yaml` makes JSON of YAML, with the scalars of go-yaml 2 (``resolve.go``): ``yes`` and
``on`` are booleans, ``010`` is eight, ``1_000`` a thousand, and a number with a point that is whole
is an integer. Aliases and merge keys are followed. A text that begins with ``{`` is JSON.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, NoReturn

import yaml

from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput

MOST_BYTES = 262_144
"""Bound on one policy: a hundred times what people write, and a quarter of a ConfigMap."""

_MOST_DEPTH = 32
_MOST_VALUES = 65_536
"""Bound on values, with those that aliases repeat."""

_REMEDY = "write a DeschedulerPolicy in YAML or JSON"
_TRUE = frozenset({"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"})
_FALSE = frozenset({"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"})
_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_NOT_JSON = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_INTEGER = re.compile(
    r"(?P<sign>[-+]?)(?:(?P<x>0[xX][0-9a-fA-F]+)|(?P<b>0[bB][01]+)|0[oO]?(?P<o>[0-7]+)"
    r"|(?P<d>0|[1-9][0-9]*))"
)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_MOST_DIGITS = 400
_LARGEST_WHOLE = 1e21
"""From here on Go writes a float with an exponent, which its integers do not read."""


class Fields(dict[str, Any]):
    """A mapping that remembers which of its names were given twice; the last one counts."""

    twice: tuple[str, ...] = ()


class JsonFields(Fields):
    """One that is written in JSON, where upstream refuses that in ``args``."""


def parse(raw: bytes) -> tuple[Any, bool]:
    """Return the value of the first document, and whether there are more.

    Raises:
        InvalidInput: it is neither YAML nor JSON, too long, too deep, or has too many values.
    """
    if len(raw) > MOST_BYTES:
        raise InvalidInput("", f"{len(raw)} bytes are too many", f"keep it under {MOST_BYTES}")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise InvalidInput("", "the text is not UTF-8", "write it anew") from exc
    if text.lstrip()[:1] == "{":
        return _json(text), False
    try:
        return _yaml(text)
    except (yaml.YAMLError, RecursionError) as exc:
        problem = f"invalid YAML: {shorten(' '.join(str(exc).split()), 200)}"
        raise InvalidInput("", problem, _REMEDY) from exc


def _json(text: str) -> Any:  # noqa: ANN401 - whatever JSON can hold
    try:
        value = json.loads(
            text, object_pairs_hook=_fields, parse_constant=_not_json, parse_int=_whole
        )
        _check_depth(value)
    except json.JSONDecodeError as exc:
        problem = f"invalid JSON: {exc.msg} at line {exc.lineno}, column {exc.colno}"
        raise InvalidInput("", problem, _REMEDY) from exc
    except RecursionError as exc:
        raise _too_deep() from exc
    return value


def _check_depth(value: Any, depth: int = 0) -> None:  # noqa: ANN401 - as above
    if depth > _MOST_DEPTH:
        raise _too_deep()
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for each in inner:
        _check_depth(each, depth + 1)


def _fields(pairs: list[tuple[str, Any]]) -> JsonFields:
    fields = JsonFields(pairs)
    if len(fields) < len(pairs):
        times = Counter(name for name, _ in pairs)
        fields.twice = tuple(name for name, count in times.items() if count > 1)
    return fields


def _whole(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise InvalidInput("", f"{shorten(digits)} is out of range", "write a smaller number")
    return int(digits)


def _not_json(text: str) -> NoReturn:
    raise InvalidInput("", f"{text} is not a number that JSON knows", "write a number")


def _too_deep() -> InvalidInput:
    return InvalidInput("", f"it is nested deeper than {_MOST_DEPTH} levels", _REMEDY)


class _Loader(yaml.CSafeLoader):
    """Composes nodes; what a plain scalar means is decided here, by go-yaml's rules."""

    yaml_implicit_resolvers = {}  # noqa: RUF012 - PyYAML's way to configure a loader
    DEFAULT_SCALAR_TAG = ""  # type: ignore[misc]  # the stubs have it final


_RESOLVED = frozenset(
    {"", *(f"tag:yaml.org,2002:{kind}" for kind in ("bool", "int", "float", "null"))}
)
"""Tags of scalars that mean what they look like; one with any other tag is a text."""


def _check_yaml_depth(text: str) -> None:
    """Refuse what is nested too deeply before libyaml's composer recurses into it."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > _MOST_DEPTH:
            raise _too_deep()
        if isinstance(event, yaml.DocumentEndEvent):
            return


def _yaml(text: str) -> tuple[Any, bool]:
    _check_yaml_depth(text)
    loader = _Loader(text)
    try:
        node = loader.get_node() if loader.check_node() else None
        if node is None:
            return None, False
        value = _value(node, iter(range(_MOST_VALUES)), 0)
        try:
            return value, loader.check_node()
        except yaml.YAMLError:  # Upstream does not look at what follows the first document.
            return value, True
    finally:
        loader.dispose()


def _value(node: yaml.Node, left: Iterator[int], depth: int) -> Any:  # noqa: ANN401 - as above
    if next(left, None) is None:
        problem = f"it has more than {_MOST_VALUES} values, with those that aliases repeat"
        raise InvalidInput("", problem, "write fewer")
    if depth > _MOST_DEPTH:
        raise _too_deep()
    if isinstance(node, yaml.ScalarNode):
        is_plain = node.tag in _RESOLVED and not (node.style and not node.tag)
        return _scalar(node.value) if is_plain else node.value
    if isinstance(node, yaml.SequenceNode):
        return [_value(each, left, depth + 1) for each in node.value]
    return _mapping(node, left, depth)


def _mapping(node: yaml.Node, left: Iterator[int], depth: int) -> Fields:
    fields, own = Fields(), Counter[str]()
    for key, each in node.value:
        value = _value(each, left, depth + 1)
        if isinstance(key, yaml.ScalarNode) and key.value == "<<" and not key.style:
            for merged in value if isinstance(value, list) else [value]:
                if not isinstance(merged, dict):
                    raise InvalidInput("", "<< merges what is no mapping", "merge a mapping")
                fields.update(merged)
            continue
        name = _key(_value(key, left, depth + 1))
        own[name] += 1
        fields[name] = value
    fields.twice = tuple(name for name, count in own.items() if count > 1)
    return fields


def _key(value: Any) -> str:  # noqa: ANN401 - as above
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"{value:g}" if isinstance(value, float) else str(value)
    raise InvalidInput("", f"{shorten(str(value))} is not the name of a field", "write a text")


def _scalar(text: str) -> Any:  # noqa: ANN401 - what a plain scalar can be
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _NOT_JSON.fullmatch(text):
        _not_json(text)
    plain = text if text[:1] == "." else text.replace("_", "")
    if len(plain) > _MOST_DIGITS or text[:1] == "_":
        return text
    if match := _INTEGER.fullmatch(plain):
        number = _integer(match)
        if -(2**63) <= number < 2**64:
            return number
    if _FLOAT.fullmatch(plain) and math.isfinite(float(plain)):
        number_f = float(plain)
        is_whole = number_f.is_integer() and abs(number_f) < _LARGEST_WHOLE
        return int(number_f) if is_whole else number_f
    return text


def _integer(match: re.Match[str]) -> int:
    for name, base in (("x", 16), ("b", 2), ("o", 8), ("d", 10)):
        if match[name] is not None:
            return int(f"{match['sign']}{match[name]}", base)
    raise AssertionError(match)
