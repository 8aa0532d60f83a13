"""Turns errors of msgspec into an `InvalidInput` with the field, the problem and a remedy."""

from __future__ import annotations

import re
from collections.abc import Collection
from difflib import get_close_matches
from functools import cache
from typing import Any

import msgspec
from msgspec import inspect

from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput

_WORDS = {
    "str": ("a text", "write it in quotes"),
    "float": ("a number", "write one, without quotes"),
    "int": ("a whole number", "write one, without quotes"),
    "bool": ("true or false", "write one of them, without quotes"),
    "array": ("a list", "write each item after a dash"),
    "object": ("a mapping", "write its fields below it"),
    "null": ("nothing", "write a value, or leave the field out"),
}
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(.*)`", re.DOTALL)
_CHOICE = re.compile(r"Invalid enum value (.*)", re.DOTALL)
_TYPE = re.compile(r"Expected `([^`]*)`(?:, got `([^`]*)`)?")


def misfit(error: msgspec.ValidationError, document: Any, kind: type) -> InvalidInput:  # noqa: ANN401
    """Return an error of `msgspec.convert` in the words of JSON and YAML, not of Python."""
    problem, _, at = str(error).partition(" - at `")
    path = at.partition("$")[2].rstrip("`").lstrip(".")
    type_, value = _at(type_info(kind), document, path)
    if found := _UNKNOWN.fullmatch(problem):
        return InvalidInput(path, f"{shorten(found[1])!r} is not a field", _known(type_, found[1]))
    if found := _MISSING.fullmatch(problem):
        return InvalidInput(path, f"the field {found[1]} is missing", "write it")
    if found := _CHOICE.fullmatch(problem):
        return InvalidInput(path, f"{shorten(found[1])} is not supported", _choices(type_))
    if found := _TYPE.fullmatch(problem):
        expected_types = found[1].replace("int | float", "float")  # A whole number is a number.
        kinds = [each for each in _WORDS if each in expected_types.split(" | ") and each != "null"]
        expected = " or ".join(_WORDS[each][0] for each in kinds)
        what = "the name of a field" if at.startswith("key") else _shown(value, found[2] or "")
        return InvalidInput(path, f"{what} is not {expected}", _WORDS[kinds[0]][1])
    return InvalidInput(path, shorten(problem, 200), "write it as in the documentation")


@cache
def type_info(kind: type) -> inspect.Type:
    """Return msgspec's description of a type, cached because it is slow to compute."""
    return inspect.type_info(kind)


def _at(kind: inspect.Type, value: Any, path: str) -> tuple[inspect.Type, Any]:  # noqa: ANN401
    """Return the type and value at a path; AnyType and None if the path cannot be followed."""
    for name, index in _STEP.findall(f".{path}" if path else ""):
        kind = _plain(kind)
        if name and isinstance(kind, inspect.StructType):
            types = {field.encode_name: field.type for field in kind.fields}
            kind, value = types.get(name, inspect.AnyType()), value.get(name)
        elif index.isdecimal() and isinstance(kind, inspect.ListType):
            kind, value = kind.item_type, value[int(index)]
        else:
            return inspect.AnyType(), None
    return _plain(kind), value


def _plain(kind: inspect.Type) -> inspect.Type:
    """Return the type of a field without its None."""
    if not isinstance(kind, inspect.UnionType):
        return kind
    return next(each for each in kind.types if not isinstance(each, inspect.NoneType))


def _known(kind: inspect.Type, name: str) -> str:
    if not isinstance(kind, inspect.StructType):
        return "remove it"
    names = [field.encode_name for field in kind.fields]
    meant = near(name, names)
    hint = f"write {meant}; " if meant else ""
    return f"{hint}the fields here are {', '.join(names)}"


def near(name: str, names: Collection[str]) -> str:
    """Return the closest valid name; empty if none is close."""
    by_lower = {each.lower(): each for each in names}
    found = get_close_matches(name[:100].lower(), by_lower, n=1, cutoff=0.7)
    return by_lower[found[0]] if found else ""


def _choices(kind: inspect.Type) -> str:
    values = kind.cls if isinstance(kind, inspect.EnumType) else ()
    return f"write {' or '.join(str(each.value) for each in values)}"


def _shown(value: Any, got: str) -> str:  # noqa: ANN401 - whatever YAML can hold
    """Return a value as written; for a list, a mapping or an unknown value its type in words."""
    if got in {"array", "object", "null"} or value is None:
        return _WORDS.get(got, ("this",))[0]
    return shorten(str(value).lower() if isinstance(value, bool) else repr(value))
