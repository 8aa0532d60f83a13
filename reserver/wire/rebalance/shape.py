"""A parsed document as a typed value, by the rules of Go's JSON decoder.

Names are compared case by case, null means absent, and what is unknown is passed over and told.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from difflib import get_close_matches
from functools import cache
from typing import Any, Generic, NamedTuple, TypeVar, cast

import msgspec
from msgspec import inspect

from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput

_ZEROS = (
    (inspect.StrType, ""),
    (inspect.BoolType, False),
    (inspect.IntType | inspect.FloatType, 0),
)
_EXPECTED: dict[type[inspect.Type], tuple[tuple[type, ...], str, str]] = {
    inspect.StructType: ((dict,), "a mapping", "write its fields below it"),
    inspect.DictType: ((dict,), "a mapping", "write NAME: VALUE below it"),
    inspect.VarTupleType: ((list,), "a list", "write each item after a dash"),
    inspect.StrType: ((str,), "a text", "write it in quotes"),
    inspect.BoolType: ((bool,), "a boolean", "write true or false"),
    inspect.IntType: ((int,), "a whole number", "write one, without quotes"),
    inspect.FloatType: ((int, float), "a number", "write one, without quotes"),
}
"""What each type takes, what that is called, and what to do about anything else."""

_MOST_NAMES = 8
_MOST_GUESSES = 100
"""Unknown fields for which a known one is sought, which takes a tenth of a millisecond each."""

_TYPE_META = frozenset({"apiVersion", "kind"})

T = TypeVar("T")


class Stray(NamedTuple):
    """A field that is not read as it stands.

    Attributes:
        path: of the field.
        is_twice: it is known and given twice; else it is unknown.
        remedy: what to write instead.
    """

    path: str
    is_twice: bool
    remedy: str


class Shaped(NamedTuple, Generic[T]):
    """A document as a value of a type.

    Attributes:
        value: None if there are problems.
        problems: fields of another type.
        strays: fields that it has besides.
    """

    value: T | None
    problems: list[InvalidInput]
    strays: list[Stray]


def shaped(value: Any, kind: type[T]) -> Shaped[T]:  # noqa: ANN401 - whatever JSON can hold
    """Return a document as a value of a type; an absent one is empty."""
    walk = _Walk()
    type_ = _type_of(cast("Hashable", kind))
    tidied = walk.tidied({} if value is None else value, type_, "")
    found = None if walk.problems else msgspec.convert(tidied, kind, strict=True)
    return Shaped(found, walk.problems, walk.strays)


@cache
def _type_of(kind: Hashable) -> inspect.Type:
    return inspect.type_info(kind)


class _Walk:
    """Tidies a value by its type, and collects what is wrong with it."""

    def __init__(self) -> None:
        self.problems: list[InvalidInput] = []
        self.strays: list[Stray] = []

    def tidied(self, value: Any, kind: inspect.Type, path: str) -> Any:  # noqa: ANN401 - as above
        """Return a value without nulls and unknown fields."""
        if isinstance(kind, inspect.UnionType):
            kind = next(each for each in kind.types if not isinstance(each, inspect.NoneType))
        misfit = _misfit(value, kind)
        if misfit:
            problem = f"{shorten(_shown(value))} is not {misfit[0]}"
            self.problems.append(InvalidInput(path, problem, misfit[1]))
        elif isinstance(kind, inspect.StructType):
            return dict(self._known(value, kind, path))
        elif isinstance(kind, inspect.DictType):
            return {
                name: self._item(each, kind.value_type, f"{path}.{shorten(name)}")
                for name, each in value.items()
            }
        elif isinstance(kind, inspect.VarTupleType):
            return [
                self._item(each, kind.item_type, f"{path}[{index}]")
                for index, each in enumerate(value)
            ]
        return value

    def _item(self, value: Any, kind: inspect.Type, path: str) -> Any:  # noqa: ANN401 - as above
        """Return an item of a list or mapping; Go reads null as the zero of its type."""
        if value is None:
            return next((zero for type_, zero in _ZEROS if isinstance(kind, type_)), {})
        return self.tidied(value, kind, path)

    def _known(
        self, value: dict[str, Any], kind: inspect.StructType, path: str
    ) -> Iterator[tuple[str, Any]]:
        types = {field.encode_name: field.type for field in kind.fields}
        above = f"{path}." if path else ""
        self.strays += (
            Stray(f"{above}{shorten(name)}", is_twice=True, remedy="remove one of them")
            for name in getattr(value, "twice", ())
        )
        for name, each in value.items():
            if name not in types:
                names = [known for known in types if known not in _TYPE_META]
                is_many = len(self.strays) >= _MOST_GUESSES
                remedy = "remove it" if is_many else _nearest(name, names)
                self.strays.append(Stray(f"{above}{shorten(name)}", is_twice=False, remedy=remedy))
            elif each is not None:
                yield name, self.tidied(each, types[name], f"{above}{name}")


def _misfit(value: Any, kind: inspect.Type) -> tuple[str, str] | None:  # noqa: ANN401 - as above
    """Return what a type takes, and a remedy, if a value is something else."""
    types, expected, remedy = _EXPECTED.get(type(kind), ((object,), "", ""))
    if not isinstance(value, types) or (isinstance(value, bool) and int in types):
        return expected, remedy
    if not isinstance(kind, inspect.IntType) or _is_within(value, kind):
        return None
    return "in range", f"write one from {kind.ge} to {kind.le}"


def _is_within(value: Any, kind: inspect.IntType) -> bool:  # noqa: ANN401 - an int
    least, most = kind.ge, kind.le
    return bool((least is None or least <= value) and (most is None or value <= most))


def _shown(value: Any) -> str:  # noqa: ANN401 - as above
    """Return a value as it is written."""
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
    """Return errors for fields that must not be there."""
    return [InvalidInput(each.path, _problem(each), each.remedy) for each in strays]


def ignored(strays: list[Stray]) -> list[InvalidInput]:
    """Return warnings for fields that nobody reads."""
    return [
        InvalidInput(each.path, f"{_problem(each)}, and {_effect(each)}", each.remedy)
        for each in strays
    ]


def _problem(stray: Stray) -> str:
    return "is given twice" if stray.is_twice else "is not a field"


def _effect(stray: Stray) -> str:
    return "only the last one counts" if stray.is_twice else "ignored"
