"""Documents in which one list, map or text is filled up to a number of bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import msgspec
from msgspec import inspect as types

Raw = Mapping[tuple[type, str], Any]
"""The types of raw JSON parts, by struct and field."""

Path = tuple[tuple[str, types.Type], ...]
"""The path from a document to a part of it: names, ``[]`` and ``{}``, each with its type."""

_DEEPEST = 12
_NUMBER = 31_415_926_535
"""Stands for the number of an entry: entries differ in nothing else, and a million are made."""
_CONTAINERS = (types.ListType, types.VarTupleType, types.DictType, types.StrType, types.RawType)


class Filler:
    """Fills documents of a type with the largest values."""

    def __init__(self, raw: Raw) -> None:
        """Fill raw parts by their types."""
        self._raw = raw
        self._made: dict[tuple[str, bool, int], list[str]] = {}

    def spots(self, kind: Any) -> Iterator[Path]:
        """Yield the way to each list, map and text."""
        yield from self._spots((("", types.type_info(kind)),), frozenset())

    def structs(self, kind: Any) -> Iterator[type]:
        """Yield all structs that a document of a kind is made of."""
        for path in self._walk((("", types.type_info(kind)),), frozenset()):
            node = _said(path[-1][1])
            if isinstance(node, types.StructType):
                yield node.cls

    def document(self, path: Path, size: int, seed: int, *, is_full: bool) -> bytes:
        """Return a document that is filled at the end of a path, about so many bytes in all.

        Args:
            path: of `spots`.
            size: in bytes.
            seed: another one makes other texts, so that nothing is remembered.
            is_full: entries say all that they can, once; or as little as they can.
        """
        before, after = self._around(path)
        room = size - len(before) - len(after) - 2
        return (before + self._fill(path[-1][1], room, seed, is_full=is_full) + after).encode()

    def _spots(self, path: Path, seen: frozenset[type]) -> Iterator[Path]:
        for found in self._walk(path, seen):
            node = _said(found[-1][1])
            if isinstance(node, _CONTAINERS) or _is_amount(found[-1][1]):
                yield found

    def _walk(self, path: Path, seen: frozenset[type]) -> Iterator[Path]:
        yield path
        node = _said(path[-1][1])
        if len(path) > _DEEPEST:
            return
        if isinstance(node, types.ListType | types.VarTupleType):
            yield from self._walk((*path, ("[]", node.item_type)), seen)
        elif isinstance(node, types.DictType):
            yield from self._walk((*path, ("{}", node.value_type)), seen)
        elif isinstance(node, types.StructType) and node.cls not in seen:
            for field in node.fields:
                below = self._type(node.cls, field)
                if below is not None:
                    yield from self._walk((*path, (field.encode_name, below)), seen | {node.cls})

    def _type(self, owner: type, field: types.Field) -> types.Type:
        if not isinstance(field.type, types.RawType):
            return field.type
        declared = next(
            (
                self._raw[each, field.name]
                for each in owner.__mro__
                if (each, field.name) in self._raw
            ),
            None,
        )
        return field.type if declared is None else types.type_info(declared)

    def unread(self, kind: Any) -> Iterator[str]:
        """Yield the paths of raw parts without a known type."""
        for path in self._walk((("", types.type_info(kind)),), frozenset()):
            if isinstance(_said(path[-1][1]), types.RawType):
                yield ".".join(name for name, _ in path)

    def _around(self, path: Path) -> tuple[str, str]:
        before, after = "", ""
        for (_, outer), (name, _) in pairwise(path):
            node = _said(outer)
            if name == "[]":
                before, after = before + "[", "]" + after
            elif name == "{}":
                before, after = before + '{"k":', "}" + after
            else:
                others = "".join(
                    f"{_text(field.encode_name)}:{self._least(field.type, 0)},"
                    for field in getattr(node, "fields", ())
                    if field.required and field.encode_name != name
                )
                before, after = f"{before}{{{others}{_text(name)}:", "}" + after
        return before, after

    def _fill(self, kind: types.Type, room: int, seed: int, *, is_full: bool) -> str:
        node = _said(kind)
        make = self._most if is_full else self._least
        if _is_amount(kind) or isinstance(node, types.StrType):
            most = getattr(node, "max_length", None) or room
            return _text("9" * max(1, min(room, most) - 2))
        if isinstance(node, types.RawType):
            return "[" + ",".join(["1"] * max(1, room // 2 - 1)) + "]"
        is_map = isinstance(node, types.DictType)
        item = node.value_type if is_map else node.item_type  # type: ignore[attr-defined]
        key = f"{is_map} {item}", is_full, seed
        entries = self._made.setdefault(key, [])
        parts = make(item, _NUMBER).split(str(_NUMBER))
        number, taken = 0, 0
        while True:
            if number == len(entries):
                entry = str(seed * 1_000_003 + number).join(parts)
                entries.append(f'"k{seed}-{number}":{entry}' if is_map else entry)
            taken += len(entries[number]) + 1
            if taken > room:
                break
            number += 1
        inside = ",".join(entries[:number])
        return f"{{{inside}}}" if is_map else f"[{inside}]"

    def has_entries(self, kind: types.Type) -> bool:
        """Return whether what fills a part can say more or less."""
        node = _said(kind)
        item = getattr(node, "item_type", None) or getattr(node, "value_type", None)
        return item is not None and isinstance(_said(item), types.StructType)

    def _least(self, kind: types.Type, number: int) -> str:
        node = _said(kind)
        if isinstance(node, types.StructType):
            inside = (
                f"{_text(field.encode_name)}:{self._least(field.type, number)}"
                for field in node.fields
                if field.required
            )
            return f"{{{','.join(inside)}}}"
        return self._scalar(kind, number) or ("{}" if isinstance(node, types.DictType) else "[]")

    def _most(self, kind: types.Type, number: int, depth: int = 0) -> str:
        node = _said(kind)
        if isinstance(node, types.StructType) and depth < _DEEPEST:
            inside = (
                f"{_text(field.encode_name)}:"
                f"{self._most(self._type(node.cls, field), number, depth + 1)}"
                for field in node.fields
            )
            return f"{{{','.join(inside)}}}"
        if isinstance(node, types.ListType | types.VarTupleType):
            return f"[{self._most(node.item_type, number, depth + 1)}]"
        if isinstance(node, types.DictType):
            return f'{{"k{number}":{self._most(node.value_type, number, depth + 1)}}}'
        return self._scalar(kind, number) or self._least(kind, number)

    def _scalar(self, kind: types.Type, number: int) -> str:
        node = _said(kind)
        if _is_amount(kind):
            return f'"{number}.5m"'
        known: dict[type, Callable[[Any], object]] = {
            types.StrType: lambda _: f"a{number}",
            types.EnumType: lambda node: next(iter(node.cls)),
            types.LiteralType: lambda node: node.values[0],
            types.BoolType: lambda _: True,
            types.IntType: lambda _: 1,
            types.FloatType: lambda _: 1,
            types.RawType: lambda _: "a",
            types.AnyType: lambda _: "a",
        }
        make = known.get(type(node))
        return "" if make is None else msgspec.json.encode(make(node)).decode()


def _said(kind: types.Type) -> types.Type:
    """Return the type of a part, without metadata and None."""
    if isinstance(kind, types.Metadata):
        return _said(kind.type)
    if isinstance(kind, types.UnionType):
        return _said(next(each for each in kind.types if not isinstance(each, types.NoneType)))
    return kind


def _is_amount(kind: types.Type) -> bool:
    """Return whether a part is a quantity, which may be a text or a number."""
    if not isinstance(kind, types.UnionType):
        return False
    return {types.StrType, types.IntType} <= {type(each) for each in kind.types}


def _text(text: str) -> str:
    return f'"{text}"'
