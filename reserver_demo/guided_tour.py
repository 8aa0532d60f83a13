"""`reserver demo --tour`: the user types each command, and the tour checks its effect."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

from reserver.cli import failure, interrupt
from reserver.cli.terminal import typed_line
from reserver.errors import ApiError
from reserver_demo import workdir
from reserver_demo.lessons import Lesson, lessons, set_up
from reserver_demo.run import Demo, comes_true, started
from reserver_demo.scenario import Stage
from reserver_demo.scene import node_rows
from reserver_demo.view import node_table

_PATIENCE_S = 5.0
_CANNOT_RUN = 126
_HELP = "Type this, or press Enter to have it typed; `skip` goes on, `quit` ends:"


class _EndedError(Exception):
    """The user ends the tour."""


@dataclass(slots=True)
class _Typing:
    """The user's input, line by line; Ctrl-C and the end of the input end the tour."""

    stop: asyncio.Event

    async def line(self) -> str:
        """Return the next line.

        Raises:
            _EndedError: the input has ended, or Ctrl-C was pressed.
        """
        reading = asyncio.ensure_future(typed_line())
        stopping = asyncio.ensure_future(self.stop.wait())
        try:
            await asyncio.wait({reading, stopping}, return_when=asyncio.FIRST_COMPLETED)
            text = "" if self.stop.is_set() else await reading
        finally:
            reading.cancel()
            stopping.cancel()
        if not text:
            raise _EndedError
        return text.strip()

    async def run(self, command: str, variables: dict[str, str]) -> int:
        """Run a command in a shell, on this terminal; return its exit status."""
        path = f"{variables['PATH']}:{os.environ['PATH']}"
        try:
            process = await asyncio.create_subprocess_exec(
                "sh", "-c", command, env={**os.environ, **variables, "PATH": path}
            )
        except (OSError, ValueError) as exc:  # The line is too long, or has a NUL.
            failure.report(f"this line cannot be run: {exc}; type another one")
            return _CANNOT_RUN
        with interrupt.elsewhere():
            return await process.wait()


async def tour(console: Console) -> bool:
    """Run the tour; return whether the user has completed it."""
    with workdir.demo_folder() as folder:
        workdir.write_pod(folder, "web-0", {"name": "web-0"}, "4")
        workdir.write_pod(folder, "stranger", {"name": "stranger"}, "4")
        async with started(folder, console) as demo:
            typing = _Typing(asyncio.Event())
            stage = Stage(demo.cluster, demo.reserver.assembly)
            await set_up(stage)
            await comes_true(stage.fillers_are_seen)
            try:
                with interrupt.handing(typing.stop.set):
                    await _give(demo, lessons(stage), typing, folder)
            except _EndedError:
                console.print("\nThe tour is over, and its cluster is gone.")
                return False
    console.print("[bold]That was the tour.[/] `reserver demo` plays on its own and stays up;")
    console.print("docs/reservations.md has all that a reservation can say.")
    return True


async def _give(demo: Demo, all_lessons: tuple[Lesson, ...], typing: _Typing, folder: Path) -> None:
    variables = workdir.environment(folder, demo.cluster.url, str(demo.reserver.grpc_address))
    for number, lesson in enumerate(all_lessons, start=1):
        console = demo.console
        console.rule(Text(f"{number} of {len(all_lessons)}: {lesson.title}", "bold"), align="left")
        console.print(lesson.text)
        console.print(node_table(list(node_rows(demo.reserver.assembly.state)), console.width))
        console.print(_HELP)
        console.print(Text(f"  {lesson.command}", "cyan"))
        while not await _tried(demo, lesson, typing, variables):
            console.print(Text(f"✗ Not yet. Try: {lesson.command}", "red"))
        console.print()


async def _tried(demo: Demo, lesson: Lesson, typing: _Typing, variables: dict[str, str]) -> bool:
    """Run the user's command; return whether the lesson is completed."""
    console = demo.console
    console.print("$ ", end="")
    typed = await typing.line()
    if typed == "quit":
        raise _EndedError
    if typed == "skip":
        return True
    if typed in {"help", "?"}:
        console.print(_HELP)
        return False
    if not typed:
        typed = lesson.command
        console.print(Text(f"$ {typed}"), soft_wrap=True)
    status = await typing.run(typed, variables)

    async def came_true() -> bool:
        try:
            return lesson.is_about(typed) and await lesson.came_true(status)
        except ApiError:  # An object does not exist yet, or the user has deleted it.
            return False

    patience = _PATIENCE_S if lesson.is_about(typed) else 0.0
    if not await comes_true(came_true, patience):
        return False
    console.print(Text(f"✓ {lesson.learned}", "green"))
    return True
