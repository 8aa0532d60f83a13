"""Terminals that are not UTF-8, and text that is none: never a traceback."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from reserver.cli import entry
from tests.integration.cli.runs import Run
from tests.integration.cli.screens import Screen
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


@pytest.mark.parametrize(
    ("width", "variables"), [(80, ASCII), (160, LATIN)], ids=["ascii", "latin-1"]
)
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


SHOWN = [
    ("get", "NAME | PHASE  | NODE     | SLOTS"),
    ("get -o wide", "default/pod/a"),
    ("describe a", "Slots:"),
    ("explain pod shop/web-0", "shop/web-0"),
    ("top nodes", "# used = held . free"),
    ("top quotas", "no quota limits any namespace"),
    ("history", "no reservation has ended"),
    ("report", "in cores x hours:"),
    ("doctor", "kubernetes"),
    ("create b --owner pod/b --node worker-1 --cpu 1", "b created: 1 CPU on worker-1"),
    ("ui --help", "reserver ui [OPTIONS]"),
    ("serve --help", "--grpc-address"),
    ("--help", "Usage: reserver"),
    ("create c --owner deploymnt/x --cpu 1", "did you mean deployment"),
]


async def test_an_ascii_terminal_gets_ascii(run: Run, world: World, tmp_path: Path) -> None:
    flags = ("--node", "worker-1", "--owner", "pod/a", "--cpu", "1")
    assert (await run("create", "a", *flags)).exit_code == 0
    pod = {"metadata": {"name": "web-0"}, "spec": {"containers": [{"name": "m", "image": "m"}]}}
    await world.cluster.client.send("POST", "/api/v1/namespaces/shop/pods", pod)
    variables = ASCII | {"KUBECONFIG": str(tmp_path / "kubeconfig")}
    with Screen(100, str(world.running.grpc_address), **variables) as screen:
        for words, expected in SHOWN:
            shown = await asyncio.to_thread(screen.run, *words.split())
            assert expected in shown.text, words
            assert "Traceback" not in shown.text
            assert shown.text.isascii(), shown.text


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
        written, end = entry._substitute(error)
        assert (len(written), written.isascii(), end) == (1, True, 1)
