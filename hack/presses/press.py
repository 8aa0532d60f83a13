"""One press: a command is started, gets a signal at a random moment, and has to end."""

from __future__ import annotations

import ctypes
import os
import pty
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from hack.presses.invocations import Invocation

LIMIT_S = 30.0
"""Seconds until a command has to end on any machine; a command cleans up in five at most."""

_START_S = 60.0
_LOOK_S = 0.005
_LATEST_S = 2.5
_PROGRAM = """
import faulthandler, signal, sys
faulthandler.register(signal.SIGUSR1, all_threads=True)
from reserver.cli.entry import main
sys.argv[0] = "reserver"
main()
"""
_WRONG = ("Traceback", "never awaited", "was destroyed", "Exception ignored", "Fatal Python")
_KEPT = "reserver-edit-"
"""Files with a person's text are kept."""


@dataclass(frozen=True)
class Press:
    """A signal to a command, drawn from a seed and a number.

    Attributes:
        number: the signal.
        way: the receiver: the process, its group, one of its threads, or the terminal.
        is_after_words: the signal waits for the command's first output.
        after_s: seconds before the signal.
        is_early: Python may not have imported Reserver by then.
        again_after_s: seconds before a second signal; None for no second one.
    """

    number: signal.Signals
    way: str
    is_after_words: bool
    after_s: float
    is_early: bool
    again_after_s: float | None

    @classmethod
    def drawn(cls, dice: random.Random, invocation: Invocation) -> Press:
        """Draw one."""
        numbers = (signal.SIGINT,) * 8 + (signal.SIGTERM, signal.SIGHUP)
        ways = ["process", "group", "thread", *["key"] * 2 * invocation.has_terminal]
        if "EDITOR" in invocation.variables:  # Ctrl-C is the editor's, which gets it too.
            ways = ["group", "key"]
        number, way = dice.choice(numbers), dice.choice(ways)
        is_after_words = dice.random() < 0.5  # noqa: PLR2004 - half of them
        at_most = 0.01 if is_after_words and dice.random() < 0.7 else _LATEST_S  # noqa: PLR2004
        return cls(
            number=signal.SIGINT if way == "key" else number,
            way=way,
            is_after_words=is_after_words,
            after_s=dice.random() * at_most,
            is_early=not is_after_words and dice.random() < 0.1,  # noqa: PLR2004 - one in ten
            again_after_s=dice.random() if dice.random() < 0.1 else None,  # noqa: PLR2004
        )


@dataclass(frozen=True)
class Outcome:
    """The outcome of a press.

    Attributes:
        invocation: the command.
        press: the signal.
        status: the exit status; None if the command did not end.
        took_s: seconds from the signal to the end; None if the command had ended before.
        problem: the problem; empty without one.
    """

    invocation: Invocation
    press: Press
    status: int | None
    took_s: float | None
    problem: str


class _Running:
    """A running command with its output."""

    def __init__(self, process: subprocess.Popen[bytes], master: int, said: Path) -> None:
        self.process, self._master, self._said = process, master, said
        self._shown = b""

    def words(self) -> bytes:
        """Return all that it has said."""
        while self._master >= 0 and select.select([self._master], [], [], 0)[0]:
            try:
                some = os.read(self._master, 65536)
            except OSError:  # So Linux tells that nobody has the other end any more.
                break
            self._shown += some
        return self._shown + self._said.read_bytes()

    def wait(self, condition: Callable[[], object], within_s: float) -> bool:
        """Wait until something is so, or it has ended; return whether it is so."""
        end_at = time.monotonic() + within_s
        while not condition():
            if time.monotonic() > end_at or self.process.poll() is not None:
                return False
            self.words()
            time.sleep(_LOOK_S)
        return True

    def send(self, press: Press) -> None:
        """Press."""
        number = self.process.pid
        with suppress(OSError):  # It has ended just now.
            if press.way == "key":
                os.write(self._master, b"\x03")
            elif press.way == "group":
                os.killpg(number, press.number)
            elif press.way == "thread":
                threads = sorted(int(each.name) for each in Path(f"/proc/{number}/task").iterdir())
                ctypes.CDLL(None).tgkill(number, threads[-1], press.number)
            else:
                os.kill(number, press.number)


def pressed(
    among: Sequence[Invocation], seed: int, numbers: Sequence[int], at_once: int
) -> dict[int, Outcome]:
    """Press commands in turn, several at once; return what became of each, by its number."""

    def one(number: int) -> Outcome:
        return press(among[number % len(among)], f"{seed}:{number}")

    with ThreadPoolExecutor(at_once) as threads:
        return dict(zip(numbers, threads.map(one, numbers), strict=True))


def press(invocation: Invocation, seed: str) -> Outcome:
    """Run a command, press, and judge how it ends; nothing of it is left."""
    drawn = Press.drawn(random.Random(seed), invocation)  # noqa: S311 - not for secrets
    with TemporaryDirectory(prefix="presses-") as folder:
        own = Path(folder)
        (own / "tmp").mkdir()
        with _running(invocation, own) as running:
            return _judged(running, invocation, drawn, own / "tmp")


def _judged(running: _Running, invocation: Invocation, drawn: Press, temporary: Path) -> Outcome:
    process = running.process
    if not drawn.is_early:
        running.wait(lambda: _heeds(process.pid), _START_S)
    if drawn.is_after_words:
        running.wait(running.words, _START_S if invocation.lasts else _LATEST_S)
    running.wait(lambda: False, drawn.after_s)
    before = process.poll()
    began = time.monotonic()
    if before is None:
        running.send(drawn)
    if drawn.again_after_s is not None:
        running.wait(lambda: False, drawn.again_after_s)
        if process.poll() is None:
            running.send(drawn)
    has_ended = running.wait(lambda: process.poll() is not None, LIMIT_S)
    took_s = time.monotonic() - began if before is None else None
    said = running.words().decode(errors="replace")
    status = process.poll()
    if not has_ended and status is None:
        problem = f"it has not ended after {LIMIT_S:.0f} s:\n{_stacks(running)}"
        return Outcome(invocation, drawn, None, took_s, problem)
    problem = _problem(invocation, drawn, status, said, is_pressed=before is None)
    left = [each.name for each in temporary.iterdir() if not each.name.startswith(_KEPT)]
    if left and drawn.again_after_s is None:
        problem = problem or f"it left {left}"
    if not problem and (others := _session(process.pid)):
        problem = f"it left processes: {others}"
    return Outcome(invocation, drawn, status, took_s, problem)


def _problem(
    invocation: Invocation, drawn: Press, status: int | None, said: str, *, is_pressed: bool
) -> str:
    if drawn.is_early and is_pressed:
        return ""  # Python may have ended it as it ends any program.
    if found := [each for each in _WRONG if each in said]:
        return f"it said {found}:\n{said}"
    if not is_pressed:
        return "" if status in invocation.statuses else f"it ended by itself, {status}:\n{said}"
    allowed = {128 + drawn.number, *invocation.statuses}
    allowed.add(-drawn.number)  # So Python has it while it ends by itself; shells tell the same.
    return "" if status in allowed else f"it ended with {status}:\n{said}"


@contextmanager
def _running(invocation: Invocation, folder: Path) -> Iterator[_Running]:
    said = folder / "said"
    command = [sys.executable, "-c", _PROGRAM, *invocation.words]
    environment = _environment(invocation.variables, folder)
    master = slave = -1
    with said.open("wb") as out:
        if invocation.has_terminal:
            master, slave = pty.openpty()
            command = ["setsid", "--ctty", *command]
        ends = (slave, slave, slave) if master >= 0 else (subprocess.PIPE, out, out)
        process = subprocess.Popen(
            command,
            stdin=ends[0],
            stdout=ends[1],
            stderr=ends[2],
            env=environment,
            start_new_session=master < 0,
        )
    if slave >= 0:
        os.close(slave)
    try:
        yield _Running(process, master, said)
    finally:
        members = {process.pid, *_session(process.pid)}
        while members:  # A process that has got SIGKILL may be seen for a moment longer.
            for number in members:
                with suppress(ProcessLookupError):
                    os.kill(number, signal.SIGKILL)
            process.wait()
            members = set(_session(process.pid))
        if process.stdin is not None:
            process.stdin.close()
        if master >= 0:
            os.close(master)


def _environment(variables: Mapping[str, str], folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RESERVER_")}
    kept.pop("KUBECONFIG", None)
    own = {"TMPDIR": str(folder / "tmp"), "HOME": str(folder), "TERM": "xterm-256color"}
    return {**kept, **own, **variables}


def _heeds(number: int) -> bool:
    """Whether Reserver has begun to heed signals: Python itself leaves SIGTERM alone."""
    with suppress(OSError):
        for line in Path(f"/proc/{number}/status").read_text().splitlines():
            if line.startswith("SigCgt:"):
                return bool(int(line.split()[1], 16) >> (signal.SIGTERM - 1) & 1)
    return False


def _session(number: int) -> list[int]:
    """Return the running processes of a session."""
    found = []
    for each in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = each.read_text().rpartition(")")[2].split()
            if int(fields[3]) == number and fields[0] != "Z":
                found.append(int(each.parent.name))
    return found


def _stacks(running: _Running) -> str:
    """Return the stack of each thread, and the kernel's state of it."""
    number = running.process.pid
    with suppress(ProcessLookupError):
        os.kill(number, signal.SIGUSR1)
    running.wait(lambda: False, 2)
    said = running.words().decode(errors="replace")
    states = []
    for task in sorted(Path(f"/proc/{number}/task").glob("*/status")):
        with suppress(OSError):
            kept = ("State", "SigPnd", "ShdPnd", "SigBlk")
            lines = [line for line in task.read_text().splitlines() if line.startswith(kept)]
            states.append(f"thread {task.parent.name}: {'; '.join(lines)}")
    return "\n".join([said, *states])
