"""Programs that a test starts: they end with it, and so does all that they have started."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any


@contextmanager
def started(*command: str, **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """Run a program in a process group of its own, which is killed at the end of the block."""
    process = subprocess.Popen(command, start_new_session=True, **options)
    try:
        yield process
    finally:
        end(process)


def end(process: subprocess.Popen[Any]) -> None:
    """Kill a process group by its leader, which may have ended before the others."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with suppress(BrokenPipeError):  # What nobody has read is written at last.
                stream.close()


def done(*command: str, timeout: float = 60, **options: Any) -> subprocess.CompletedProcess[Any]:
    """Return what a program gave once it has ended; after so many seconds its group is killed."""
    pipe = subprocess.PIPE
    with started(*command, **{"stdout": pipe, "stderr": pipe, "text": True} | options) as process:
        out, err = process.communicate(timeout=timeout)
    return subprocess.CompletedProcess(command, process.returncode, out, err)
