"""Becomes another program that the kernel kills once its parent process has ended.

`python leash.py PARENT_PID PROGRAM [ARGUMENT...]`. A separate program, because Python cannot fork
safely (`preexec_fn`) while it has threads. Linux only; elsewhere the program is not killed.
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
    if os.getppid() != int(parent):  # the parent ended before prctl
        sys.exit(1)
    os.execv(command[0], command)  # noqa: S606 (no shell is meant)


if __name__ == "__main__":
    main()
