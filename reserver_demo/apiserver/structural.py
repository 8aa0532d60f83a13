"""The structural schemas of CRDs: pruning, defaulting and validation.

apiextensions-apiserver/pkg/apiserver/schema, and pkg/apiserver/validation with kube-openapi. Rules
in CEL (`x-kubernetes-validations`) are not evaluated here: such an object is accepted, and Reserver
itself reports the object as invalid.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from reserver_demo.apiserver.schema import ACCEPTED, Schema
from reserver_demo.apiserver.status import Cause, Json, required

_TYPES = {**ACCEPTED, "integer or string": (int, str)}


def pruned(value: Any, schema: Schema, path: str, unknown: list[str]) -> Any:  # noqa: ANN401 - any JSON value
    """Return a value without unknown fields, whose paths are added to `unknown`."""
    if isinstance(value, list):
        items = schema.get("items", {})
        return [pruned(v, items, f"{path}[{i}]", unknown) for i, v in enumerate(value)]
    if not isinstance(value, dict) or schema.get("x-kubernetes-preserve-unknown-fields"):
        return value
    kept: Json = {}
    for key, inner in value.items():
        where = f"{path}.{key}" if path else key
        known = member(schema, key)
        if known is None:
            unknown.append(where)
        else:
            kept[key] = pruned(inner, known, where, unknown)
    return kept


def fill_in(value: Any, schema: Schema) -> None:  # noqa: ANN401 - any JSON value
    """Add the defaults of the schema to a value."""
    if isinstance(value, list):
        for item in value:
            fill_in(item, schema.get("items", {}))
    elif isinstance(value, dict):
        for key, inner in schema.get("properties", {}).items():
            if "default" in inner and value.get(key) is None:
                value[key] = inner["default"]
        for key, given in value.items():
            fill_in(given, member(schema, key) or {})


def member(schema: Schema, key: str) -> Schema | None:
    """Return the schema of a field; None if unknown."""
    found: Schema | None = schema.get("properties", {}).get(key)
    if found is None and isinstance(schema.get("additionalProperties"), dict):
        found = schema["additionalProperties"]
    return found


def causes(value: Any, schema: Schema, path: str) -> Iterator[Cause]:  # noqa: ANN401 - any JSON value
    """Yield the problems of a value, in the words of the API server."""
    if value is None and schema.get("nullable"):
        return
    if kind := _type_problem(value, schema):
        yield Cause("FieldValueTypeInvalid", _message(path, value, f"must be of type {kind}"), path)
        return
    if "enum" in schema and value not in schema["enum"]:
        values = ", ".join(json.dumps(each) for each in schema["enum"])
        detail = f"Unsupported value: {json.dumps(value)}: supported values: {values}"
        yield Cause("FieldValueNotSupported", detail, path)
    for reason, problem in _bounds(value, schema):
        yield Cause(reason, _message(path, value, problem), path)
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from causes(item, schema.get("items", {}), f"{path}[{index}]")
    elif isinstance(value, dict):
        yield from _field_causes(value, schema, path)


def _field_causes(value: Json, schema: Schema, path: str) -> Iterator[Cause]:
    for key in schema.get("required", ()):
        if key not in value:
            yield required(f"{path}.{key}" if path else key)
    for key, inner in value.items():
        where = f"{path}.{key}" if path else key
        yield from causes(inner, member(schema, key) or {}, where)


def _message(path: str, value: object, problem: str) -> str:
    shown = "null" if value is None else json.dumps(value)
    return f"Invalid value: {shown}: {path} in body {problem}"


def _type_problem(value: object, schema: Schema) -> str:
    """Return the required type of a value with another type; empty if the type is right."""
    if schema.get("x-kubernetes-int-or-string"):
        name = "integer or string"
    else:
        name = schema.get("type", "")
    kinds = _TYPES.get(name, (object,))
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds and name):
        return name
    if schema.get("format") == "date-time" and not _is_moment(str(value)):
        return "date-time"
    return ""


def _is_moment(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def _bounds(value: object, schema: Schema) -> Iterator[tuple[str, str]]:
    """Yield the reason and the problem of each exceeded bound."""
    invalid = "FieldValueInvalid"
    if isinstance(value, int | float) and not isinstance(value, bool):
        if value < schema.get("minimum", value):
            yield invalid, f"should be greater than or equal to {schema['minimum']}"
        if value > schema.get("maximum", value):
            yield invalid, f"should be less than or equal to {schema['maximum']}"
        return
    if isinstance(value, str):
        if "pattern" in schema and not re.search(schema["pattern"], value):
            yield invalid, f"should match '{schema['pattern']}'"
        least, most, what = "minLength", "maxLength", "chars long"
        too_much = "FieldValueTooLong"
    elif isinstance(value, list):
        least, most, what, too_much = "minItems", "maxItems", "items", "FieldValueTooMany"
    elif isinstance(value, dict):
        least, most, what = "minProperties", "maxProperties", "properties"
        too_much = "FieldValueTooMany"
    else:
        return
    if len(value) < schema.get(least, 0):
        yield invalid, f"should be at least {schema[least]} {what}"
    if len(value) > schema.get(most, len(value)):
        yield too_much, f"should be at most {schema[most]} {what}"
