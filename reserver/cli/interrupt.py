"""Ctrl-C, SIGTERM and SIGHUP end every command, whatever it does at that moment (docs/adr/0063).

Python runs a signal's handler in the main thread, between two instructions. A main thread that
waits in the kernel hears nothing of a signal that another thread took, or that came after the last
instruction before the wait. So C itself writes each signal to a pipe, in whichever thread it
arrives (`signal.set_wakeup_fd`), and a thread of its own reads there.

The first press cancels what `run` runs; a second one, or a while, ends the process. Where nothing
runs, the first one does.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

if TYPE_CHECKING:
    import asyncio

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_SAME_S = 0.3
"""Seconds in which presses count as one: some parents forward the terminal's signal."""

_HELD_S = 1.0
"""Seconds after which an event loop that has not handled a press counts as held, as by an import. A
later handled press reports the effect of a second one."""

_GRACE_S = 5.0
"""Seconds of a cancelled command to clean up."""

STOPPING_S = 25.0
"""The same of one that stops in good order, in seconds; Kubernetes gives a pod 30."""

_HANDLED = 0x80
_SHOW_CURSOR = b"\x1b[?25h"
_HINT = b"reserver: ending; a second Ctrl-C ends it at once\n"

Result = TypeVar("Result")


@dataclass(slots=True)
class _Listener:
    """The current effect of a signal.

    Attributes:
        pipe: the descriptor that the thread reads; -1 without a reader.
        wakeup: the descriptor that C writes.
        first: the action of the first press; None ends the process.
        grace_s: seconds for that action.
        is_taken: the event loop has started the action.
        is_elsewhere: Ctrl-C is meant for another program on this terminal.
        pressed: the first signal; 0 before.
        undo: restores the terminal for its next user.
    """

    pipe: int = -1
    wakeup: int = -1
    first: Callable[[], object] | None = None
    grace_s: float = 0.0
    is_taken: bool = False
    is_elsewhere: bool = False
    pressed: int = 0
    undo: list[Callable[[], object]] = field(default_factory=list)
    _untold: set[int] = field(default_factory=set)

    def listen(self) -> None:
        """End the process after a signal."""
        self.pressed = self._press(None)
        began = time.monotonic()
        first, end_at = self.first, began + self.grace_s
        if first is None:
            self.end()
        with suppress(RuntimeError):  # The loop has ended by itself.
            first()
        time.sleep(_SAME_S)
        while self._press(0):  # However late this thread has its turn.
            pass
        is_patient = self.grace_s > _GRACE_S
        if not self._press(began + _HELD_S - time.monotonic()) and (self.is_taken or is_patient):
            _write_to_terminal(_HINT)
            self._press(end_at - time.monotonic())
        self.end()

    def _press(self, within_s: float | None) -> int:
        """Return the next signal, 0 for none in that time.

        C writes it, and then Python's handler, later. Only what took the descriptor for itself, as
        uvloop does, may have had the former.
        """
        while select.select([self.pipe], [], [], None if within_s is None else max(within_s, 0))[0]:
            byte = os.read(self.pipe, 1)[0]
            number = byte & ~_HANDLED
            if number not in SIGNALS:
                continue
            if byte & _HANDLED and number in self._untold:
                self._untold.discard(number)
                continue
            if not byte & _HANDLED:
                self._untold.add(number)
            if not (self.is_elsewhere and number == signal.SIGINT):
                return number
        return 0

    def handled(self, number: int, _: FrameType | None) -> None:
        """Wake the thread; Python's signal handler."""
        with suppress(BlockingIOError):
            os.write(self.wakeup, bytes((number | _HANDLED,)))

    def end(self) -> NoReturn:
        """End the process with the status that shells give a signal, and wait for no thread."""
        for undo in reversed(self.undo):
            with suppress(Exception):
                undo()
        _write_to_terminal(_SHOW_CURSOR)
        os._exit(128 + self.pressed)


_listener = _Listener()


def handle_signals() -> None:
    """Let signals end this process, except signals that it was started to ignore."""
    if _listener.pipe >= 0:
        return
    _listener.pipe, _listener.wakeup = os.pipe()
    os.set_blocking(_listener.wakeup, False)
    _take_descriptor()
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # So nohup and scripts have it.
            signal.signal(number, _listener.handled)
    threading.Thread(target=_listener.listen, name="signals", daemon=True).start()


def run(
    work: Coroutine[Any, Any, Result],
    loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
) -> Result:
    """Run the work of a command on an event loop; a signal cancels it, and ends the process then.

    Args:
        loop_factory: makes the loop; None for asyncio's own.
    """
    import asyncio

    is_cancelled = False

    async def cancelling_on_signal() -> Result:
        _take_descriptor()  # uvloop has it.
        task = asyncio.current_task()

        def cancel() -> None:
            nonlocal is_cancelled
            is_cancelled = True
            if task is not None:
                task.cancel()

        with handing(cancel, _GRACE_S):
            return await work

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        try:
            return runner.run(cancelling_on_signal())
        except BaseException:
            if is_cancelled:  # Whatever it raises: nobody waits for it any more.
                _leave()
            raise


@contextmanager
def handing(act: Callable[[], object], grace_s: float = STOPPING_S) -> Iterator[None]:
    """Have the first press call this on the running event loop in a block.

    Args:
        grace_s: after so many seconds the process is ended all the same.
    """
    if not _is_ours():
        yield
        return
    import asyncio

    def take() -> None:
        _listener.is_taken = True
        act()

    loop = asyncio.get_running_loop()
    before = _listener.first, _listener.grace_s
    _listener.first, _listener.grace_s = partial(loop.call_soon_threadsafe, take), grace_s
    try:
        yield
    finally:
        _listener.first, _listener.grace_s = before


@contextmanager
def elsewhere() -> Iterator[None]:
    """Leave Ctrl-C in a block to another program on this terminal, such as an editor."""
    _listener.is_elsewhere = True
    try:
        yield
    finally:
        _listener.is_elsewhere = False


@contextmanager
def undoing(undo: Callable[[], object]) -> Iterator[None]:
    """Call this if the process is ended within a block, which does the same at its own end.

    Another thread calls it, so it waits for nothing that this one may hold.
    """
    _listener.undo.append(undo)
    try:
        yield
    finally:
        _listener.undo.remove(undo)


def _is_ours() -> bool:
    """Whether signals are heeded, and this is the thread that they concern."""
    return _listener.pipe >= 0 and threading.current_thread() is threading.main_thread()


def _take_descriptor() -> None:
    if _is_ours():
        signal.set_wakeup_fd(_listener.wakeup, warn_on_full_buffer=False)


def _leave() -> NoReturn:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    _listener.end()


def _write_to_terminal(text: bytes) -> None:
    with suppress(OSError):
        if os.isatty(2):
            os.write(2, text)
