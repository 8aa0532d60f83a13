"""The archive of the image for both architectures: the same commit gives the same bytes.

It takes five minutes, Debian's buildah and mmdebstrap, and root.
"""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from hack.dist import version
from hack.image import archive
from hack.image.build import ARCHITECTURES

pytestmark = pytest.mark.timeout(1800)

MACHINES = {"amd64": 62, "arm64": 183}
"""The names of the architectures in ELF."""


def built(folder: Path) -> Path:
    archive.pack(archive.build(folder / "build", "debian"), folder / "image.tar")
    return folder / "image.tar"


def read(tar: tarfile.TarFile, name: str) -> Any:
    file = tar.extractfile(name)
    assert file
    return json.load(file)


def blob(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"


def test_both_architectures_are_in_it_and_two_builds_are_the_same(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name / "build").mkdir(parents=True)
    one, two = built(tmp_path / "one"), built(tmp_path / "two")
    assert one.read_bytes() == two.read_bytes()
    with tarfile.open(one) as tar:
        (whole,) = read(tar, "index.json")["manifests"]
        found = read(tar, blob(whole["digest"]))["manifests"]
        assert [each["platform"]["architecture"] for each in found] == [*ARCHITECTURES]
        for each in found:
            manifest = read(tar, blob(each["digest"]))
            config = read(tar, blob(manifest["config"]["digest"]))
            assert config["architecture"] == each["platform"]["architecture"]
            labels = config["config"]["Labels"]
            assert labels["org.opencontainers.image.version"] == version()
            assert machines(tar, manifest["layers"][-1]) == {MACHINES[config["architecture"]]}


def machines(tar: tarfile.TarFile, layer: dict[str, Any]) -> set[int]:
    """Return for which machines the libraries of a layer are."""
    with tarfile.open(fileobj=tar.extractfile(blob(layer["digest"]))) as files:
        found = set()
        for each in files:
            if each.isfile() and ".so" in Path(each.name).suffixes:
                head = files.extractfile(each)
                assert head
                found.add(int.from_bytes(head.read(20)[18:], "little"))
    return found
