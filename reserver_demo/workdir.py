"""The demo's folder, with the environment for another shell and manifests to try."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from reserver.cli import interrupt

_PODS = "/api/v1/namespaces/default/pods"
_PREFIX, _LOCK = "reserver-", "demo.lock"


@contextmanager
def demo_folder() -> Iterator[Path]:
    """Yield a folder with a short name, which is removed after the demo.

    Folders of killed demos are removed as well.
    """
    with (
        tempfile.TemporaryDirectory(prefix=_PREFIX, dir="/tmp") as folder,
        interrupt.undoing(partial(shutil.rmtree, folder, ignore_errors=True)),
        (Path(folder) / "lock").open("w") as lock,
    ):
        fcntl.flock(lock, fcntl.LOCK_EX)
        Path(lock.name).rename(Path(folder) / _LOCK)  # Other demos see only locked files.
        _remove_left(Path(folder).parent)
        yield Path(folder)


def _remove_left(within: Path) -> None:
    """Remove the folders of ended demos, whose locks the kernel has released."""
    for lock in within.glob(f"{_PREFIX}*/{_LOCK}"):
        with suppress(OSError), lock.open() as opened:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if lock.stat().st_uid == os.getuid():
                shutil.rmtree(lock.parent, ignore_errors=True)


def environment(folder: Path, url: str, reserver: str) -> dict[str, str]:
    """Return the variables for the demo's instructions; PATH is to be prepended.

    Args:
        folder: the folder of the demo, with its kubeconfig.
        url: the URL of the API server.
        reserver: HOST:PORT of Reserver's gRPC API.
    """
    return {
        "KUBECONFIG": str(folder / "kubeconfig"),
        "RESERVER_ADDRESS": reserver,
        "PATH": str(Path(sys.executable).parent),
        "DEMO": str(folder),
        "PODS": f"{url}{_PODS}",
    }


def write_environment(folder: Path, variables: Mapping[str, str]) -> None:
    """Write the file `env` for `. FILE` in a shell."""
    lines = [
        f"export {name}={shlex.quote(value)}" + (":$PATH" if name == "PATH" else "")
        for name, value in variables.items()
    ]
    (folder / "env").write_text("\n".join(lines) + "\n")


def write_pod(folder: Path, file: str, metadata: dict[str, str], cpu: str) -> None:
    """Write a pod to FILE.json, for `create_command`."""
    container = {"name": "main", "image": "demo", "resources": {"requests": {"cpu": cpu}}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [container]},
    }
    (folder / f"{file}.json").write_text(json.dumps(pod, indent=2))


def write_seat(folder: Path) -> None:
    """Write a Reservation to seat.json: half a CPU of worker-2 for web-1."""
    spec = {
        "owners": [{"pod": {"name": "web-1"}}],
        "node": "worker-2",
        "resources": {"cpu": "500m"},
        "ttl": "1h",
    }
    seat = {
        "apiVersion": "reserver.io/v1alpha1",
        "kind": "Reservation",
        "metadata": {"name": "seat", "namespace": "default"},
        "spec": spec,
    }
    (folder / "seat.json").write_text(json.dumps(seat, indent=2))


def create_command(file: str) -> str:
    """Return the command that creates a pod of the folder, with kubectl or else curl."""
    if shutil.which("kubectl"):
        return f"kubectl create -f $DEMO/{file}.json"
    return f"curl -sS --json @$DEMO/{file}.json $PODS"
