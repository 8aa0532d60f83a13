"""Standard output that is full or closed, as a shell gives it: an error like any other, or none."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hack.programs import done

RESERVER = Path(sys.executable).with_name("reserver")
FULL = "reserver: standard output cannot be written: No space left on device\n"


@pytest.mark.parametrize("command", ["--version", "validate -f {file}"])
def test_output_that_cannot_be_written_is_an_error_of_one_line(
    command: str, tmp_path: Path
) -> None:
    assert _said(command, "> /dev/full", tmp_path) == (1, "", FULL)
    assert _said(command, "> /dev/full 2>&1", tmp_path) == (1, "", "")
    assert _said(command, ">&-", tmp_path) == (0, "", "")
    status, out, _ = _said(command, "2>&- <&-", tmp_path)
    assert status == 0
    assert out


def test_who_reads_no_further_costs_no_word(tmp_path: Path) -> None:
    assert _said("serve --help", "| head -n 1", tmp_path)[1:] == (
        "Usage: reserver serve [OPTIONS]\n",
        "",
    )


def _said(command: str, streams: str, folder: Path) -> tuple[int, str, str]:
    """Return the exit status and the output, with a reservation in the file."""
    file = folder / "a.yaml"
    spec = "{owners: [{pod: {name: a, namespace: shop}}], node: n, resources: {cpu: 1}}"
    file.write_text(f"name: a\nspec: {spec}\n")
    told = done("bash", "-c", f"{RESERVER} {command.format(file=file)} {streams}")
    return told.returncode, told.stdout, told.stderr
