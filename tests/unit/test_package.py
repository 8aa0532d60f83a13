"""What is published: what a package index shows, and what krew installs."""

from __future__ import annotations

import hashlib
import io
import re
import subprocess
import tarfile
import tomllib
from pathlib import Path

import pytest

from hack import dist

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


def test_krews_manifest_names_the_archive_by_its_digest() -> None:
    packed = dist.archive("1.2.3")
    digest = hashlib.sha256(packed).hexdigest()
    spec = dist.manifest("1.2.3", digest, "a.tar.gz")["spec"]
    assert isinstance(spec, dict)
    assert spec["version"] == "v1.2.3"
    assert len(spec["shortDescription"]) <= 50
    (platform,) = spec["platforms"]
    assert (platform["sha256"], platform["bin"]) == (digest, "kubectl-reserver")


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
