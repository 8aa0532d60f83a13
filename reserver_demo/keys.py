"""The keys of the running demo."""

from __future__ import annotations

import asyncio
import os
import signal
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from reserver.cli import interrupt

NEXT = frozenset({"n", " ", "\r", "\n", "\x1b[C", "\x1b[B", "\x1b[6~"})
PREVIOUS = frozenset({"p", "b", "\x1b[D", "\x1b[A", "\x1b[5~"})
END = frozenset({"q"})
_LONGEST = 32


@contextmanager
def keys(descriptor: int, pressed: Callable[[str], None]) -> Iterator[None]:
    """Call `pressed` with each key during the block; without a terminal never.

    Ctrl-C remains a signal. A key of several characters, such as an arrow, is one call.
    """
    if not os.isatty(descriptor):
        yield
        return
    before = termios.tcgetattr(descriptor)
    loop = asyncio.get_running_loop()

    def read() -> None:
        text = os.read(descriptor, _LONGEST).decode(errors="replace")
        if not text:
            loop.remove_reader(descriptor)
        for key in [text] if text.startswith("\x1b") else text:
            pressed(key)

    def restore() -> None:
        termios.tcsetattr(descriptor, termios.TCSANOW, before)

    def resume(*_: object) -> None:
        tty.setcbreak(descriptor)  # The shell has set its own mode during the stop (Ctrl-Z).

    tty.setcbreak(descriptor)
    previous = signal.signal(signal.SIGCONT, resume)
    loop.add_reader(descriptor, read)
    try:
        with interrupt.undoing(restore):
            yield
    finally:
        loop.remove_reader(descriptor)
        signal.signal(signal.SIGCONT, previous)
        restore()
