"""Strict parsing of the YAML and JSON of policies and settings.

Values that parsers of YAML interpret differently are refused. In YAML 1.1, which upstream parses,
``yes`` is a boolean, ``010`` is eight and ``12:30`` may be 750; in YAML 1.2 they are a text, ten
and a text. Quotes, or another form of the value, make it unambiguous.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, NoReturn

import yaml

from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput

MOST_BYTES = 262_144
"""Bound on one file, in bytes: a hundred times a usual file, and a quarter of a ConfigMap."""

_MOST_DEPTH = 32
_MOST_VALUES = 65_536
"""Bound on the number of values, counting each repetition by an alias."""

_MOST_DIGITS = 400
_LARGEST_WHOLE = 1e21
"""Upstream writes numbers from here on with an exponent, which its integers do not accept."""

_REMEDY = "write one document in YAML or JSON"
_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEANS = {"true": True, "True": True, "TRUE": True} | dict.fromkeys(
    ("false", "False", "FALSE"), False
)
_NUMBER = re.compile(r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_JSON = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_QUIRKS = (
    (
        re.compile(r"y|Y|yes|Yes|YES|on|On|ON|n|N|no|No|NO|off|Off|OFF"),
        "is a boolean in YAML 1.1 and a text in YAML 1.2",
        "write true or false, or put it in quotes",
    ),
    (
        re.compile(
            r"[-+]?0([0-9_]+|[oO][0-7_]+|[xX][0-9a-fA-F_]+|[bB][01_]+)(\.[0-9_]*)?([eE].*)?"
        ),
        "is a number that readers of YAML understand differently",
        "write it in decimal digits, or put it in quotes",
    ),
    (
        re.compile(r"[-+]?[0-9][0-9_.]*_[0-9_.]*([eE][-+]?[0-9]+)?"),
        "is a number with underscores, which are for YAML 1.1 alone",
        "write it without them, or put it in quotes",
    ),
    (
        re.compile(r"[-+]?[0-9]+(:[0-5]?[0-9])+(\.[0-9]*)?"),
        "is a number of base 60 in YAML 1.1 and a text in YAML 1.2",
        "put it in quotes",
    ),
    (
        re.compile(r"<<|="),
        "is a key of YAML 1.1 with a meaning of its own",
        "write the fields out, or put it in quotes",
    ),
)
"""Refused plain scalars: pattern, problem and remedy."""


def parse(raw: bytes) -> tuple[Any, bool]:
    """Return the value of the first document, and whether there are more.

    Raises:
        InvalidInput: the text is neither YAML nor JSON, too long or too deep, has too many values,
            a duplicate field or an ambiguous scalar.
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


class _Pairs(list[tuple[str, Any]]):
    """The fields of a JSON object, including duplicates, before its path is known."""


def _json(text: str) -> Any:  # noqa: ANN401 - whatever JSON can hold
    try:
        value = json.loads(
            text, object_pairs_hook=_Pairs, parse_constant=_not_json, parse_int=_whole
        )
        return _unpaired(value, "", 0)
    except json.JSONDecodeError as exc:
        problem = f"invalid JSON: {exc.msg} at line {exc.lineno}, column {exc.colno}"
        raise InvalidInput("", problem, _REMEDY) from exc
    except RecursionError as exc:
        raise _too_deep() from exc


def _unpaired(value: Any, path: str, depth: int) -> Any:  # noqa: ANN401 - as above
    if depth > _MOST_DEPTH:
        raise _too_deep()
    if isinstance(value, _Pairs):
        fields: dict[str, Any] = {}
        for name, each in value:
            inner = _below(path, name, fields)
            fields[name] = _unpaired(each, inner, depth + 1)
        return fields
    if isinstance(value, list):
        return [_unpaired(each, f"{path}[{at}]", depth + 1) for at, each in enumerate(value)]
    return value


def _below(path: str, name: str, fields: dict[str, Any]) -> str:
    """Return the path of a field; refuse a duplicate."""
    inner = f"{path}.{shorten(name)}" if path else shorten(name)
    if name in fields:
        raise InvalidInput(inner, "is given twice", "remove one of them")
    return inner


def _whole(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise InvalidInput("", f"{shorten(digits)} is out of range", "write a smaller number")
    return int(digits)


def _not_json(text: str) -> NoReturn:
    raise InvalidInput("", f"{text} is not a JSON number", "write a number")


def _too_deep() -> InvalidInput:
    return InvalidInput("", f"it is nested deeper than {_MOST_DEPTH} levels", _REMEDY)


class _Loader(yaml.CSafeLoader):
    """Composes nodes without resolving plain scalars, which `_scalar` does."""

    yaml_implicit_resolvers = {}  # noqa: RUF012 - PyYAML's way to configure a loader
    DEFAULT_SCALAR_TAG = ""  # type: ignore[misc]  # the stubs have it final


def _check_yaml(text: str) -> None:
    """Refuse tags and deep nesting, before libyaml's composer recurses."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        tag = getattr(event, "tag", None)
        if tag is not None:
            problem = f"the tag {shorten(tag)} is not read"
            raise InvalidInput("", problem, "write the value without its tag, or in quotes")
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > _MOST_DEPTH:
            raise _too_deep()
        if isinstance(event, yaml.DocumentEndEvent):
            return


def _yaml(text: str) -> tuple[Any, bool]:
    _check_yaml(text)
    loader = _Loader(text)
    try:
        node = loader.get_node() if loader.check_node() else None
        if node is None:
            return None, False
        value = _value(node, "", iter(range(_MOST_VALUES)), 0)
        try:
            return value, loader.check_node()
        except yaml.YAMLError:  # Upstream ignores everything after the first document.
            return value, True
    finally:
        loader.dispose()


def _value(node: yaml.Node, path: str, left: Iterator[int], depth: int) -> Any:  # noqa: ANN401 - as above
    if next(left, None) is None:
        problem = f"it has more than {_MOST_VALUES} values, with those that aliases repeat"
        raise InvalidInput("", problem, "write fewer")
    if depth > _MOST_DEPTH:
        raise _too_deep()
    if isinstance(node, yaml.ScalarNode):
        return node.value if node.style else _scalar(node.value, path)
    if isinstance(node, yaml.SequenceNode):
        items = enumerate(node.value)
        return [_value(each, f"{path}[{at}]", left, depth + 1) for at, each in items]
    fields: dict[str, Any] = {}
    for key, each in node.value:
        name = _key(key, path)
        inner = _below(path, name, fields)
        fields[name] = _value(each, inner, left, depth + 1)
    return fields


def _key(node: yaml.Node, path: str) -> str:
    if isinstance(node, yaml.ScalarNode):
        value = node.value if node.style else _scalar(node.value, path)
        if isinstance(value, str):
            return value
        problem = f"{shorten(node.value)} is not the name of a field"
    else:
        problem = "a mapping or list is not the name of a field"
    raise InvalidInput(path, problem, "write a text, in quotes if need be")


def _scalar(text: str, path: str) -> Any:  # noqa: ANN401 - what a plain scalar can be
    if text in _NULL:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if len(text) > _MOST_DIGITS:
        return text
    if _NOT_JSON.fullmatch(text):
        raise InvalidInput(path, f"{text} is not a JSON number", "write a number")
    for pattern, problem, remedy in _QUIRKS:
        if pattern.fullmatch(text):
            raise InvalidInput(path, f"{shorten(text)} {problem}", remedy)
    return _number(text) if _NUMBER.fullmatch(text) else text


def _number(text: str) -> int | float | str:
    """Return a number; a whole number in any notation is an integer, as upstream."""
    if text.lstrip("+-").isdigit():
        return int(text)
    number = float(text)
    if not math.isfinite(number):
        return text
    return int(number) if number.is_integer() and abs(number) < _LARGEST_WHOLE else number
