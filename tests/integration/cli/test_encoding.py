"""Terminals that are not UTF-8, and text that is none: never a traceback."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

import pytest

from reserver.cli import encoding
from tests.integration.cli.runs import Run
from tests.integration.world import World
from tests.terminal import terminal

ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
RESERVER = (sys.executable, "-m", "reserver")


LATIN = {"PYTHONIOENCODING": "iso8859-1"}


def shown(*words: str, width: int, address: str, variables: dict[str, str]) -> tuple[int, str]:
    environment = {**variables, "RESERVER_ADDRESS": address}
    with terminal(*RESERVER, *words, width=width, environment=environment) as screen:
        status = screen.end()
        return status, screen.written


@pytest.mark.parametrize("variables", [ASCII, LATIN], ids=["ascii", "latin-1"])
@pytest.mark.parametrize("width", [80, 160])
async def test_a_terminal_that_is_not_utf_8_shows_all(
    run: Run, world: World, width: int, variables: dict[str, str]
) -> None:
    flags = ("--node", "worker-1", "--owner", "pod/a", "--cpu", "1", "--description", "für ✓")
    assert (await run("create", "a", *flags)).exit_code == 0
    address = str(world.running.grpc_address)
    for words, expected in (
        (("top", "nodes"), "=" * 2),
        (("describe", "a"), "Description:"),
        (("get", "nöpe"), "there is no reservation"),
        (("get", "-o", "wide"), "worker-1"),
    ):
        _, text = await asyncio.to_thread(
            shown, *words, width=width, address=address, variables=variables
        )
        assert "Traceback" not in text
        assert expected in text
        if words == ("top", "nodes"):
            assert text.isascii()


@pytest.mark.parametrize("variables", [ASCII, {}], ids=["ascii", "as-it-is"])
def test_an_argument_that_is_not_utf_8_is_refused(variables: dict[str, str]) -> None:
    command = [*(os.fsencode(each) for each in RESERVER), b"get", b"n\xff"]
    done = subprocess.run(command, capture_output=True, env=os.environ | variables, check=False)
    assert (done.returncode, done.stderr) == (
        2,
        b"reserver: n\\xff: is not UTF-8; write it in UTF-8\n",
    )


def test_each_character_of_ours_has_one_that_is_as_wide() -> None:
    for character in "█▒░·×…✓✗│─━┃╌⠋":
        error = UnicodeEncodeError("ascii", character, 0, 1, "")
        written, end = encoding._substitute(error)
        assert (len(written), written.isascii(), end) == (1, True, 1)
