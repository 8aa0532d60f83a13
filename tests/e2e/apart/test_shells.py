"""Tab in bash, zsh and fish completes words with the scripts of `reserver completion`."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
import pytest_asyncio
from structlog.testing import capture_logs

from hack.reserver_process import wait_for
from tests.integration.cli.runs import runs_beside
from tests.integration.world import World, serving
from tests.terminal import terminal

pytestmark = [pytest.mark.controlplane, pytest.mark.asyncio(loop_scope="module")]

SHELLS = {
    "bash": ("bash", "--norc", "--noprofile", "-i"),
    "zsh": ("zsh", "--no-rcs", "-i"),
    "fish": ("fish",),
}
PREPARED = {
    "bash": "source <(reserver completion bash)",
    "zsh": "bindkey -e; autoload -U compinit; compinit -u; source <(reserver completion zsh)",
    "fish": "mkdir -p ~/.config/fish/completions; "
    "reserver completion fish > ~/.config/fish/completions/reserver.fish; "
    "function fish_prompt; echo 'ready> '; end",
}
"""As `reserver completion --help` says; and in fish, what PS1 is for the others."""
TYPED = {
    "reserver valid": "reserver validate",
    "reserver create a --policy Req": "reserver create a --policy Require",
    "reserver describe seat-of-w": "reserver describe seat-of-web",
}
"""Input and its completion: of a command, of a value, and of a name from a running Reserver."""
TO_THE_BEGINNING = "\x01"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    with capture_logs():
        folder = tmp_path_factory.mktemp("world")
        async with serving(folder, "worker-1") as world:
            flags = ("--node", "worker-1", "--owner", "pod/web", "--cpu", "100m")
            assert (await runs_beside(world)("create", "seat-of-web", *flags)).exit_code == 0
            yield world


@pytest.mark.parametrize("shell", SHELLS)
async def test_tab_completes_in_a_real_shell(world: World, shell: str, tmp_path: Path) -> None:
    assert shutil.which(shell), f"{shell} is not installed: apt-get install {shell}"
    await asyncio.to_thread(press_tab, shell, world.running.grpc_address or "", tmp_path)


def press_tab(shell: str, address: str, home: Path) -> None:
    """Type each beginning in one shell, press Tab, and read the completed line."""
    environment = {
        "HOME": str(home),
        "XDG_CONFIG_HOME": "",
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "RESERVER_ADDRESS": address,
        "PS1": "ready> ",
    }
    with terminal(*SHELLS[shell], width=160, environment=environment) as screen:
        screen.press(f"{PREPARED[shell]}; echo prep''ared\r")
        screen.read_until("prepared")
        screen.read_until("ready> ")

        def completes(typed: str, completed: str) -> bool:
            """A completion offers nothing if Reserver does not answer within two seconds."""
            before = len(screen.written)
            screen.press(f"{typed}\t{TO_THE_BEGINNING}echo '<' \r")
            screen.read_until(f"< {typed}")
            screen.read_until("ready> ")
            return f"< {completed}" in screen.written[before:]

        for typed, completed in TYPED.items():
            wait_for(partial(completes, typed, completed), f"{typed} becomes {completed}")
        screen.press("exit\r")
        screen.end()
