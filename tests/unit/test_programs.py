"""Programs of a test end with the test, and so do their children."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hack.programs import done, started
from hack.reserver_process import wait_for

PARENT = "sleep 600 & echo $!; wait"


def is_there(number: int) -> bool:
    """Return whether a process runs; a zombie does not."""
    try:
        fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return fields[0] != "Z"


@pytest.mark.parametrize("grace_s", [0, 0.1])
def test_what_a_program_started_ends_with_it(grace_s: float) -> None:
    ignoring = f"trap '' TERM; {PARENT}"
    with started(
        "sh", "-c", ignoring, grace_s=grace_s, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        child = int(process.stdout.readline())
        assert is_there(child)
    wait_for(lambda: not is_there(child), "the child has ended")
    assert process.returncode < 0


def test_a_program_that_takes_too_long_ends_with_what_it_started(tmp_path: Path) -> None:
    said = tmp_path / "said"
    with pytest.raises(subprocess.TimeoutExpired):
        done("sh", "-c", f"({PARENT}) | tee {said}", timeout_s=1)
    child = int(said.read_text())
    wait_for(lambda: not is_there(child), "the child has ended")


def test_a_test_that_fails_leaves_nothing_behind() -> None:
    with (
        pytest.raises(ZeroDivisionError),
        started(sys.executable, "-c", "import time; time.sleep(600)") as process,
    ):
        raise ZeroDivisionError
    assert not is_there(process.pid)


def test_a_program_that_ends_in_time_gives_its_own_status_and_words() -> None:
    code = "trap 'exit 7' TERM; echo there; sleep 600 & wait"
    with started("sh", "-c", code, grace_s=30, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "there\n"
    assert process.returncode == 7
    reported = done("sh", "-c", "echo a; echo b >&2; exit 3")
    assert (reported.returncode, reported.stdout, reported.stderr) == (3, "a\n", "b\n")
