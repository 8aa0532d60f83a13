"""JSON patch (RFC 6902) and JSON merge patch (RFC 7386), as in the API server."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from reserver_demo.apiserver.status import Json, StatusError, bad_request, too_large, unprocessable

MAX_OPERATIONS = 10_000
"""Most operations in one JSON patch (apiserver/pkg/endpoints/handlers/patch.go)."""

_APPEND = "-"


def merge_patch(document: Any, patch: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Return the document with a merge patch applied: null removes, lists are replaced."""
    if not isinstance(patch, dict):
        return patch
    result = dict(document) if isinstance(document, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result


def json_patch(document: Json, patch: object) -> Json:
    """Return the document with a JSON patch applied; all of its operations or none.

    Raises:
        StatusError: 400 for a malformed patch, 413 for too many operations, 422 for an operation
            that fails, including a `test`.
    """
    if not isinstance(patch, list) or not all(isinstance(item, dict) for item in patch):
        raise bad_request("json: cannot unmarshal patch into Go value of type jsonpatch.Patch")
    if len(patch) > MAX_OPERATIONS:
        raise too_large(
            f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(patch)}"
        )
    result = copy.deepcopy(document)
    for operation in patch:
        _apply(result, operation)
    return result


def _apply(document: Json, operation: Mapping[str, Any]) -> None:
    kind, path = operation.get("op"), operation.get("path")
    if not isinstance(path, str) or not path.startswith("/"):
        raise unprocessable(f"{kind} operation does not apply: no path")
    parent, key = _locate(document, path)
    match kind:
        case "add":
            _add(parent, key, copy.deepcopy(operation.get("value")))
        case "remove":
            _remove(parent, key)
        case "replace":
            _replace(parent, key, copy.deepcopy(operation.get("value")))
        case "test":
            _test(parent, key, operation.get("value"), path)
        case "move" | "copy":
            source, source_key = _locate(document, str(operation.get("from")))
            value = copy.deepcopy(_require(source, source_key))
            if kind == "move":
                _remove(source, source_key)
            _add(parent, key, value)
        case _:
            raise unprocessable(f"Unexpected kind: {kind}")


def _locate(document: Json, path: str) -> tuple[Any, str]:
    *steps, last = (part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:])
    here: Any = document
    for step in steps:
        here = _require(here, step)
    return here, last


def _require(container: Any, key: str) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(container, dict) and key in container:
        return container[key]
    if isinstance(container, list):
        return container[_index(container, key)]
    raise _missing(key)


def _index(container: Sequence[Any], key: str, *, end: int = 0) -> int:
    if not key.isdecimal() or int(key) >= len(container) + end:
        raise unprocessable(f"Unable to access invalid index: {key}: invalid index referenced")
    return int(key)


def _missing(key: str) -> StatusError:
    return unprocessable(f"doc is missing key: {key}: missing value")


def _add(parent: Any, key: str, value: object) -> None:  # noqa: ANN401 - any JSON value
    if isinstance(parent, list):
        index = len(parent) if key == _APPEND else _index(parent, key, end=1)
        parent.insert(index, value)
    elif isinstance(parent, dict):
        parent[key] = value
    else:
        raise _missing(key)


def _remove(parent: Any, key: str) -> None:  # noqa: ANN401 - any JSON value
    _require(parent, key)
    if isinstance(parent, list):
        del parent[int(key)]
    else:
        del parent[key]


def _replace(parent: Any, key: str, value: object) -> None:  # noqa: ANN401 - any JSON value
    """Replace a value; an absent key is added (evanphx/json-patch v4)."""
    if isinstance(parent, list):
        parent[_index(parent, key)] = value
    else:
        _add(parent, key, value)


def _test(parent: Any, key: str, expected: object, path: str) -> None:  # noqa: ANN401 - any JSON value
    """Compare a value; an absent key equals null (evanphx/json-patch v4)."""
    found = parent.get(key) if isinstance(parent, dict) else _require(parent, key)
    if found != expected:
        raise unprocessable(f"testing value {path} failed: test failed")
