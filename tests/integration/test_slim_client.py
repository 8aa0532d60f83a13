"""The Python client alone, with no other packages than grpcio and protobuf."""

from __future__ import annotations

import asyncio
import io
import os
import re
import sys
import tomllib
import zipfile
from pathlib import Path

import google.protobuf
import grpc
import pytest
import typing_extensions
from rich.console import Console

from hack import dist
from hack.programs import done
from reserver_demo.run import started
from reserver_demo.scenario import Stage
from tests.pages import ROOT
from tests.waiting import until_answered

PROGRAM = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROJECT = tomllib.loads((dist.CLIENT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of packages: the client's wheel, and its dependencies."""
    folder = tmp_path_factory.mktemp("packages")
    with zipfile.ZipFile(dist.client_wheel(tmp_path_factory.mktemp("wheel"))) as wheel:
        wheel.extractall(folder)
    (folder / "google").mkdir()
    (folder / "grpc").symlink_to(Path(grpc.__file__).parent)
    (folder / "typing_extensions.py").symlink_to(typing_extensions.__file__)  # of grpcio
    home = Path(google.protobuf.__file__).parent
    for each in (home, home.with_name("_upb")):
        (folder / "google" / each.name).symlink_to(each)
    return folder


def run(alone: Path, program: str, address: str = "") -> tuple[int, str]:
    """Run a program that sees these packages and Python's own, and nothing of this checkout."""
    environment = {
        "PYTHONPATH": str(alone),
        "RESERVER_ADDRESS": address,
        "PATH": os.environ["PATH"],
    }
    told = done(sys.executable, "-S", "-P", "-c", program, env=environment)
    return told.returncode, told.stdout + told.stderr


def test_it_says_what_it_needs_and_is_of_this_version() -> None:
    needed = {re.split("[<>=]", each)[0] for each in PROJECT["dependencies"]}
    assert needed == {"grpcio", "protobuf"}
    assert PROJECT["version"] == dist.version()
    generated = (ROOT / "reserver/v1/reservation_pb2.py").read_text()
    made_by = re.search(r"Protobuf Python Version: (\S+)", generated)
    assert made_by
    assert f"protobuf>={made_by[1]}" in PROJECT["dependencies"]


def test_nothing_else_is_imported(alone: Path) -> None:
    program = "import reserver.client, sys; print(*(set(sys.modules) & {'numpy', 'google.rpc'}))"
    assert run(alone, program) == (0, "\n")
    status, said = run(alone, "import reserver.cli.main")
    assert status != 0
    assert "No module named" in said


async def test_the_programs_of_the_page_run_there(alone: Path, tmp_path: Path) -> None:
    programs = PROGRAM.findall((ROOT / "docs/python.md").read_text())
    assert len(programs) == 2
    async with started(tmp_path, Console(file=io.StringIO())) as demo:
        stage = Stage(demo.cluster, demo.reserver.assembly)
        await stage.add_workers()
        await until_answered(stage.workers_are_seen)
        address = str(demo.reserver.grpc_address)
        for program in programs:
            status, said = await asyncio.to_thread(run, alone, program, address)
            assert status == 0, said
            assert said in (ROOT / "docs/python.md").read_text(), said
