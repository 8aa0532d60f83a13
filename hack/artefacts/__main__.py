"""`make release` builds the files of a release in dist/ and names each file in SHA256SUMS.

It refuses a work tree that differs from its commit, and a version that CHANGELOG.md lacks. The
bytes depend on the commit and the pins alone, so anyone can build and compare the files.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from hack import dist
from hack.artefacts.gate import notes, problems
from hack.artefacts.kubernetes import chart, manifests


def build(image: str, others: Sequence[Path]) -> list[Path]:
    """Write all files of a release; return them."""
    version = dist.version()
    dist.build()
    (dist.OUT / f"reserver-{version}.tgz").write_bytes(chart(image))
    (dist.OUT / "install.yaml").write_text(manifests(image, version))
    (dist.OUT / "RELEASE-NOTES.md").write_text(notes(version, _changelog()) + "\n")
    built = [path for kind in ("*.whl", "*.t*gz", "*.yaml", "*.md") for path in dist.OUT.glob(kind)]
    files = sorted([*built, *others])
    (dist.OUT / "SHA256SUMS").write_text(dist.sums(files))
    return [*files, dist.OUT / "SHA256SUMS"]


def _changelog() -> str:
    return (dist.ROOT / "CHANGELOG.md").read_text()


def _git(*words: str) -> str:
    command = ("git", "-C", str(dist.ROOT), *words)
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main() -> None:
    """Refuse, or build."""
    parser = argparse.ArgumentParser(prog="make release", description=__doc__)
    parser.add_argument("--image", default="reserver", help="the image's name, without its tag")
    parser.add_argument("--also", type=Path, nargs="*", default=[], help="files built before")
    parser.add_argument("--tag", action="append", default=[], help="that the commit is to have")
    parser.add_argument("--check", action="store_true", help="only refuse what cannot be released")
    options = parser.parse_args()
    tags = [*options.tag, *_git("tag", "--points-at", "HEAD").split()]
    status = _git("status", "--porcelain")
    found = [*problems(dist.version(), options.image, _changelog(), status, tags)]
    if found:
        sys.exit("no release:\n- " + "\n- ".join(found))
    if options.check:
        return
    for path in build(options.image, [each.absolute() for each in options.also]):
        print(f"{path.relative_to(dist.ROOT)}  {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
