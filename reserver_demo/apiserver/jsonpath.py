"""The subset of JSON paths that printer columns of CRDs may use (client-go/util/jsonpath)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_STEP = re.compile(
    r"""\.(?P<name>(?:[\w-]|\\\.)+)|\[(?P<index>\d+|\*)\]|\[\?\(@\.(?P<key>\w+)\s*==\s*["'](?P<is>[^"']*)["']\)\]"""
)


def first(value: object, path: str) -> object:
    """Return the first value at a path; None if there is none.

    Raises:
        ValueError: the path has a step of another form.
    """
    found: Iterable[object] = [value]
    end = 0
    for step in _STEP.finditer(path):
        if step.start() != end:
            break
        end = step.end()
        found = [inner for each in found for inner in _inner(each, step)]
    if end != len(path):
        raise ValueError(f"{path}: no path of this form is known from {path[end:]!r} on")
    return next(iter(found), None)


def _inner(value: object, step: re.Match[str]) -> Iterator[object]:
    if step["name"] is not None:
        name = step["name"].replace("\\.", ".")
        if isinstance(value, dict) and name in value:
            yield value[name]
        return
    if not isinstance(value, list):
        return
    if step["index"] == "*":
        yield from value
    elif step["index"] is not None:
        yield from value[int(step["index"]) :][:1]
    else:
        yield from (v for v in value if isinstance(v, dict) and v.get(step["key"]) == step["is"])
