"""Builds the image by the project's own Dockerfile, where no registry is reached (two minutes).

In place of the base that the Dockerfile names stands one made of Debian's packages: the same
release of Debian, with the same minor version of Python. All else is as `make image` has it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
TOOLS = ("mmdebstrap", "buildah", "runc")
"""Debian's packages that are needed, and their commands."""

_BASE, _IMAGE = "localhost/base", "localhost/reserver:dev"
_BASE_FILE = """\
FROM scratch
ADD base.tar /
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
"""
_PIP = ("/etc/pip.conf", "/etc/ssl/certs")
"""pip asks as it does here, and trusts whom it trusts here."""


class NoBuilderError(Exception):
    """What is missing here, for a person."""


@dataclass(frozen=True, slots=True)
class Image:
    """An image.

    Attributes:
        files: its root file system.
        config: its configuration, as the OCI's image specification has it: User, Env, Entrypoint.
        layers: of the base and of ours, in bytes, compressed as a node pulls them.
    """

    files: Path
    config: dict[str, Any]
    layers: tuple[int, ...]


def base_image() -> str:
    """Return what the Dockerfile names."""
    (name,) = set(re.findall(r"^FROM (\S+)", (ROOT / "Dockerfile").read_text(), re.MULTILINE))
    return str(name)


def build(folder: Path) -> Image:
    """Build the image in a folder that is empty.

    Raises:
        NoBuilderError: a tool is missing, or we are not root.
        CalledProcessError: the Dockerfile does not build.
    """
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        raise NoBuilderError(
            f"missing: apt-get install --no-install-recommends {' '.join(missing)}"
        )
    if os.geteuid() != 0:
        raise NoBuilderError("building and running an image takes root here")
    _make_base(folder / "context")
    volumes = [f"--volume={path}:{path}:ro" for path in _PIP if Path(path).exists()]
    instead = f"--build-context={base_image()}=docker-image://{_BASE}"
    files = folder / "files"
    into = (f"--output=type=local,dest={files}", f"--tag={_IMAGE}")
    _buildah(folder, "bud", "--isolation=chroot", instead, *volumes, *into, str(ROOT))
    _buildah(folder, "push", _IMAGE, f"oci:{folder / 'oci'}:dev")
    shutil.rmtree(folder / "storage")
    files.chmod(0o755)  # As `/` is; buildah lets nobody else into the folder that it writes.
    image = _read(folder / "oci", files)
    print("MiB to pull, by layer:", *(f"{size / (1 << 20):.0f}" for size in image.layers))
    return image


def _make_base(context: Path) -> None:
    """Make what stands for the base."""
    (release,) = re.findall(r"-slim-(\w+)@", base_image())
    context.mkdir(parents=True)
    # As in the base that it stands for, Python is called python.
    link = '--customize-hook=ln -s /usr/bin/python3 "$1/usr/local/bin/python"'
    what = ("--variant=minbase", "--include=python3-venv", link, release)
    _run("mmdebstrap", "--quiet", "--mode=root", *what, str(context / "base.tar"))
    (context / "Dockerfile").write_text(_BASE_FILE)
    _buildah(context.parent, "bud", "--isolation=chroot", f"--tag={_BASE}", str(context))


def _read(layout: Path, files: Path) -> Image:
    """Read an image as the OCI lays it out."""

    def blob(digest: str) -> dict[str, Any]:
        read: dict[str, Any] = json.loads(
            (layout / "blobs" / digest.replace(":", "/")).read_bytes()
        )
        return read

    index = json.loads((layout / "index.json").read_bytes())
    manifest = blob(index["manifests"][0]["digest"])
    layers = tuple(layer["size"] for layer in manifest["layers"])
    return Image(files, blob(manifest["config"]["digest"])["config"], layers)


def _buildah(folder: Path, command: str, *arguments: str) -> None:
    """Call buildah with a storage of its own, which is not mounted anywhere."""
    storage = (f"--root={folder / 'storage'}", f"--runroot={folder / 'run'}")
    _run("buildah", *storage, "--storage-driver=vfs", command, "--quiet", *arguments)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
