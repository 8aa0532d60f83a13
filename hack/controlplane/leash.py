"""Becomes another program, one that the kernel kills once the process that started it is gone.

`python leash.py PARENT_PID PROGRAM [ARGUMENT...]`. A program of its own, because Python may not be
forked safely (`preexec_fn`) while it runs threads. Linux only; elsewhere nothing holds the program.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    """The command line."""
    parent, *command = sys.argv[1:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(parent):  # it went before we asked
        sys.exit(1)
    os.execv(command[0], command)  # noqa: S606 (no shell is meant)


if __name__ == "__main__":
    main()
