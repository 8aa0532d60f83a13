"""What is published: what a package index shows, and what krew installs."""

from __future__ import annotations

import io
import os
import re
import subprocess
import tarfile
import tomllib
from pathlib import Path

import msgspec
import pytest

from hack import dist
from tests import krew

PROJECT = tomllib.loads((dist.ROOT / "pyproject.toml").read_text())["project"]
PAGE = (dist.ROOT / PROJECT["readme"]).read_text()


def test_an_index_shows_a_page_without_links_that_lead_nowhere() -> None:
    assert not re.findall(r"\]\((?!https?://)[^)]*\)", PAGE)
    assert "reserver demo" in PAGE
    assert len(PROJECT["description"]) < 100
    for name in ("reserver", "kubectl-reserver", "kubectl_complete-reserver"):
        assert name in PROJECT["scripts"]


def test_the_archive_is_the_same_whenever_it_is_made() -> None:
    assert dist.archive("1.2.3") == dist.archive("1.2.3")
    with tarfile.open(fileobj=io.BytesIO(dist.archive("1.2.3"))) as tar:
        assert {each.name: each.mode for each in tar} == {
            "kubectl-reserver": 0o755,
            "LICENSE": 0o644,
        }
        launcher = tar.extractfile("kubectl-reserver")
        assert launcher is not None
        assert b"reserver==1.2.3" in launcher.read()


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """What `make dist` writes for krew."""
    dist.write_plug_in(tmp_path, dist.version())
    return tmp_path


def test_krew_takes_the_manifest(published: Path) -> None:
    plugin = krew.read(published / "krew-reserver.yaml")
    assert plugin.metadata.name == "reserver"
    assert plugin.spec.version == f"v{PROJECT['version']}"
    assert len(plugin.spec.short_description) <= 50


@pytest.mark.parametrize("system", ["linux", "darwin"])
def test_what_the_manifest_names_is_in_the_archive(
    published: Path, tmp_path: Path, system: str
) -> None:
    installed = krew.install(published / "krew-reserver.yaml", tmp_path / "store", system)
    assert installed.name == "kubectl-reserver"
    assert os.access(installed, os.X_OK)
    assert f"reserver=={PROJECT['version']}" in installed.read_text()
    assert (tmp_path / "store/LICENSE").read_text() == (dist.ROOT / "LICENSE").read_text()


def test_an_archive_that_is_not_the_one_of_the_manifest_is_refused(
    published: Path, tmp_path: Path
) -> None:
    (archive,) = published.glob("*.tar.gz")
    archive.write_bytes(archive.read_bytes() + b" ")
    with pytest.raises(krew.Refused, match="sha256"):
        krew.install(published / "krew-reserver.yaml", tmp_path / "store", "linux")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("v1alpha2", "v1"),
        ("kind: Plugin", "kind: Plug"),
        ("name: reserver", "name: a plug"),
        (f"version: v{PROJECT['version']}", "version: newest"),
        ("shortDescription: ", "shortDescription: ''\n  homepage: "),
        ("key: os", "key: system"),
        ("sha256: ", "sha256: x"),
        ("to: .", "to: ''"),
        ("bin:", "binary:"),
    ],
)
def test_a_manifest_that_krew_would_refuse_is_refused(published: Path, old: str, new: str) -> None:
    path = published / "krew-reserver.yaml"
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises((krew.Refused, msgspec.ValidationError)):
        krew.read(path)


@pytest.mark.parametrize("tool", ["reserver", "uv", "pipx", ""])
def test_the_plug_in_runs_what_is_installed(tmp_path: Path, tool: str) -> None:
    if tool:
        (tmp_path / tool).write_text(f'#!/bin/sh\necho {tool} "$@"\n')
        (tmp_path / tool).chmod(0o755)
    done = subprocess.run(
        ["/bin/sh", str(dist.LAUNCHER), "get", "a b"],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    if tool:
        assert done.stdout.startswith(f"{tool} ")
        assert done.stdout.endswith("get a b\n")
    else:
        assert (done.returncode, "install it with pipx or uv" in done.stderr) == (1, True)
