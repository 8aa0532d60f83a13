"""The demo: as `--once` plays it, in a terminal, and as its own instructions go on."""

from __future__ import annotations

import asyncio
import io
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from rich.console import Console

from hack.programs import done
from reserver_demo.pages import pages
from reserver_demo.run import Demo, play, run, started
from reserver_demo.workdir import demo_folder
from tests.terminal import terminal

RESERVER = str(Path(sys.executable).parent / "reserver")
ROOT = Path(__file__).parents[2]
ALTERNATE_SCREEN, FIRST_SCREEN = "\x1b[?1049h", "\x1b[?1049l"
BY_HAND = ("kubectl edit", "reserver demo")


async def test_every_step_of_the_demo_comes_true() -> None:
    output = io.StringIO()
    assert await run(Console(file=output, width=120), once=True)
    lines = output.getvalue().splitlines()
    assert len(lines) == 11
    assert all(line.startswith("✓") for line in lines)


async def test_what_the_demo_says_is_true_in_the_order_in_which_it_is_said() -> None:
    with demo_folder() as folder:
        async with started(folder, Console(file=io.StringIO())) as demo:
            assert await play(demo, folder)
            for line in (line for page in pages(folder) for line in page.lines):
                command, _, remark = line.partition("  # ")
                if line.startswith("  ") and not command.strip().startswith(BY_HAND):
                    status, said = await _shell(folder, command)
                    assert (status == 0) is (remark != "refused"), f"{command}\n{said}"
            status, said = await _shell(folder, "reserver rebalance plan --defragment")
            assert status == 0, said
            nodes = await _nodes_of_pods(demo)
    assert nodes["default/web-0"] == "worker-2"
    assert nodes["default/normal-pod"] == nodes["default/waiting-pod"] == ""
    (stranger,) = (node for name, node in nodes.items() if "stranger" in name)
    assert stranger in {"worker-2", "worker-3"}


async def _shell(folder: Path, command: str) -> tuple[int, str]:
    """Run a command in a checkout, in a terminal that knows the demo's cluster."""
    line = f". {folder}/env; {command}"
    told = await asyncio.to_thread(done, "bash", "-c", line, cwd=ROOT)
    return told.returncode, told.stdout + told.stderr


async def _nodes_of_pods(demo: Demo) -> dict[str, str]:
    return {row.name: row.node for row in (await demo.scene()).pods}


def test_in_a_terminal_it_is_played_read_resized_and_ended() -> None:
    with terminal(RESERVER, "demo") as screen:
        screen.read_until("Starting a cluster")
        screen.read_until(ALTERNATE_SCREEN)
        screen.read_until("Your turn, 1 of", press="x")
        screen.press("n")
        screen.read_until("Your turn, 2 of")
        assert "Your turn, 5 of" not in screen.written
        screen.resize(120, 40)
        screen.read_until("Your turn, 5 of")
        screen.press("\x03")
        screen.read_until(FIRST_SCREEN)
        screen.read_until("✓ waiting-pod wants")
        screen.read_until("its cluster is gone.")
        assert screen.end() == 0


@pytest.mark.parametrize(
    "number", [signal.SIGHUP, signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name
)
def test_a_demo_that_a_signal_ends_leaves_no_folder(number: signal.Signals) -> None:
    with terminal(RESERVER, "demo") as screen:
        screen.read_until(ALTERNATE_SCREEN)
        (folder,) = _folders_of(screen.process.pid)
        screen.process.send_signal(number)
        screen.end()
    with demo_folder():  # The next demo removes what a killed one could not.
        assert not folder.exists()


def test_a_demo_under_way_keeps_its_folder_beside_others() -> None:
    with demo_folder() as one, demo_folder() as other:
        assert one.exists()
        assert other.exists()


def test_a_demo_ends_when_make_is_killed() -> None:
    with terminal("sh", "-c", f"{RESERVER} demo & echo demo=$!=; wait") as screen:
        screen.read_until("demo=")
        screen.read_until("=")
        demo = int(screen.written.split("=")[1])
        screen.read_until(ALTERNATE_SCREEN)
        (folder,) = _folders_of(demo)
        screen.process.kill()
        screen.read_until("its cluster is gone.")
        screen.end()
        assert not folder.exists()


def _folders_of(process: int) -> set[Path]:
    """Return the folders whose lock a process has open."""
    files = set()
    for each in Path(f"/proc/{process}/fd").iterdir():
        with suppress(FileNotFoundError):  # The process has closed it meanwhile.
            files.add(each.readlink())
    return {file.parent for file in files if file.name == "demo.lock"}


def test_the_tour_waits_until_it_has_happened_and_can_be_left() -> None:
    with terminal(RESERVER, "demo", "--tour") as screen:
        screen.read_until("`quit` ends:")
        screen.press("skip\n")
        screen.read_until("2 of 8: ")
        screen.read_until("`quit` ends:")
        screen.press("true\n")
        screen.read_until("✗ Not yet. Try: reserver create web")
        screen.press("\x03")
        screen.read_until("The tour is over, and its cluster is gone.")
        assert screen.end() == 1


def test_the_tour_is_taken_by_pressing_enter_and_survives_what_is_typed_out_of_turn() -> None:
    with terminal(RESERVER, "demo", "--tour") as screen:
        for number in range(1, 9):
            screen.read_until(f"{number} of 8: ")
            screen.read_until("`quit` ends:")
            if number in {4, 6}:  # The pod that these lessons are about does not exist yet.
                screen.press("help\n")
                screen.read_until("`quit` ends:")
                screen.read_until("✗ Not yet")
                screen.press("no-such-command\n")
                screen.read_until("✗ Not yet")
            if number in {1, 5, 8}:  # Only the exit status shows that their command was given.
                screen.press("false\n" if number == 8 else "true\n")
                screen.read_until("✗ Not yet")
            screen.press("\n")
            screen.read_until("✓")
        screen.read_until("That was the tour.")
        assert screen.end() == 0


def test_without_a_terminal_there_is_no_tour() -> None:
    told = done(RESERVER, "demo", "--tour", stdin=subprocess.DEVNULL)
    assert told.returncode == 2
    assert told.stderr.startswith("reserver: --tour needs a terminal")
