"""Groups of flags: a dataclass that declares them gives a command its options."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, is_dataclass
from enum import StrEnum
from functools import wraps
from typing import Annotated, Any, TypeVar, get_args

import typer

from reserver.settings.flags import Declared, declared, staged

Group = TypeVar("Group")

_FORM = "form"
"""The parameter of `--output`."""


def with_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Add the flags that a parameter's type declares to a command, as options."""
    own = inspect.signature(command, eval_str=True).parameters
    groups: dict[str, Any] = {
        each.name: each.annotation for each in own.values() if is_dataclass(each.annotation)
    }
    shown = [each for each in own.values() if each.name not in groups]
    shown += [_option(each) for group in groups.values() for each in declared(group)]
    shown.sort(key=lambda each: each.name == _FORM)  # The others say what is shown.
    if any(_notes_given(group) for group in groups.values()):
        shown.append(_CONTEXT)
    shown = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in shown]

    @wraps(command)
    def run(**arguments: Any) -> None:  # noqa: ANN401 - whatever the command takes
        said = _said(arguments.get(_CONTEXT.name))
        given = {name: taken(group, arguments, said) for name, group in groups.items()}
        others = {name: arguments[name] for name in own.keys() - groups}
        command(**given, **others)

    run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in shown}
    return run


def taken(group: type[Group], arguments: Mapping[str, Any], said: Collection[str] = ()) -> Group:
    """Return a dataclass of flags filled with a command's arguments.

    Args:
        group: the dataclass; its field `given`, if any, gets its own fields among `said`.
        arguments: the arguments by field, with defaults.
        said: the fields with a flag or a variable.

    Raises:
        ConfigurationError: a value cannot be read, or cannot work.
    """
    given = ((each, arguments.get(each.field)) for each in declared(group))
    values = {each.field: each.read(value) for each, value in given if value is not None}
    if _notes_given(group):
        values["given"] = frozenset(values).intersection(said)
    return group(**values)


_CONTEXT = inspect.Parameter("_context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
"""With it, Typer hands over how each argument came to its value."""


def _notes_given(group: Any) -> bool:  # noqa: ANN401 - a dataclass
    """Return whether a group of flags notes which of them were given."""
    return any(field.name == "given" for field in fields(group))


def _said(context: typer.Context | None) -> list[str]:
    """Return the arguments of which an option or a variable was given."""
    if context is None:
        return []
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return [name for name, source in sources.items() if source and "DEFAULT" not in source.name]


def _option(declared: Declared) -> inspect.Parameter:
    flag, kind, default = declared.flag, declared.kind, declared.default
    if declared.is_repeated:
        each = get_args(kind)[0]
        is_choice = isinstance(each, type) and issubclass(each, StrEnum)
        kind, default = list[each] if is_choice else list[str], list(default)  # type: ignore[valid-type]
    elif flag.read is not None:
        kind, default = str, ""
    text = staged(flag.in_file, flag.help)
    if declared.is_repeated:
        text += " May be repeated."
    is_deprecated = flag.in_file is not None and not flag.in_file.keeps_flag
    if flag.in_file is not None and is_deprecated:
        text += f" Deprecated: write {flag.in_file.path} in the file of --config."
    names = declared.name
    if kind == bool | None or (kind is bool and (flag.in_environment or default)):
        names += f"/--no-{names.removeprefix('--')}"  # What was said before can be taken back.
    option = typer.Option(
        *filter(None, (names, flag.short)),
        envvar=declared.variable,
        metavar=flag.metavar,
        min=flag.least if flag.most is None else 0,
        max=flag.most,
        hidden=is_deprecated,
        case_sensitive=False,
        autocompletion=flag.complete,
        rich_help_panel=flag.panel,
        help=text,
    )
    return inspect.Parameter(
        declared.field,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[kind, option],
    )
