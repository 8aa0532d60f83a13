"""The types of the API: the fields of objects, and the merge keys of lists.

`schema.json` in this folder is Kubernetes' own OpenAPI v3 document, reduced to the served kinds.
The real server decodes into Go structs: unknown fields are dropped (with a warning, or an error
with strict validation), empty fields are dropped, a wrong type is an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import msgspec

from reserver_demo.apiserver.quantities import canonical
from reserver_demo.apiserver.status import Json

Schema = dict[str, Any]
Value = Json | list[Any] | str | float | bool | None

PREFIX = "#/components/schemas/"
DOCUMENT: dict[str, Schema] = msgspec.json.decode(
    files(__package__).joinpath("schema.json").read_bytes()
)
OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"

_NAMES: dict[type, str] = {dict: "object", list: "array", str: "string", bool: "bool"}
ACCEPTED: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}


class MismatchError(Exception):
    """A value has the wrong type; the message is from Go's decoder."""


@dataclass(frozen=True, slots=True)
class Conformed:
    """A decoded object, and the paths of its unknown fields."""

    value: Json
    unknown: tuple[str, ...]


def conform(name: str | None, value: Json) -> Conformed:
    """Decode an object into the type `name`; None for a kind without a schema of its own.

    Raises:
        MismatchError: a value has the wrong type.
    """
    unknown: list[str] = []
    if name is not None:
        return Conformed(_object(value, DOCUMENT[name], "", unknown), tuple(unknown))
    free = dict(value)
    free["metadata"] = _object(
        _typed(value.get("metadata") or {}, "object", "metadata"),
        DOCUMENT[OBJECT_META],
        "metadata",
        unknown,
    )
    return Conformed(free, tuple(unknown))


def resolve(schema: Schema) -> Schema:
    """Return a schema, with its reference resolved."""
    reference = schema.get("$ref")
    return schema if reference is None else DOCUMENT[reference.removeprefix(PREFIX)]


def member(schema: Schema, key: str) -> Schema:
    """Return the schema of a field of an object or a value of a map; empty if unknown."""
    schema = resolve(schema)
    properties: dict[str, Schema] = schema.get("properties", {})
    return properties.get(key) or schema.get("additionalProperties") or {}


def _conform(value: Value, schema: Schema, path: str, unknown: list[str]) -> Value:
    reference = schema.get("$ref", "").removeprefix(PREFIX)
    if reference == _QUANTITY:
        return _quantity(value, path)
    if reference == _INT_OR_STRING:
        return value if isinstance(value, int) else _typed(value, "string", path)
    schema = resolve(schema)
    kind = schema.get("type", "")
    value = _typed(value, kind, path)
    if isinstance(value, dict):
        return _object(value, schema, path, unknown)
    if isinstance(value, list):
        items = schema["items"]
        return [_conform(v, items, f"{path}[{i}]", unknown) for i, v in enumerate(value)]
    return value


def _object(value: Json, schema: Schema, path: str, unknown: list[str]) -> Json:
    properties = schema.get("properties")
    if properties is None:
        return dict(_entries(value, schema.get("additionalProperties"), path, unknown))
    kept: Json = {}
    needed = schema.get("required", ())
    for key, given in value.items():
        inner = f"{path}.{key}" if path else key
        if key not in properties:
            unknown.append(inner)
        elif given is not None:
            conformed = _conform(given, properties[key], inner, unknown)
            if key in needed or not _is_empty(conformed, properties[key]):
                kept[key] = conformed
    return kept


def _entries(
    value: Json, schema: Schema | None, path: str, unknown: list[str]
) -> Iterator[tuple[str, Value]]:
    for key, given in value.items():
        if schema is None:
            yield key, given
        elif given is None and schema.get("type") == "string":
            yield key, ""
        else:
            yield key, _conform(given, schema, f"{path}.{key}", unknown)


def _is_empty(value: Value, schema: Schema) -> bool:
    """Return whether Go's `omitempty` drops a value; a struct stays, even without fields."""
    if value in ("", []):
        return True
    return value == {} and "additionalProperties" in resolve(schema)


def _quantity(value: Value, path: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise MismatchError(f"json: cannot unmarshal {_name(value)} into {path} of type Quantity")
    try:
        return canonical(value)
    except ValueError as error:
        raise MismatchError(str(error)) from None


def _typed(value: Value, kind: str, path: str) -> Any:  # noqa: ANN401 - of the type `kind`
    accepted = ACCEPTED.get(kind)
    right = accepted is None or isinstance(value, accepted)
    if not right or (isinstance(value, bool) and kind in {"integer", "number"}):
        raise MismatchError(
            f"json: cannot unmarshal {_name(value)} into Go struct field {path} of type {kind}"
        )
    return value


def _name(value: Value) -> str:
    return _NAMES.get(type(value), "null" if value is None else "number")
