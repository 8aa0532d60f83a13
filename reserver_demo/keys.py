"""The keys that a user presses while the demo runs."""

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
    """Tell each key that is pressed, for as long as the block lasts; without a terminal none.

    Ctrl-C remains a signal. A key that is more than a character, such as an arrow, comes as one.
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
        tty.setcbreak(descriptor)  # The shell has set its own mode while we were stopped (Ctrl-Z).

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
