"""`python -m hack.image.archive OUT` packs the image of both architectures as one OCI archive.

The same commit gives the same bytes on the same base. With `--base debian`, where no registry is
reached, that base is made of Debian's packages (`hack/image/build.py`): to try, not to publish.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from hack.dist import version
from hack.image.build import (
    ARCHITECTURES,
    ROOT,
    NoBuilderError,
    bud,
    buildah,
    need,
    with_its_base,
    with_stand_in,
)

_LIST = "localhost/reserver:all"
_EPOCH = "SOURCE_DATE_EPOCH"


def build(folder: Path, base: str) -> Path:
    """Build the image for each architecture in an empty folder; return its OCI layout.

    Raises:
        NoBuilderError: a tool is missing, or we are not root.
        CalledProcessError: the Dockerfile does not build.
    """
    need(("buildah", *(("mmdebstrap",) if base == "debian" else ())))
    commit, moment = _git("log", "-1", "--format=%H %ct").split()
    os.environ[_EPOCH] = moment  # mmdebstrap reads it.
    about = [f"--build-arg={name}" for name in (f"VERSION={version()}", f"REVISION={commit}")]
    for each in ARCHITECTURES:
        written = with_stand_in if base == "debian" else with_its_base
        bud(
            folder,
            written(folder, each),
            each,
            f"--timestamp={moment}",
            *about,
            f"--manifest={_LIST}",
        )
    layout = folder / "layout"
    buildah(folder, "manifest", "push", "--all", "--quiet", _LIST, f"oci:{layout}:{version()}")
    return layout


def pack(layout: Path, archive: Path) -> None:
    """Write a layout as an archive, without times and owners."""
    with tarfile.open(archive, "w") as tar:
        for path in sorted(_files(layout)):
            info = tarfile.TarInfo(str(path.relative_to(layout)))
            info.size, info.mode = path.stat().st_size, 0o644
            with path.open("rb") as file:
                tar.addfile(info, file)


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file())


def _git(*words: str) -> str:
    command = ("git", "-C", str(ROOT), *words)
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m hack.image.archive", description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--base", choices=("registry", "debian"), default="registry")
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(prefix="reserver-image-") as folder:
            pack(build(Path(folder), options.base), options.out)
    except NoBuilderError as exc:
        sys.exit(str(exc))
    print(options.out)


if __name__ == "__main__":
    main()
