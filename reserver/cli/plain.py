"""The settings of `reserver serve`, read without Typer: its imports take 0.2 s of CPU.

What is plainly right is read here, by the same declarations (`settings/flags.py`) and to the
same settings.
All else is left to Typer: help, mistakes and what they are called, and other ways to write a value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import NoneType
from typing import Any, get_args

from reserver.errors import ConfigurationError
from reserver.settings.flags import Declared, declared
from reserver.settings.serve import Settings

_SWITCH = {"true": True, "1": True, "false": False, "0": False}
"""Values of a variable for a flag that takes none."""


def settings(arguments: Sequence[str], environment: Mapping[str, str]) -> Settings | None:
    """Return the settings that arguments and environment give; None where that takes Typer."""
    flags = {each.name: each for each in declared(Settings)}
    try:
        said = dict(_from_environment(flags, environment)) | _from_arguments(flags, arguments)
        values = {flags[name].field: flags[name].read(said[name]) for name in said}
        return Settings(**values, given=frozenset(values))
    except (KeyError, ValueError, ConfigurationError):
        return None


def _from_environment(
    flags: Mapping[str, Declared], environment: Mapping[str, str]
) -> Iterator[tuple[str, Any]]:
    for name, flag in flags.items():
        if text := environment.get(flag.variable or ""):
            yield name, text.split() if flag.is_repeated else _value(flag, text)


def _from_arguments(flags: Mapping[str, Declared], arguments: Sequence[str]) -> dict[str, Any]:
    said: dict[str, Any] = {}
    rest = iter(arguments)
    for argument in rest:
        name, equals, text = argument.partition("=")
        if name.startswith("--no-") or flags[name].kind is bool:
            switch = flags[name.replace("--no-", "--", 1)]
            if equals or switch.kind is not bool:
                raise ValueError(argument)
            said[switch.name] = switch.name == name
            continue
        text = text if equals else next(rest, "")
        if not text or text.startswith("-"):
            raise ValueError(argument)
        if flags[name].is_repeated:
            said.setdefault(name, []).append(text)
        else:
            said[name] = _value(flags[name], text)
    return said


def _value(flag: Declared, text: str) -> Any:  # noqa: ANN401 - of any type that flags have
    """Return Typer's value of a text; raises KeyError or ValueError where Typer has to read it."""
    if flag.flag.read is not None:
        return text
    if flag.flag.most is not None:
        return _number(text, flag.flag.most)
    kinds = [each for each in get_args(flag.kind) if each is not NoneType] or [flag.kind]
    make: Callable[[str], Any] = _MADE_BY.get(kinds[0], kinds[0])
    return make(text)


def _number(text: str, most: int) -> int:
    if not (text.isascii() and text.isdecimal() and int(text) <= most):
        raise ValueError(text)
    return int(text)


_MADE_BY: dict[Any, Callable[[str], Any]] = {bool: _SWITCH.__getitem__}
"""What makes a value of a type that does not do so itself, as paths and enumerations do."""
