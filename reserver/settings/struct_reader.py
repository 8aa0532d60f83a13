"""Converts a parsed document to a struct in one walk, with the paths of all problems.

Null means absent. An unknown field is a stray, which the caller refuses or ignores.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from typing import Any, NamedTuple, TypeVar, cast

from msgspec import inspect

from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput

_EXPECTED: Mapping[type[inspect.Type], tuple[tuple[type, ...], str, str]] = {
    inspect.StructType: ((dict,), "a mapping", "write its fields below it"),
    inspect.DictType: ((dict,), "a mapping", "write NAME: VALUE below it"),
    inspect.VarTupleType: ((list,), "a list", "write each item after a dash"),
    inspect.FrozenSetType: ((list,), "a list", "write each item after a dash"),
    inspect.StrType: ((str,), "a text", "write it in quotes"),
    inspect.EnumType: ((str,), "a text", "write it in quotes"),
    inspect.BoolType: ((bool,), "a boolean", "write true or false"),
    inspect.IntType: ((int,), "a whole number", "write one, without quotes"),
    inspect.FloatType: ((int, float), "a number", "write one, without quotes"),
}
"""The accepted Python types of each type, their name in messages, and the remedy."""

_ZEROS: Mapping[type[inspect.Type], Any] = {
    inspect.StrType: "",
    inspect.BoolType: False,
    inspect.IntType: 0,
    inspect.FloatType: 0.0,
}
"""The value of null as an item of a list or mapping, as upstream; else an empty mapping."""

_MOST_NAMES = 8
_MOST_GUESSES = 100
"""Most unknown fields that get a suggestion, which takes 0.1 ms each."""

_TYPE_META = frozenset({"apiVersion", "kind"})

T = TypeVar("T")


class Stray(NamedTuple):
    """An unknown field.

    Attributes:
        path: the path of the field.
        remedy: the remedy, in words.
    """

    path: str
    remedy: str


class Walk:
    """Converts values to their types, and collects their problems.

    Attributes:
        problems: the values that do not fit their fields.
        strays: the unknown fields.
    """

    def __init__(self, readers: Readers) -> None:
        """Begin without problems; `readers` convert the types that are marked for them."""
        self.problems: list[InvalidInput] = []
        self.strays: list[Stray] = []
        self._readers = readers

    def read(self, value: Any, kind: type[T]) -> T | None:  # noqa: ANN401 - whatever JSON can hold
        """Return a document as a struct, with None as an empty document; None on problems."""
        try:
            found = self.struct({} if value is None else value, kind, "")
        except InvalidInput as exc:
            self.problems.append(exc)
        return None if self.problems else found

    def struct(self, value: Any, kind: type[T], path: str) -> T:  # noqa: ANN401 - as above
        """Return a mapping as a struct; a field with a problem gets its default.

        Raises:
            InvalidInput: the value is not a mapping.
        """
        return cast("T", self._value(value, _type_of(cast("Hashable", kind)), path))

    def text(self, value: Any, path: str) -> str:  # noqa: ANN401 - as above
        """Return a text.

        Raises:
            InvalidInput: the value is not a text.
        """
        return str(self._value(value, inspect.StrType(), path))

    def _value(self, value: Any, kind: inspect.Type, path: str) -> Any:  # noqa: ANN401 - as above
        if isinstance(kind, inspect.UnionType):
            kind = next(each for each in kind.types if not isinstance(each, inspect.NoneType))
        if isinstance(kind, inspect.Metadata):
            return self._readers[(kind.extra or {})["reader"]](self, value, path)
        if isinstance(kind, inspect.AnyType):
            return value
        _check(value, kind, path)
        if isinstance(kind, inspect.StructType):
            return kind.cls(**dict(self._fields(value, kind, path)))
        if isinstance(kind, inspect.EnumType):
            return kind.cls(value)
        return self._collection(value, kind, path)

    def _collection(self, value: Any, kind: inspect.Type, path: str) -> Any:  # noqa: ANN401 - as above
        """Return a list or mapping with converted items; any other value unchanged."""
        if isinstance(kind, inspect.DictType):
            named = ((name, each, f"{path}.{shorten(name)}") for name, each in value.items())
            return dict(self._items(named, kind.value_type))
        if isinstance(kind, inspect.VarTupleType | inspect.FrozenSetType):
            numbered = ((at, each, f"{path}[{at}]") for at, each in enumerate(value))
            items = (item for _, item in self._items(numbered, kind.item_type))
            return tuple(items) if isinstance(kind, inspect.VarTupleType) else frozenset(items)
        return value

    def _items(
        self, items: Iterator[tuple[Any, Any, str]], kind: inspect.Type
    ) -> Iterator[tuple[Any, Any]]:
        for key, value, path in items:
            given = _ZEROS.get(type(kind), {}) if value is None else value
            try:
                yield key, self._value(given, kind, path)
            except InvalidInput as exc:
                self.problems.append(exc)

    def _fields(
        self, value: dict[str, Any], kind: inspect.StructType, path: str
    ) -> Iterator[tuple[str, Any]]:
        fields = {field.encode_name: field for field in kind.fields}
        above = f"{path}." if path else ""
        for name, each in value.items():
            if name not in fields:
                known = [known for known in fields if known not in _TYPE_META]
                is_many = len(self.strays) >= _MOST_GUESSES
                remedy = "remove it" if is_many else _nearest(name, known)
                self.strays.append(Stray(f"{above}{shorten(name)}", remedy))
            elif each is not None and not _is_unset(each, fields[name].type):
                try:
                    yield fields[name].name, self._value(each, fields[name].type, f"{above}{name}")
                except InvalidInput as exc:
                    self.problems.append(exc)


Reader = Callable[[Walk, Any, str], Any]
"""Converts the value at a path; raises InvalidInput."""

Readers = Mapping[str, Reader]
"""Readers by the names of type annotations."""


@cache
def _type_of(kind: Hashable) -> inspect.Type:
    return inspect.type_info(kind)


def _is_unset(value: Any, kind: inspect.Type) -> bool:  # noqa: ANN401 - as above
    """Return whether a value is an empty text for an optional enum, which upstream ignores."""
    return (
        value == ""
        and isinstance(kind, inspect.UnionType)
        and any(isinstance(each, inspect.EnumType) for each in kind.types)
    )


def _check(value: Any, kind: inspect.Type, path: str) -> None:  # noqa: ANN401 - as above
    """Refuse a value that does not fit a type."""
    types, expected, remedy = _EXPECTED[type(kind)]
    if not isinstance(value, types) or (isinstance(value, bool) and int in types):
        raise InvalidInput(path, f"{shorten(_shown(value))} is not {expected}", remedy)
    if isinstance(kind, inspect.IntType) and not _is_within(value, kind):
        remedy = f"write one from {kind.ge} to {kind.le}"
        raise InvalidInput(path, f"{shorten(_shown(value))} is not in range", remedy)
    if isinstance(kind, inspect.EnumType) and value not in set(kind.cls):
        known = ", ".join(each.value for each in kind.cls)
        raise InvalidInput(path, f"{shorten(repr(value))} is not known", f"write {known}")


def _is_within(value: Any, kind: inspect.IntType) -> bool:  # noqa: ANN401 - an int
    least, most = kind.ge, kind.le
    return bool((least is None or least <= value) and (most is None or value <= most))


def _shown(value: Any) -> str:  # noqa: ANN401 - as above
    """Return a value for a message."""
    kinds = {dict: "a mapping", list: "a list", bool: str(value).lower()}
    return next((text for kind, text in kinds.items() if isinstance(value, kind)), repr(value))


def _nearest(name: str, names: list[str]) -> str:
    by_case = {each.lower(): each for each in names}
    near = get_close_matches(name.lower()[:100], by_case, n=1, cutoff=0.7)
    if near:
        return f"write {by_case[near[0]]}"
    more = ", …" if len(names) > _MOST_NAMES else ""
    return f"remove it; known are {', '.join(names[:_MOST_NAMES])}{more}"


def refused(strays: list[Stray]) -> list[InvalidInput]:
    """Return errors for unknown fields."""
    return [InvalidInput(each.path, "is not a field", each.remedy) for each in strays]


def ignored(strays: list[Stray]) -> list[InvalidInput]:
    """Return warnings for unknown fields."""
    return [InvalidInput(each.path, "is not a field, and ignored", each.remedy) for each in strays]
