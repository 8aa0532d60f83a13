"""Inputs of a mebibyte where a line belongs: whoever may write an object may write these."""

from __future__ import annotations

import json
from collections.abc import Callable

from hack.fuzz import shapes

_LARGE = 1_000_000  # just below what the API server takes
_SPEC = json.dumps(shapes.SPEC)


def _key(text: str) -> bytes:
    """Return a value as the key of a store that a watch shows: all that others write comes so."""
    store = {"metadata": shapes.METADATA, "data": {"worker-1": text}}
    return json.dumps([{"type": "ADDED", "object": store}]).encode()


GIANTS: dict[str, Callable[[], bytes]] = {
    "deep-list": lambda: b"[" * _LARGE,
    "deep-object": lambda: b'{"a":' * (_LARGE // 5),
    "deep-value": lambda: b'[{"type":"ADDED","object":' + b"[" * 100_000 + b"]" * 100_000 + b"}]",
    "digits": lambda: b"9" * _LARGE,
    "spaces": lambda: b" " * _LARGE + b"{}",
    "item-list": lambda: json.dumps([shapes.SHORT_ITEM] * 8_000).encode(),
    "junk-list": lambda: b"[" + b"0," * (_LARGE // 2) + b"0]",
    "long-name": lambda: _SPEC.replace("web-0", "a" * _LARGE).encode(),
    "long-dots": lambda: _SPEC.replace("web-0", "a." * (_LARGE // 2)).encode(),
    "many-owners": lambda: json.dumps(
        {**shapes.SPEC, "owners": shapes.SPEC["owners"] * 8_000}
    ).encode(),
    "many-fields": lambda: json.dumps({f"f{number}": 0 for number in range(60_000)}).encode(),
    "yaml-deep": lambda: b"- " * 30_000,
    "yaml-braces": lambda: b"a: " + b"{" * 60_000,
    "yaml-aliases": lambda: b"a: &a [x]\n" + b"b: [*a, *a, *a, *a]\n" * 3_000,
    "yaml-long": lambda: b"a: b\n" * 13_000,
    "yaml-question": lambda: b"? " * 30_000,
    "yaml-quote": lambda: b'"' + b"\\n" * 30_000,
    "store-deep": lambda: _key("[" * _LARGE),
    "store-digits": lambda: _key('{"slots": ' + "9" * _LARGE + "}"),
    "store-items": lambda: _key(json.dumps([shapes.SHORT_ITEM] * 8_000)),
    "store-yaml": lambda: _key("- " * 30_000),
}
"""By name, what makes each."""
