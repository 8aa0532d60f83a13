"""The shell of a user, and its output without times and identifiers."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from hack.controlplane.build import bin_dir
from hack.programs import done
from hack.reserver_process import wait_for

pytestmark = [pytest.mark.controlplane, pytest.mark.timeout(600)]
SCRIPTS = Path(sys.executable).parent
_VARYING = (
    (re.compile(r"\b(?:\d+[dhms]){1,2}\b(?= *$|\)$)", re.MULTILINE), "SPAN"),
    (re.compile(r"until (?:20\d\d-\d\d-\d\d )?\d\d:\d\d(?: tomorrow)?$", re.MULTILINE), "until T"),
    (re.compile(r"\b20\d\d-\d\d-\d\dT[\d:.]+Z"), "MOMENT"),
    (re.compile(r'"etag": "[0-9a-f]+"'), '"etag": ""'),
    (re.compile(r"\b[0-9a-f]{32}\b"), "UID"),
    (re.compile(r"[ \t]+"), " "),
    (re.compile(r" $", re.MULTILINE), ""),
)


class Shell:
    """A shell of a user who has a kubeconfig, kubectl and reserver."""

    def __init__(self, folder: Path, kubeconfig: Path) -> None:
        self.folder = folder
        self.environment = {
            "PATH": f"{SCRIPTS}:{bin_dir()}:{os.environ['PATH']}",
            "KUBECONFIG": str(kubeconfig),
            "HOME": str(folder),
        }

    def run(self, line: str) -> str:
        """Run a line; return all that it printed, standard output first."""
        told = done("bash", "-c", line, cwd=self.folder, env=self.environment, timeout_s=120)
        return str(told.stdout + told.stderr)

    def until(self, line: str, words: str) -> str:
        """Run a line until its output has these words, and return the output.

        A new right is in force a little later, and a completion gives up after two seconds.
        """

        def said() -> str:
            told = self.run(line)
            return told if words in told else ""

        return wait_for(said, words)


def normal(text: str) -> list[str]:
    """Return sorted lines without times and identifiers; a command's two outputs have no order."""
    for pattern, word in _VARYING:
        text = pattern.sub(word, text)
    return sorted(text.strip().splitlines())
