"""The packages of the lock suffice for serving, on a read-only file system.

The Dockerfile does the same with pip; tests/load/test_image.py builds the image itself and runs it.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from http import HTTPStatus
from pathlib import Path

from hack.reserver_process import ReserverProcess
from reserver_demo.cluster import EmbeddedCluster

ROOT = Path(__file__).parents[2]
NO_RIGHTS = ("setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs")
"""Root may write everywhere; without capabilities, only where the mode of a file lets them."""


def install(folder: Path) -> Path:
    """Install the lock, by hash, and our wheel into an empty environment; make it read-only."""
    uv, home = str(Path(sys.executable).parent / "uv"), folder / "environment"
    wheel = ("build", "--target=wheel", f"--directory={folder}")
    into = ("pip", "install", "--quiet", "--only-binary=:all:", f"--python={home}/bin/python")
    for command in (
        (uv, "venv", "--quiet", f"--python={sys.executable}", str(home)),
        (uv, *into, "--require-hashes", "-r", str(ROOT / "requirements.lock")),
        (sys.executable, "-m", "hatchling", *wheel),
    ):
        subprocess.run(command, cwd=ROOT, check=True)
    (built,) = folder.glob("*.whl")
    subprocess.run((uv, *into, "--no-deps", "--no-index", str(built)), check=True)
    subprocess.run(["chmod", "-R", "a-w", str(home)], check=True)
    return home


def contents(folder: Path) -> dict[str, int]:
    """Return when each file was changed last, in ns."""
    return {str(path): path.lstat().st_mtime_ns for path in sorted(folder.rglob("*"))}


def serve(program: tuple[str, ...], folder: Path) -> None:
    """Serve with the flags of the manifests, and with all packages of the image."""
    flags = ("--grpc-address=127.0.0.1:0", "--tracing")
    served = ReserverProcess(folder / "kubeconfig", folder / "log", *flags, program=program)
    with served:
        assert served.get("/healthz")[0] == HTTPStatus.OK
        assert served.stop()[0] == 0


async def test_what_the_lock_names_is_all_that_serving_takes(tmp_path: Path) -> None:
    home = await asyncio.to_thread(install, tmp_path)
    before = contents(home)
    rights = NO_RIGHTS if os.geteuid() == 0 else ()
    program = ("env", "PYTHONDONTWRITEBYTECODE=1", *rights, str(home / "bin/reserver"))
    async with EmbeddedCluster() as cluster:
        cluster.write_kubeconfig(tmp_path / "kubeconfig")
        await asyncio.to_thread(serve, program, tmp_path)
    assert contents(home) == before
