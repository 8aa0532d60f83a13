"""`edit`: the saved file is written, reopened with its errors, or kept."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from pathlib import Path

import pytest
import yaml

from tests.integration.cli.manifests import manifest, spec_of
from tests.integration.cli.runs import Run, untimed
from tests.integration.world import World


def editor(tmp_path: Path, *steps: str) -> str:
    """Return an editor that runs a step of a shell script each time, on the file ``$1``."""
    script = tmp_path / "editor"
    cases = "".join(f"{number}) {step} ;;\n" for number, step in enumerate(steps, start=1))
    script.write_text(
        f"#!/bin/bash\nn=$(($(cat {tmp_path}/n 2>/dev/null || echo 0) + 1))\n"
        f"echo $n > {tmp_path}/n\n"
        f'cp "$1" {tmp_path}/seen-$n; echo "$1" > {tmp_path}/file\ncase $n in\n{cases}esac\n'
    )
    script.chmod(0o700)
    return str(script)


def kept(tmp_path: Path) -> Path:
    return Path((tmp_path / "file").read_text().strip())


def left(tmp_path: Path) -> list[Path]:
    return list(tmp_path.glob("reserver-edit-*"))


async def test_what_an_editor_saves_is_written(run: Run, tmp_path: Path) -> None:
    await run("apply", "-f", "-", text=manifest("a"))
    done = await run("edit", "a", EDITOR=editor(tmp_path, "sed -i 's/slots: 1/slots: 3/' $1"))
    assert untimed(done.stdout) == (
        "a edited: 3 slots of 1 CPU on worker-1 held for shop/pod/web-0, until T\n"
    )
    assert (await spec_of(run, "a"))["slots"] == 3
    seen = (tmp_path / "seen-1").read_text()
    assert seen.startswith("# Edit the reservation below.")
    assert list(yaml.safe_load(seen)) == ["name", "spec"]
    assert not kept(tmp_path).exists()
    again = await run("edit", "a", "-o", "json", EDITOR="sed -i 's/slots: 3/slots: 2/'")
    assert json.loads(again.stdout) == json.loads((await run("get", "a", "-o", "json")).stdout)
    assert json.loads(again.stdout)["spec"]["slots"] == 2


@pytest.mark.parametrize(
    ("step", "said"), [("true", "no changes made"), ("> $1", "the saved file is empty")]
)
async def test_what_is_saved_unchanged_or_empty_changes_nothing(
    run: Run, tmp_path: Path, step: str, said: str
) -> None:
    await run("apply", "-f", "-", text=manifest("a"))
    before = (await run("get", "a", "-o", "json")).stdout
    done = await run("edit", "a", EDITOR=editor(tmp_path, step))
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", f"Edit cancelled, {said}\n")
    assert (await run("edit", "a", "-o", "json", EDITOR="true")).stdout == before
    assert (await run("get", "a", "-o", "json")).stdout == before


async def test_what_is_wrong_stands_above_it_when_the_editor_opens_again(
    run: Run, tmp_path: Path
) -> None:
    await run("apply", "-f", "-", text=manifest("a"))
    wrong, right = "sed -i 's/slots: 1/slots: 0/' $1", "sed -i 's/slots: 0/slots: 2/' $1"
    done = await run("edit", "a", EDITOR=editor(tmp_path, wrong, right))
    assert done.exit_code == 0, done.stderr
    assert "# slots: 0 is out of range; write 1 to" in (tmp_path / "seen-2").read_text()
    assert (await spec_of(run, "a"))["slots"] == 2
    (tmp_path / "n").unlink()
    huge = "sed -i \"s/cpu: '1'/cpu: '64'/\" $1"
    given_up = await run("edit", "a", EDITOR=editor(tmp_path, huge, "true"))
    assert given_up.exit_code == 4
    assert "# spec: worker-1 offers too little cpu (4 of " in (tmp_path / "seen-2").read_text()
    assert (
        f"your file is kept; apply it with: reserver apply -f {kept(tmp_path)}" in given_up.stderr
    )
    assert "cpu: '64'" in kept(tmp_path).read_text()
    kept(tmp_path).unlink()


async def test_a_file_is_kept_if_somebody_else_was_faster(
    run: Run, tmp_path: Path, world: World
) -> None:
    await run("apply", "-f", "-", text=manifest("a"))
    address = world.running.grpc_address
    faster = f"{sys.executable} -m reserver update a --slots 2 --address {address} > /dev/null"
    mine = "sed -i 's/slots: 1/slots: 3/' $1"
    done = await run("edit", "a", EDITOR=editor(tmp_path, f"{faster}; {mine}"))
    assert done.exit_code == 1
    assert "was changed meanwhile" in done.stderr
    assert "slots: 3" in kept(tmp_path).read_text()
    kept(tmp_path).unlink()
    assert (await spec_of(run, "a"))["slots"] == 2


async def test_ctrl_c_in_an_editor_is_the_editors(run: Run, tmp_path: Path, world: World) -> None:
    await run("apply", "-f", "-", text=manifest("a"))
    interrupt = "trap : INT; kill -INT 0; sed -i 's/slots: 1/slots: 4/' $1"
    variables = {"EDITOR": editor(tmp_path, interrupt)}
    variables["RESERVER_ADDRESS"] = str(world.running.grpc_address)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "reserver", "edit", "a"),
        env=os.environ | variables,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,  # As in a terminal, the signal reaches both.
    )
    told = (await process.communicate())[0].decode()
    assert (process.returncode, told[:9]) == (0, "a edited:")
    assert (await spec_of(run, "a"))["slots"] == 4


async def test_an_editor_that_cannot_be_run_is_named_and_no_file_is_left(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await run("apply", "-f", "-", text=manifest("a"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    done = await run("edit", "a", EDITOR="/no/such/editor")
    assert left(tmp_path) == []
    assert done.exit_code == 2
    assert "EDITOR: '/no/such/editor' cannot be run" in done.stderr
