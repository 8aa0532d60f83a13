"""Help texts of commands.

Plain text that wraps at the terminal's width: no flag is cut off, whatever the width. A docstring
may end with `Examples:`, whose lines stay as they are.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from reserver.cli import jsonpath, usage_errors
from reserver.cli.failure import ExitStatus, WrongUsage
from reserver.cli.flag_groups import with_flags
from reserver.cli.target import CONNECTION
from reserver.cli.usage_errors import kind, reported
from reserver.errors import InvalidInput

_EXAMPLES = "Examples:\n"
_ALONE = {"dry_run": ("--dry-run", "client"), "wait": ("--wait", "10m")}
"""Options that may be given without a value, by parameter, with the value that they have then."""

_NOT_GIVEN: tuple[object, ...] = (None, "", (), [], False)
_MOST_COLUMNS = 120
_WIDE = 96
"""Columns from which long names of options have their text on the same line."""


Action = TypeVar("Action", bound=Callable[..., Any])


class Help(NamedTuple):
    """The parts of a command's docstring.

    Attributes:
        text: the description.
        examples: lines of a shell; may be empty.
    """

    text: str
    examples: str

    @classmethod
    def of(cls, command: Any) -> Help:  # noqa: ANN401 - Typer's own
        """Return the help in a command's docstring."""
        text, _, examples = inspect.cleandoc(command.help or "").partition(_EXAMPLES)
        return cls(text.strip(), inspect.cleandoc(examples))

    @property
    def first_sentence(self) -> str:
        """The first paragraph's first sentence."""
        paragraph = " ".join(self.text.partition("\n\n")[0].split())
        return f"{paragraph.partition('. ')[0].rstrip('.')}."


def names(parameter: Any) -> str:  # noqa: ANN401 - Typer's own
    """Return the names of a parameter, with the placeholder of its value."""
    if parameter.param_type_name == "argument":
        return kind(parameter)
    opts = sorted([*parameter.opts, *parameter.secondary_opts], key=lambda each: each[:2] == "--")
    shown, value = ", ".join(opts), kind(parameter)
    return (
        f"{shown}[={value}]" if value and parameter.name in _ALONE else f"{shown} {value}".rstrip()
    )


def default(parameter: Any) -> str:  # noqa: ANN401 - as above
    """Return the default of a parameter; empty if it has none."""
    value = parameter.default
    if parameter.name == "help" or any(value is each or value == each for each in _NOT_GIVEN):
        return ""
    each = value if isinstance(value, list | tuple) else [value]
    return ", ".join(str(getattr(one, "value", one)) for one in each)


def _row(parameter: Any) -> tuple[str, str]:  # noqa: ANN401 - as above
    """Return a parameter's names, on and off in one, and all that is said of it."""
    more = []
    if parameter.required:
        more.append("[required]")
    if parameter.envvar and not _has_plain_variable(parameter):
        more.append(f"[env: {parameter.envvar}]")
    if value := default(parameter):
        more.append(f"[default: {value}]")
    off = "".join(f", {each}" for each in parameter.secondary_opts)
    name = (
        names(parameter).replace(off, "").replace("--", "--[no-]", 1) if off else names(parameter)
    )
    return name, "  ".join([parameter.help or "", *more])


def _has_plain_variable(parameter: Any) -> bool:  # noqa: ANN401 - as above
    """Return whether a variable may give an option that has the option's name."""
    name = max(parameter.opts, key=len).removeprefix("--").replace("-", "_").upper()
    return bool(parameter.envvar == f"RESERVER_{name}")


def _notes(parameters: Iterable[Any]) -> Iterator[str]:
    """Yield the notes that apply to several options."""
    options = [each for each in parameters if each.param_type_name == "option"]
    if plain := next(filter(_has_plain_variable, options), None):
        yield (
            f"Variables give options, too: {plain.envvar} for {max(plain.opts, key=len)}, and so "
            "on; separate several values by spaces."
        )
    if any(each.hidden for each in options):
        yield (
            "All else is a field of the file of --config (docs/configuration.md). The flags that "
            "these fields replace still work: docs/cli-reference.md lists them."
        )


def _sections(parts: Iterable[tuple[str, tuple[str, str]]]) -> dict[str, list[tuple[str, str]]]:
    """Return rows by the title that they stand under, options without one of their own last."""
    sections: dict[str, list[tuple[str, str]]] = {}
    for title, row in parts:
        sections.setdefault(title, []).append(row)
    return dict(sorted(sections.items(), key=lambda each: each[0] == "Options"))


class _Formatted:
    """The help of a command or of a group of commands."""

    def format_help_text(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401, ARG002 - Typer's
        """Write the text, then the examples."""
        text, examples = Help.of(self)
        formatter.write_paragraph()
        formatter.write_text(text)
        if examples:
            with formatter.section("Examples"):
                for line in examples.splitlines():
                    formatter.write(f"  {line}\n")

    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - as above
        """Write commands and options under their headings."""
        commands = getattr(self, "commands", {})
        rows = [
            (each.rich_help_panel or "Commands", (name, Help.of(each).first_sentence))
            for name, each in commands.items()
        ]
        own = self.get_params(ctx)  # type: ignore[attr-defined]
        rows += [
            (each.rich_help_panel or f"{each.param_type_name.capitalize()}s", _row(each))
            for each in sorted(own, key=lambda each: each.param_type_name)
            if not each.hidden
        ]
        sections = _sections(rows)
        is_shown = getattr(self, "name", "") == "options"
        notes = list(_notes(each for each in own if is_shown or each.rich_help_panel != CONNECTION))
        has_connection = not is_shown and bool(sections.pop(CONNECTION, []))
        if has_connection:
            notes.append("`reserver options` shows the options for the connection.")
        for title, found in sections.items():
            with formatter.section(title):
                formatter.write_dl(found, col_max=32 if formatter.width >= _WIDE else 26)
        for note in notes:
            formatter.write_paragraph()
            formatter.write_text(note)


class Command(_Formatted, TyperCommand):
    """A command."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - as above
        """Read arguments; give options of `_ALONE` their value, as kubectl does."""
        own = dict(_ALONE[each.name] for each in self.params if each.name in _ALONE and kind(each))
        args = [f"{each}={own[each]}" if each in own else each for each in args]
        try:
            args = jsonpath.without_template(args)
        except InvalidInput as exc:
            raise WrongUsage(f"--output: jsonpath: {exc}") from exc
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ANN401 - as above
        """Return the parts of the usage line after the command's name."""
        pieces = ["[OPTIONS]"]
        for each in self.get_params(ctx):
            if each.param_type_name == "argument":
                name = f"{kind(each).rstrip('.')}..." if each.nargs != 1 else kind(each)
                pieces.append(name if each.required else f"[{name}]")
        return pieces


class Deferred(Command):
    """A command that is known by its name and summary until it is called."""

    def __init__(self, name: str, summary: str, panel: str, load: Callable[[str], Any]) -> None:
        super().__init__(name, help=summary, rich_help_panel=panel)
        self._load = load

    def loaded(self) -> Any:  # noqa: ANN401 - Typer's own
        """Import the command and return it."""
        return self._load(str(self.name))


class CommandGroup(_Formatted, TyperGroup):
    """Commands under a name, which reports wrong usage in one line."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - as above
        """Show help if nothing is given."""
        if not (args or self.invoke_without_command or ctx.resilient_parsing):
            typer.echo(ctx.get_help(), err=True)
            raise typer.Exit(ExitStatus.USAGE)
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 - as above
        """Return the command that arguments name, and the arguments that remain."""
        outer = ctx.command_path.removeprefix(ctx.find_root().command_path)
        is_known = ctx.resilient_parsing or args[0] in self.commands
        if not is_known and (hint := usage_errors.hint(outer.strip(), args[0])):
            raise WrongUsage(hint)
        name, command, rest = super().resolve_command(ctx, args)
        return name, command.loaded() if isinstance(command, Deferred) else command, rest

    def make_context(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as above
        """Read the options before a command."""
        with reported():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 - as above
        """Read a command's options, and run it."""
        with reported():
            return super().invoke(ctx)


class App(typer.Typer):
    """Commands with the help and the errors of this module."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - Typer's own
        super().__init__(
            add_completion=False,
            rich_markup_mode=None,
            pretty_exceptions_enable=False,
            context_settings={"max_content_width": _MOST_COLUMNS},
            **{"cls": CommandGroup} | settings,
        )

    def command(self, *args: Any, **kwargs: Any) -> Callable[[Action], Action]:  # noqa: ANN401
        """Add a command, with an option for each flag that its parameters' types declare."""
        add = super().command(*args, **{"cls": Command} | kwargs)

        def added(action: Action) -> Action:
            add(with_flags(action))
            return action

        return added

    def callback(self, *args: Any, **kwargs: Any) -> Callable[[Action], Action]:  # noqa: ANN401
        """Set the action of the group itself, with options as `command` adds them."""
        add = super().callback(*args, **kwargs)

        def added(action: Action) -> Action:
            add(with_flags(action))
            return action

        return added


def tree(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:  # noqa: ANN401
    """Yield a command and all below it, each with its words."""
    own = command.loaded() if isinstance(command, Deferred) else command
    yield path, own
    for name, each in getattr(own, "commands", {}).items():
        yield from tree(each, (*path, name))


def runs(command: Any) -> bool:  # noqa: ANN401 - as above
    """Return whether a command does something by itself, without one below it."""
    return bool(getattr(command, "invoke_without_command", True))
