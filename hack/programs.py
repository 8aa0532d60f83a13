"""Programs that tests and measurements start, and end, with all that these have started."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

_TICKS = os.sysconf("SC_CLK_TCK")


@contextmanager
def started(*command: str, grace_s: float = 0, **options: Any) -> Iterator[subprocess.Popen[Any]]:  # noqa: ANN401 - Popen's own
    """Run a program in a process group of its own, which is killed at the end of the block.

    Args:
        command: its words.
        grace_s: how long it may take to end by itself at the end of the block, in seconds.
        options: of `subprocess.Popen`.
    """
    process = subprocess.Popen(command, start_new_session=True, **options)
    try:
        yield process
    finally:
        end(process, grace_s)


def end(process: subprocess.Popen[Any], grace_s: float = 0) -> None:
    """End a program that leads its process group, and kill the rest of the group."""
    try:
        if grace_s and process.poll() is None:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(grace_s)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                with suppress(BrokenPipeError):  # What nobody has read is written at last.
                    stream.close()


def done(
    *command: str,
    timeout_s: float = 60,
    **options: Any,  # noqa: ANN401 - Popen's own
) -> subprocess.CompletedProcess[Any]:
    """Run a program to its end; after the timeout its process group is killed.

    Raises:
        TimeoutExpired: the program had not ended.
    """
    pipe = subprocess.PIPE
    with started(*command, **{"stdout": pipe, "stderr": pipe, "text": True} | options) as process:
        out, err = process.communicate(timeout=timeout_s)
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def cpu_s(pid: int) -> float:
    """Return the seconds of CPU that a process has taken, in user and kernel mode (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def memory(pid: int | str, kind: str = "VmHWM") -> int:
    """Return the most memory that a process had resident, or has now as `VmRSS`, in bytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{kind}:"))


def heed_signals() -> None:
    """Let Ctrl-C and a hang-up end the programs that are started from here on.

    A shell lets background programs ignore the first, and nohup the second.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
