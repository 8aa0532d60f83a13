"""Builds the image by the project's own Dockerfile with buildah, for each architecture.

Where no registry is reached, a base made of Debian's packages stands in place of the one that the
Dockerfile names: the same release of Debian, with the same minor version of Python.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
TOOLS = ("mmdebstrap", "buildah", "runc")
"""Debian's packages that are needed, and their commands."""

HERE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), "amd64")
"""The architecture of this machine, in the words of OCI."""

ARCHITECTURES = ("amd64", "arm64")
"""The architectures of a published image."""

_BASE, _IMAGE = "localhost/base", "localhost/reserver:dev"
_DOCKERFILE = (ROOT / "Dockerfile").read_text()
_LINE = re.compile(r"^FROM .*$", re.MULTILINE)
_FROM = re.compile(r"^FROM (?:--platform=\S+ )?(\S+)", re.MULTILINE)
_BASE_FILE = """\
FROM scratch
ADD base.tar /
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
"""
_PIP = ("/etc/pip.conf", "/etc/ssl/certs")
"""pip and uv ask as they do here, and trust whom they trust here."""


class NoBuilderError(Exception):
    """The tools that a build lacks, for a person."""


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
    """Return the base image of the Dockerfile."""
    (name,) = set(_FROM.findall(_DOCKERFILE))
    return str(name)


def need(tools: Sequence[str]) -> None:
    """Check that we can build here.

    Raises:
        NoBuilderError: a tool is missing, or we are not root.
    """
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if missing:
        raise NoBuilderError(
            f"missing: apt-get install --no-install-recommends {' '.join(missing)}"
        )
    if os.geteuid() != 0:
        raise NoBuilderError("building and running an image takes root here")


def build(folder: Path) -> Image:
    """Build the image for this machine, in a folder that is empty.

    Raises:
        NoBuilderError: a tool is missing, or we are not root.
        CalledProcessError: the Dockerfile does not build.
    """
    need(TOOLS)
    dockerfile = with_stand_in(folder, HERE)
    files = folder / "files"
    into = (f"--output=type=local,dest={files}", f"--tag={_IMAGE}")
    bud(folder, dockerfile, HERE, *into)
    buildah(folder, "push", "--quiet", _IMAGE, f"oci:{folder / 'oci'}:dev")
    shutil.rmtree(folder / "storage")
    files.chmod(0o755)  # As `/` is; buildah lets nobody else into the folder that it writes.
    image = _read(folder / "oci", files)
    print("MiB to pull, by layer:", *(f"{size / (1 << 20):.0f}" for size in image.layers))
    return image


def bud(folder: Path, dockerfile: Path, architecture: str, *arguments: str) -> None:
    """Build a Dockerfile, from this checkout."""
    volumes = [f"--volume={path}:{path}:ro" for path in _PIP if Path(path).exists()]
    where = (f"--file={dockerfile}", f"--platform=linux/{architecture}")
    buildah(folder, "bud", "--quiet", "--isolation=chroot", *where, *volumes, *arguments, str(ROOT))


def with_stand_in(folder: Path, architecture: str) -> Path:
    """Return the Dockerfile with bases made of Debian's packages: where it runs, and for what."""
    for each in {HERE, architecture}:
        _make_base(folder / f"base-{each}", each)
    return _written(folder, architecture, {each: f"{_BASE}-{each}" for each in ARCHITECTURES})


def with_its_base(folder: Path, architecture: str) -> Path:
    """Return the Dockerfile with the names in full, which only Docker knows in short."""
    name, _, digest = base_image().partition("@")
    full = f"docker.io/library/{name.partition(':')[0]}@{digest}"
    return _written(folder, architecture, dict.fromkeys(ARCHITECTURES, full))


def _written(folder: Path, architecture: str, bases: Mapping[str, str]) -> Path:
    lines = iter(
        (
            f"FROM --platform=linux/{HERE} {bases[HERE]} AS build",
            f"FROM --platform=linux/{architecture} {bases[architecture]}",
        )
    )
    made = folder / f"Dockerfile-{architecture}"
    made.write_text(_LINE.sub(lambda _: next(lines), _DOCKERFILE))
    return made


def _make_base(context: Path, architecture: str) -> None:
    """Make what stands for the base; one of another architecture is unpacked and not set up."""
    if context.exists():
        return
    (release,) = re.findall(r"-slim-(\w+)@", base_image())
    context.mkdir(parents=True)
    # As in the base that it stands for, Python is called python.
    link = '--customize-hook=ln -s /usr/bin/python3 "$1/usr/local/bin/python"'
    # What Debian compiles as it sets packages up goes by the time.
    plain = '--customize-hook=find "$1/usr" -name __pycache__ -prune -exec rm -r {} +'
    of_all = ("--variant=extract", "--include=?essential")
    variant = ("--variant=minbase",) if architecture == HERE else of_all
    what = (*variant, "--include=python3-venv,ca-certificates", link, plain, release)
    tar, of = str(context / "base.tar"), f"--architectures={architecture}"
    _run("mmdebstrap", "--quiet", "--mode=root", of, *what, tar)
    (context / "Dockerfile").write_text(_BASE_FILE)
    where = (f"--platform=linux/{architecture}", f"--tag={_BASE}-{architecture}")
    buildah(
        context.parent,
        "bud",
        "--quiet",
        "--isolation=chroot",
        "--timestamp=0",
        *where,
        str(context),
    )


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


def buildah(folder: Path, *command: str) -> None:
    """Call buildah with a storage of its own, which is not mounted anywhere."""
    storage = (f"--root={folder / 'storage'}", f"--runroot={folder / 'run'}")
    _run("buildah", *storage, "--storage-driver=vfs", *command)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
