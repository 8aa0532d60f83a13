"""A signal ends a command, whichever thread takes it and whatever the command does."""

from __future__ import annotations

import asyncio
import ctypes
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hack.programs import done, started
from tests.integration.cli.runs import Run
from tests.integration.world import World
from tests.terminal import terminal

HEED = """
import asyncio, os, signal, sys, time
from reserver.cli import interrupt
interrupt.handle_signals()
def say(words):
    print(words, flush=True)
"""
WAITS = {
    "a command that waits": """
async def work():
    say("waits")
    try:
        await asyncio.Event().wait()
    finally:
        say("cleans up")
interrupt.run(work(), factory)
""",
    "one that has swallowed the cancellation": """
interrupt._GRACE_S = 1.0
async def work():
    say("waits")
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            say("cleans up")
interrupt.run(work(), factory)
""",
    "one that turns the cancellation into an error": """
async def work():
    say("waits")
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        say("cleans up")
        raise ValueError("no answer") from None
interrupt.run(work(), factory)
""",
    "one whose thread goes on": """
async def work():
    say("waits")
    try:
        await asyncio.to_thread(time.sleep, 3600)
    finally:
        say("cleans up")
interrupt.run(work(), factory)
""",
    "one that is stopped in good order, but has hung": """
interrupt._GRACE_S = 1.0
async def work():
    with interrupt.handing(lambda: say("cleans up"), 1.0):
        say("waits")
        await asyncio.Event().wait()
interrupt.run(work(), factory)
""",
    "one that holds its event loop": """
interrupt._GRACE_S = 3600
async def work():
    with interrupt.undoing(lambda: say("cleans up")):
        say("waits")
        sys.stdin.read()
interrupt.run(work(), factory)
""",
    "a command that has no event loop": """
say("waits\\ncleans up")
sys.stdin.read()
""",
}
ROOT = Path(__file__).parents[3]
FACTORIES = {"asyncio": "factory = None", "uvloop": "from uvloop import new_event_loop as factory"}


@contextmanager
def program(code: str) -> Iterator[subprocess.Popen[str]]:
    pipe = subprocess.PIPE
    command = (sys.executable, "-c", code)
    with started(*command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        yield process


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline().strip()


def ended(process: subprocess.Popen[Any]) -> tuple[int, str]:
    """Return exit status, and standard error, of what ends while its input stays open."""
    assert process.stderr
    status = process.wait(30)
    return status, process.stderr.read()


def other_threads(number: int) -> list[int]:
    found = [int(each.name) for each in Path(f"/proc/{number}/task").iterdir()]
    return sorted(set(found) - {number})


def send_to_thread(process: int, thread: int, number: signal.Signals) -> None:
    """Have one thread take a signal, as the kernel may choose, which Python's handler runs in."""
    assert ctypes.CDLL(None).tgkill(process, thread, number) == 0


def pressed(code: str, *numbers: signal.Signals, says: str = "cleans up") -> tuple[int, str]:
    """Send signals to a program once it waits; return its exit status, and standard error."""
    with program(f"{HEED}{code}") as process:
        assert line(process) == "waits"
        for number in numbers:
            process.send_signal(number)
        assert line(process) == says
        return ended(process)


@pytest.mark.parametrize("factory", FACTORIES)
@pytest.mark.parametrize("waits", WAITS)
def test_a_press_ends(waits: str, factory: str) -> None:
    assert pressed(f"{FACTORIES[factory]}{WAITS[waits]}", signal.SIGINT) == (130, "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_other_signals_end_a_command_as_well(number: signal.Signals) -> None:
    code = f"factory = None{WAITS['a command that waits']}"
    assert pressed(code, number) == (128 + number, "")


@pytest.mark.parametrize("factory", FACTORIES)
@pytest.mark.parametrize("waits", WAITS)
def test_a_signal_that_another_thread_takes_ends(waits: str, factory: str) -> None:
    with program(f"{HEED}{FACTORIES[factory]}{WAITS[waits]}") as process:
        assert line(process) == "waits"
        send_to_thread(process.pid, other_threads(process.pid)[0], signal.SIGINT)
        assert ended(process) == (130, "")


def test_a_second_press_ends_what_takes_its_time() -> None:
    code = WAITS["one that has swallowed the cancellation"].replace("= 1.0", "= 3600")
    with program(f"{HEED}factory = None{code}") as process:
        assert line(process) == "waits"
        process.send_signal(signal.SIGINT)
        assert line(process) == "cleans up"
        pause = threading.Event()
        while process.poll() is None:
            pause.wait(0.1)
            process.send_signal(signal.SIGINT)
        assert ended(process) == (130, "")


def test_a_press_that_comes_twice_at_once_is_one() -> None:
    code = """
async def work():
    say("waits")
    try:
        await asyncio.sleep(3600)
    finally:
        await asyncio.sleep(0.1)
        say("cleans up")
interrupt.run(work())
"""
    status, _ = pressed(code, signal.SIGINT, signal.SIGINT, signal.SIGTERM)
    assert status in {130, 143}  # Of two at once the kernel tells either first.


def test_what_is_stopped_in_good_order_gives_its_own_status() -> None:
    code = """
async def work():
    stop = asyncio.Event()
    with interrupt.handing(stop.set):
        say("waits")
        await stop.wait()
    say("stops")
    return 7
sys.exit(interrupt.run(work(), new_event_loop))
"""
    code = f"from uvloop import new_event_loop{code}"
    assert pressed(code, signal.SIGTERM, says="stops") == (7, "")


def test_an_error_while_it_stops_in_good_order_is_told() -> None:
    code = """
async def work():
    stop = asyncio.Event()
    with interrupt.handing(stop.set):
        say("waits")
        await stop.wait()
    raise ValueError("not written")
interrupt.run(work())
"""
    with program(f"{HEED}{code}") as process:
        assert line(process) == "waits"
        process.send_signal(signal.SIGTERM)
        status, told = ended(process)
    assert (status, told.splitlines()[-1]) == (1, "ValueError: not written")


def test_what_was_started_to_ignore_ctrl_c_does_and_sigterm_ends_it() -> None:
    ignoring = 'trap \'\' INT HUP; exec "$0" -c "$1"'
    code = f"{HEED}{FACTORIES['asyncio']}{WAITS['a command that waits']}"
    pipe = subprocess.PIPE
    command = ("sh", "-c", ignoring, sys.executable, code)
    with started(*command, stdout=pipe, stderr=pipe, text=True) as process:
        assert line(process) == "waits"
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGTERM)
        assert line(process) == "cleans up"
        assert ended(process) == (143, "")


def test_tests_that_run_in_the_background_press_ctrl_c_as_well(tmp_path: Path) -> None:
    """Shells have those ignore Ctrl-C, which all that they start inherits."""
    code = "import signal; print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)"
    (tmp_path / "test_ignoring.py").write_text(
        f"""
import subprocess, sys
def test_it():
    command = [sys.executable, "-c", {code!r}]
    assert subprocess.check_output(command, text=True) == "False\\n"
"""
    )
    tests = f"{sys.executable} -m pytest -q -p tests.conftest -c /dev/null {tmp_path}"
    assert done("sh", "-c", f"{sys.executable} -c '{code}' & wait").stdout == "True\n"
    told = done("sh", "-c", f"{tests} & wait $!", cwd=ROOT)
    assert told.returncode == 0, told.stdout


def ends_by_any_thread(*command: str, words: str, environment: dict[str, str]) -> list[int]:
    """Return the exit statuses after a signal to each thread of a command."""
    return [
        ends_by_thread(which, *command, words=words, environment=environment) for which in (0, 1)
    ]


def ends_by_thread(which: int, *command: str, words: str, environment: dict[str, str]) -> int:
    line = (sys.executable, "-m", "reserver", *command)
    with terminal(*line, environment=environment) as screen:
        screen.read_until(words)
        number = screen.process.pid
        send_to_thread(number, [number, *other_threads(number)][-which], signal.SIGINT)
        return screen.end()


@pytest.mark.parametrize(
    ("command", "words"),
    [(("watch",), "added"), (("get", "-w"), "a "), (("release", "--all"), "[y/N]")],
)
async def test_a_command_that_uses_grpc_ends_whichever_thread_takes_the_signal(
    run: Run, world: World, command: tuple[str, ...], words: str
) -> None:
    await run("create", "a", "--node=worker-1", "--cpu=1", "--owner=pod/web-0", "-n", "shop")
    environment = {"RESERVER_ADDRESS": str(world.running.grpc_address)}
    statuses = await asyncio.to_thread(
        ends_by_any_thread, *command, words=words, environment=environment
    )
    assert statuses == [130, 130]
    assert (await run("get", "-o", "name")).stdout == "reserver-system/reservations/a\n"
