"""Mutations that know JSON and YAML: most random bytes would fail at the first brace."""

from __future__ import annotations

import json
import random
from typing import Any

import yaml

VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**53, 2**63, 2**64, -(2**63), 10**30, 10**100),
    *(0.5, 1e308, -1e-308, 1e19, "", " ", "0", "-1", "1e3", "1e41", "1E", "9e40", ".5", "5.", "+1"),
    *("100m", "1Gi", "1n", "0.0000000001", "9" * 64, "9" * 5000, "0x1F", "1_000", "١٢", "NaN"),
    *("1h", "0", "1h30m", "0.5ms", "-1s", "999999999h", "1d", "24H"),
    *("2030-01-01T00:00:00Z", "2030-01-01T00:00:00+23:59", "0001-01-01T00:00:00+23:59"),
    *("9999-12-31T23:59:59-23:59", "2030-01-01", "2030-02-30T00:00:00Z", "2030-W01-1T00:00Z"),
    *(1899999999, 1899999999000, 253402300800, "1899999999"),
    *("Prefer", "Require", "Active", "Always", "ADDED", "DELETED", "BOOKMARK", "ERROR"),
    *("a", "A", "a.b", "a/b", "-", ".", "..", "a" * 63, "a" * 64, "a" * 254, "é", "😀", "\0", "\n"),
    *("\ud800", "[", "{", "]", "~", "~1", "&a", "*a", "!!python/object:os.system", "%YAML 1.1"),
    *("cpu", "memory", "pods", "nvidia.com/gpu", "hugepages-2Mi", "kubernetes.io/x", "x/"),
    *([], {}, [[]], [{}], {"": ""}, [None], {"pod": None}),
)
"""Values that programs often handle badly."""

_TOKENS: tuple[str, ...] = (
    *'{}[],:"-\n #|>&*!%@`~',
    "---\n",
    "...\n",
    "\\u0000",
    "\\ud800",
    "\r\n",
    "\t",
    "\ufeff",
)
_DEEPEST = 3000
_MOST_COPIES = 100
_MOST_YAML = 2000  # characters


def mutate(raw: bytes, rng: random.Random, most: int) -> bytes | None:
    """Return a document changed in one to three places; None if it is none, or gets too large."""
    document = _parse(raw)
    if document is None:
        return None
    for _ in range(rng.randint(1, 3)):
        document = _changed(document, rng)
    mutated = _write(document, rng).encode(errors="surrogatepass")
    return mutated if len(mutated) <= most else None


def _parse(raw: bytes) -> Any:  # noqa: ANN401 - JSON
    try:
        document = json.loads(raw)
        json.dumps(document)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict | list) else None


def _changed(value: Any, rng: random.Random) -> Any:  # noqa: ANN401 - JSON
    """Return a value with something changed in it; it is not changed itself."""
    if isinstance(value, dict) and value and rng.random() < 0.8:  # noqa: PLR2004
        key = rng.choice(list(value))
        return _changed_object(value, key, rng)
    if isinstance(value, list) and value and rng.random() < 0.8:  # noqa: PLR2004
        at = rng.randrange(len(value))
        return _changed_list(value, at, rng)
    if isinstance(value, str) and rng.random() < 0.7:  # noqa: PLR2004
        return _changed_text(value, rng)
    return rng.choice((lambda: rng.choice(VALUES), lambda: _nested(value, rng)))()


def _changed_object(value: dict[str, Any], key: str, rng: random.Random) -> dict[str, Any]:
    what = rng.randrange(12)
    if what == 0:
        return {other: each for other, each in value.items() if other != key}
    if what == 1:  # Another field's value.
        return {**value, key: value[rng.choice(list(value))]}
    if what == 2:  # Another name.  # noqa: PLR2004
        return {_changed_text(k, rng) if k == key else k: each for k, each in value.items()}
    if what == 3:  # Many more.  # noqa: PLR2004
        return {**value, **{f"{key}{n}": value[key] for n in range(_copies(rng))}}
    return {**value, key: _changed(value[key], rng)}


def _changed_list(value: list[Any], at: int, rng: random.Random) -> list[Any]:
    what = rng.randrange(8)
    if what == 0:
        return value[:at] + value[at + 1 :]
    if what == 1:
        return value[:at] + [value[at]] * _copies(rng) + value[at:]
    if what == 2:  # noqa: PLR2004
        return [*value, rng.choice(VALUES)]
    return [*value[:at], _changed(value[at], rng), *value[at + 1 :]]


def _changed_text(text: str, rng: random.Random) -> str:
    inner = _parse(text.encode(errors="surrogatepass")) if text[:1] in {"{", "["} else None
    if inner is not None and rng.random() < 0.8:  # noqa: PLR2004
        return _write(_changed(inner, rng), rng)
    what = rng.randrange(4)
    if what == 0:
        return str(rng.choice(VALUES))
    start = rng.randint(0, len(text))
    if what == 1:
        return text[:start] + rng.choice(_TOKENS) + text[start:]
    end = rng.randint(start, min(len(text), start + 8))
    middle = text[start:end] * rng.randint(2, 50) if what == 2 else ""  # noqa: PLR2004
    return text[:start] + middle + text[end:]


def _copies(rng: random.Random) -> int:
    """Return a number of copies, mostly a small one: large inputs are slow."""
    return int(_MOST_COPIES ** rng.random())


def _nested(value: Any, rng: random.Random) -> Any:  # noqa: ANN401 - JSON
    is_list = rng.random() < 0.5  # noqa: PLR2004
    for _ in range(int(_DEEPEST ** (rng.random() ** 3))):
        value = [value] if is_list else {"a": value}
    return value


def _write(document: Any, rng: random.Random) -> str:  # noqa: ANN401 - JSON
    """Return a document as JSON, now and then with a name twice, or as YAML."""
    try:
        text: str = json.dumps(document, ensure_ascii=rng.random() < 0.5)  # noqa: PLR2004
        if len(text) < _MOST_YAML and rng.random() < 0.1:  # noqa: PLR2004
            flow = rng.choice((True, False))
            dumped = yaml.dump(json.loads(text), Dumper=yaml.CSafeDumper, default_flow_style=flow)
            return str(dumped)
    except (RecursionError, UnicodeEncodeError, yaml.YAMLError):
        return "[" * _DEEPEST
    if isinstance(document, dict) and document and rng.random() < 0.1:  # noqa: PLR2004
        name = json.dumps(rng.choice(list(document)))
        return text[:-1] + f", {name}: 1}}"
    return text
