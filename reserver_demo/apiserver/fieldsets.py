"""Sets of fields, and objects merged field by field (sigs.k8s.io/structured-merge-diff).

A field is a path of elements in the format of FieldsV1: `f:NAME` for a field, `k:{…}` for the item
of an associative list with these keys, `v:VALUE` for an item of a set. Other lists and atomic maps
are one field each.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from reserver_demo.apiserver.schema import Schema, member, resolve
from reserver_demo.apiserver.status import Json

Path = tuple[str, ...]
_ITEM = "."


def fields_of(value: Any, schema: Schema) -> Iterator[Path]:  # noqa: ANN401 - any JSON value
    """Yield the fields of a value."""
    schema = resolve(schema)
    if _is_map(value, schema):
        for key, inner in value.items():
            for path in fields_of(inner, member(schema, key)):
                yield (f"f:{key}", *path)
    elif _is_associative(value, schema):
        for item in value:
            element = _element(item, schema)
            yield (element,)
            if element.startswith("k:"):
                for path in fields_of(item, schema["items"]):
                    yield (element, *path)
    else:
        yield ()


def merged(live: Any, applied: Any, schema: Schema) -> Any:  # noqa: ANN401 - any JSON value
    """Return a value with the applied fields merged in; no field is removed."""
    schema = resolve(schema)
    if _is_map(applied, schema) and isinstance(live, dict):
        inner = {k: merged(live.get(k), v, member(schema, k)) for k, v in applied.items()}
        return {**live, **inner}
    if _is_associative(applied, schema) and isinstance(live, list):
        items = {_element(item, schema): item for item in live}
        for item in applied:
            element = _element(item, schema)
            items[element] = merged(items.get(element), item, schema["items"])
        return list(items.values())
    return applied


def without(value: Any, path: Path, schema: Schema) -> Any:  # noqa: ANN401 - any JSON value
    """Return a value without one of its fields, and without containers that this empties."""
    schema = resolve(schema)
    element, *rest = path
    if isinstance(value, dict):
        key = element.removeprefix("f:")
        if key not in value:
            return value
        left = without(value[key], tuple(rest), member(schema, key)) if rest else None
        others = {k: v for k, v in value.items() if k != key}
        return others if left in (None, {}, []) else {**value, key: left}
    if not isinstance(value, list):
        return value
    kept = []
    for item in value:
        if _element(item, schema) != element:
            kept.append(item)
        elif rest:
            kept.append(without(item, tuple(rest), schema["items"]))
    return kept


def found(value: Any, path: Path, schema: Schema) -> Any:  # noqa: ANN401 - any JSON value
    """Return the value of a field; None if absent."""
    for element in path:
        schema = resolve(schema)
        if isinstance(value, dict):
            key = element.removeprefix("f:")
            value, schema = value.get(key), member(schema, key)
        elif isinstance(value, list):
            items = (item for item in value if _element(item, schema) == element)
            value, schema = next(items, None), schema.get("items", {})
        else:
            return None
    return value


def is_item(path: Path) -> bool:
    """Return whether a path is of a list item itself, not of a field in it."""
    return path[-1][:2] in {"k:", "v:"}


def shown(path: Path) -> str:
    """Return a path for a message, such as `.spec.owners`."""
    parts = []
    for element in path:
        kind, _, name = element.partition(":")
        if kind == "k":
            keys = ",".join(f"{k}={json.dumps(v)}" for k, v in json.loads(name).items())
            parts.append(f"[{keys}]")
        else:
            parts.append(f".{name}" if kind == "f" else f"[={name}]")
    return "".join(parts)


def to_v1(paths: Iterable[Path]) -> Json:
    """Return a set of fields as FieldsV1."""
    tree: Json = {}
    for path in sorted(paths):
        here = tree
        for element in path:
            here = here.setdefault(element, {})
        if is_item(path):
            here[_ITEM] = {}
    return tree


def from_v1(tree: Json, before: Path = ()) -> Iterator[Path]:
    """Yield the fields of a FieldsV1."""
    for element, inner in tree.items():
        if element == _ITEM:
            yield before
        elif inner:
            yield from from_v1(inner, (*before, element))
        else:
            yield (*before, element)


def _is_map(value: object, schema: Schema) -> bool:
    return (
        bool(value)
        and isinstance(value, dict)
        and (schema.get("x-kubernetes-map-type") != "atomic")
    )


def _is_associative(value: object, schema: Schema) -> bool:
    kind = schema.get("x-kubernetes-list-type")
    return bool(value) and isinstance(value, list) and kind in {"map", "set"}


def _element(item: Any, schema: Schema) -> str:  # noqa: ANN401 - any JSON value
    keys = schema.get("x-kubernetes-list-map-keys")
    if keys and isinstance(item, dict):
        chosen = {key: item[key] for key in sorted(keys) if key in item}
        return f"k:{json.dumps(chosen, separators=(',', ':'))}"
    return f"v:{json.dumps(item)}"
