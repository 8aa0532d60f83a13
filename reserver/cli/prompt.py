"""Asks a person on the terminal, while the event loop goes on: Ctrl-C is heard as ever."""

from __future__ import annotations

import asyncio
import os
import sys

import typer

_LONGEST_LINE = 4096
"""What a terminal gives at a time."""

_ANSWERS = {"y": True, "yes": True, "n": False, "no": False, "": False}


async def confirmed(question: str) -> bool:
    """Return whether a person answers yes; an empty answer and the end of the input are a no."""
    while True:
        typer.echo(f"{question} [y/N]: ", nl=False, err=True)
        try:
            said = await typed_line()
        except asyncio.CancelledError:
            typer.echo(err=True)  # What comes next begins a line.
            raise
        if not said:
            typer.echo(err=True)
        answer = _ANSWERS.get(said.strip().lower())
        if answer is not None:
            return answer
        typer.echo("Error: answer y or n", err=True)


async def typed_line() -> str:
    """Return the next line that is typed, with its end; empty at the end of the input."""
    loop = asyncio.get_running_loop()
    readable = loop.create_future()
    descriptor = sys.stdin.fileno()

    def tell() -> None:
        loop.remove_reader(descriptor)
        if not readable.done():
            readable.set_result(None)

    loop.add_reader(descriptor, tell)
    try:
        await readable
    finally:
        loop.remove_reader(descriptor)
    return os.read(descriptor, _LONGEST_LINE).decode(errors="replace")
