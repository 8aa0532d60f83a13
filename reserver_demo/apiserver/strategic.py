"""Strategic merge patch: a merge patch that merges lists by keys.

Kubernetes' strategicpatch/patch.go; the schema has the strategies and keys of lists
(`x-kubernetes-patch-strategy`, `x-kubernetes-patch-merge-key`).
"""

from __future__ import annotations

from typing import Any

from reserver_demo.apiserver.schema import DOCUMENT, Schema, member, resolve
from reserver_demo.apiserver.status import Json, bad_request, unprocessable

_DIRECTIVE = "$patch"
_RETAIN = "$retainKeys"
_ORDER = "$setElementOrder/"
_DELETE_PRIMITIVES = "$deleteFromPrimitiveList/"


def strategic_merge(document: Json, patch: Json, schema_name: str) -> Json:
    """Return the document with a strategic merge patch applied.

    Raises:
        StatusError: 400 for an unknown directive, 422 for an entry without its merge key.
    """
    return _merge_maps(document, patch, DOCUMENT[schema_name])


def _merge_maps(original: Json, patch: Json, schema: Schema) -> Json:
    match patch.get(_DIRECTIVE, "merge"):
        case "replace":
            replacement: Json = _plain(patch)
            return replacement
        case "delete":
            return {}
        case "merge":
            pass
        case unknown:
            raise bad_request(f"Unknown patch type: {unknown}")
    result = _retained(original, patch)
    for key, value in patch.items():
        if key.startswith("$"):
            continue
        if value is None:
            result.pop(key, None)
        elif key in result:
            result[key] = _merge_values(result[key], value, member(schema, key))
        else:
            result[key] = _plain(value)
    _apply_list_directives(result, original, patch, schema)
    return result


def _retained(original: Json, patch: Json) -> Json:
    keep = patch.get(_RETAIN)
    return {k: v for k, v in original.items() if keep is None or k in keep}


def _merge_values(original: Any, patch: Any, schema: Schema) -> Any:  # noqa: ANN401 - any JSON value
    strategies = schema.get("x-kubernetes-patch-strategy", "").split(",")
    if isinstance(original, dict) and isinstance(patch, dict):
        return _plain(patch) if "replace" in strategies else _merge_maps(original, patch, schema)
    if isinstance(original, list) and isinstance(patch, list) and "merge" in strategies:
        key = schema.get("x-kubernetes-patch-merge-key")
        if key is None:
            return original + [item for item in patch if item not in original]
        return _merge_lists(original, patch, key, resolve(schema)["items"])
    return _plain(patch)


def _merge_lists(original: list[Json], patch: list[Json], key: str, items: Schema) -> list[Json]:
    if any(entry.get(_DIRECTIVE) == "replace" for entry in patch):
        return [_plain(entry) for entry in patch if entry.get(_DIRECTIVE) != "replace"]
    result = list(original)
    for entry in patch:
        if key not in entry:
            raise unprocessable(f"map: {entry} does not contain declared merge key: {key}")
        at = next((i for i, e in enumerate(result) if e.get(key) == entry[key]), None)
        if entry.get(_DIRECTIVE) == "delete":
            result = [e for e in result if e.get(key) != entry[key]]
        elif at is None:
            result.append(_plain(entry))
        else:
            result[at] = _merge_maps(result[at], entry, items)
    return result


def _apply_list_directives(result: Json, original: Json, patch: Json, schema: Schema) -> None:
    for directive, value in patch.items():
        if directive.startswith(_DELETE_PRIMITIVES):
            name = directive.removeprefix(_DELETE_PRIMITIVES)
            result[name] = [item for item in result.get(name, ()) if item not in value]
    for directive, value in patch.items():
        if directive.startswith(_ORDER):
            name = directive.removeprefix(_ORDER)
            key = member(schema, name).get("x-kubernetes-patch-merge-key")
            before = original.get(name, ())
            result[name] = _ordered(result.get(name, []), before, value, key)


def _ordered(items: list[Any], before: list[Any], order: list[Any], key: str | None) -> list[Any]:
    """Return items in the order of the client; other items keep their order."""

    def identity(item: Any) -> Any:  # noqa: ANN401 - any JSON value
        return item.get(key) if key and isinstance(item, dict) else item

    listed = [identity(item) for item in order]
    old = [identity(item) for item in before]
    named = sorted(
        (i for i in items if identity(i) in listed), key=lambda i: listed.index(identity(i))
    )
    others = [item for item in items if identity(item) not in listed]
    merged: list[Any] = []
    while named and others:
        first = identity(named[0])
        others_first = first in old and old.index(identity(others[0])) < old.index(first)
        merged.append((others if others_first else named).pop(0))
    return merged + named + others


def _plain(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Return the value that a patch adds, without directives and nulls."""
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items() if not k.startswith("$") and v is not None}
    if isinstance(value, list):
        kept = (v for v in value if not (isinstance(v, dict) and v.get(_DIRECTIVE) == "delete"))
        return [_plain(v) for v in kept]
    return value
