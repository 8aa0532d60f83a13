"""The keys of the demo, after Ctrl-Z and `fg`."""

from __future__ import annotations

import os
import pty
import signal
import termios

from reserver_demo.keys import keys


def is_by_line(descriptor: int) -> bool:
    return bool(termios.tcgetattr(descriptor)[3] & termios.ICANON)


async def test_keys_come_one_by_one_again_once_the_demo_goes_on() -> None:
    own, its = pty.openpty()
    try:
        before = termios.tcgetattr(its)
        with keys(its, lambda _: None):
            assert not is_by_line(its)
            termios.tcsetattr(its, termios.TCSANOW, before)  # As a shell does after Ctrl-Z.
            os.kill(os.getpid(), signal.SIGCONT)
            assert not is_by_line(its)
        assert is_by_line(its)
        assert signal.getsignal(signal.SIGCONT) is signal.SIG_DFL
    finally:
        os.close(own)
        os.close(its)
