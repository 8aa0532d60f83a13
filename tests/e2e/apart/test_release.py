"""A release is built from a commit alone, and a cluster takes its published manifests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack import dist
from hack.artefacts.gate import notes
from hack.controlplane.build import HOME as BUILT
from hack.controlplane.kubeconfig import kubectl
from hack.go_tool import HELM
from hack.programs import done
from tests.e2e.apart.rendering import by_key
from tests.installing import empty_cluster

pytestmark = [pytest.mark.controlplane, pytest.mark.timeout(600)]

VERSION = dist.version()
IMAGE = "registry.example/team/reserver"
AUTHOR = {f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def checkout(folder: Path) -> Path:
    """Return a repository of its own with the files of this one, committed."""
    listed = _run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    for name in filter(None, listed.split("\0")):
        there = folder / name
        there.parent.mkdir(parents=True, exist_ok=True)
        if (dist.ROOT / name).exists():
            shutil.copyfile(dist.ROOT / name, there, follow_symlinks=False)
    for words in (("init", "--quiet"), ("add", "."), ("commit", "--quiet", "--message=all")):
        _run("git", *words, cwd=folder)
    (folder / ".controlplane").symlink_to(BUILT)
    return folder


def _run(*command: str, cwd: Path = dist.ROOT) -> str:
    env = os.environ | AUTHOR
    return subprocess.run(
        command, cwd=cwd, env=env, check=True, capture_output=True, text=True
    ).stdout


def release(folder: Path, *flags: str, **env: str) -> subprocess.CompletedProcess[Any]:
    """Build one, in a checkout."""
    command = (sys.executable, "-m", "hack.artefacts", f"--image={IMAGE}", *flags)
    told = done(*command, timeout_s=300, cwd=folder, env=os.environ | env)
    assert isinstance(told.stderr, str)
    return told


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the files of a release."""
    folder = checkout(tmp_path_factory.mktemp("one") / "reserver")
    told = release(folder)
    assert told.returncode == 0, told.stderr
    return folder / "dist"


@pytest.mark.release
def test_the_same_commit_gives_the_same_bytes(published: Path, tmp_path: Path) -> None:
    """Elsewhere, on another day, with other habits, and with what an older release left there."""
    folder = checkout(tmp_path / "elsewhere")
    (folder / "dist").mkdir()
    (folder / "dist/kube_reserver-0.0.1-py3-none-any.whl").write_bytes(b"old")
    for path in folder.rglob("*.py"):
        os.utime(path, (1, 1))
    former = os.umask(0o077)
    try:
        told = release(folder, PYTHONHASHSEED="7", TZ="Asia/Tokyo", LC_ALL="C")
    finally:
        os.umask(former)
    assert told.returncode == 0, told.stderr
    names = sorted(each.name for each in published.iterdir())
    assert names == sorted(each.name for each in (folder / "dist").iterdir())
    assert len(names) == 9
    for name in names:
        assert (published / name).read_bytes() == (folder / "dist" / name).read_bytes(), name


def test_the_checksums_name_every_file(published: Path) -> None:
    _run("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=published)
    named = {line.split()[1] for line in (published / "SHA256SUMS").read_text().splitlines()}
    assert named == {each.name for each in published.iterdir()} - {"SHA256SUMS"}


def test_a_dirty_tree_and_a_version_without_a_section_are_refused(
    published: Path, tmp_path: Path
) -> None:
    folder = checkout(tmp_path / "dirty")
    (folder / "left-over").touch()
    project = folder / "pyproject.toml"
    project.write_text(project.read_text().replace(f'version = "{VERSION}"', 'version = "9.9.9"'))
    told = release(folder)
    assert told.returncode == 1
    assert "left-over" in told.stderr
    assert "CHANGELOG.md has no section [9.9.9]" in told.stderr
    assert not (folder / "dist").exists()
    tagged = release(published.parent, "--check", "--tag=v9.9.9")
    assert "the tag v9.9.9" in tagged.stderr
    assert release(published.parent, "--check", f"--tag=v{VERSION}").returncode == 0
    assert published.exists()


def test_the_notes_are_the_section_of_the_changelog(published: Path) -> None:
    text = (dist.ROOT / "CHANGELOG.md").read_text()
    assert (published / "RELEASE-NOTES.md").read_text().strip() == notes(VERSION, text)


def test_the_charts_archive_renders_what_the_chart_does(published: Path, tmp_path: Path) -> None:
    archive = published / f"reserver-{VERSION}.tgz"
    helm = str(HELM.build())

    def rendered(chart: Path, *flags: str) -> dict[Any, Any]:
        fixed = ("--namespace=reserver-system", "--kube-version=v1.37.0")
        return by_key(_run(helm, "template", "reserver", str(chart), *fixed, *flags))

    every = ("--set=moves.enabled=true", "--set=monitoring.dashboard.enabled=true")
    named = f"--set=image.repository={IMAGE}"
    assert rendered(archive, *every) == rendered(dist.ROOT / "charts/reserver", named, *every)
    assert f"{IMAGE}:{VERSION}" in str(rendered(archive))
    _run(helm, "lint", str(archive))
    # Helm itself packs the same files.
    _run(helm, "package", str(dist.ROOT / "charts/reserver"), f"--destination={tmp_path}")
    assert members(archive) == members(tmp_path / archive.name)


def members(archive: Path) -> set[str]:
    with tarfile.open(archive) as tar:
        return {each.name for each in tar if each.isfile()}


def test_a_cluster_installs_the_manifests(published: Path) -> None:
    manifests = published / "install.yaml"
    with empty_cluster() as plane:
        admin = plane.kubeconfig
        kubectl(admin, "apply", "--server-side", "-f", str(manifests))
        kubectl(
            admin, "-n", "reserver-system", "rollout", "status", "deployment/reserver-scheduler"
        )
    (deployment,) = (
        each for each in yaml.safe_load_all(manifests.read_text()) if each["kind"] == "Deployment"
    )
    pod = deployment["spec"]["template"]["spec"]
    images = [each["image"] for each in (*pod["initContainers"], *pod["containers"])]
    assert images == [f"{IMAGE}:{VERSION}", "registry.k8s.io/kube-scheduler:v1.37.0"]
