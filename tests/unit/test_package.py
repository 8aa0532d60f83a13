"""The published packages: the page of a package index, and krew's plug-in."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import tarfile
import tomllib
from pathlib import Path

import pytest
import yaml

from hack import dist
from tests import krew

PROJECT = tomllib.loads((dist.ROOT / "pyproject.toml").read_text())["project"]
CLI_PAGE = (dist.ROOT / "docs/cli.md").read_text()
PAGE = (dist.ROOT / PROJECT["readme"]).read_text()


def test_an_index_shows_a_page_without_links_that_lead_nowhere() -> None:
    assert not re.findall(r"\]\((?!https?://)[^)]*\)", PAGE)
    assert "reserver demo" in PAGE
    assert len(PROJECT["description"]) < 100
    for name in ("reserver", "kubectl-reserver", "kubectl_complete-reserver"):
        assert name in PROJECT["scripts"]


def test_pages_name_this_version() -> None:
    named = set(re.findall(r"kube_reserver-([\d.]+)-py3|kubectl-reserver-v([\d.]+)\.tar", CLI_PAGE))
    assert {"".join(each) for each in named} == {dist.version()}
    assert f"\n## [{dist.version()}] - " in (dist.ROOT / "CHANGELOG.md").read_text()


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "kube_reserver-1.2.3-py3-none-any.whl"
    path.write_bytes(b"a wheel")
    return path


def test_the_archive_is_the_same_whenever_it_is_made(wheel: Path) -> None:
    assert dist.archive(wheel) == dist.archive(wheel)
    with tarfile.open(fileobj=io.BytesIO(dist.archive(wheel))) as tar:
        assert {each.name: each.mode for each in tar} == {
            "kubectl-reserver": 0o755,
            wheel.name: 0o644,
            "LICENSE": 0o644,
        }


@pytest.fixture
def published(tmp_path: Path, wheel: Path) -> Path:
    """The output of `make dist` for krew."""
    folder = tmp_path / "dist"
    folder.mkdir()
    dist.write_plug_in(folder, dist.version(), wheel)
    return folder


def test_the_manifest_has_what_krew_validates(published: Path) -> None:
    """Its internal/index/validation/validate.go, and the fields of its pkg/index/types.go."""
    manifest = yaml.safe_load((published / "krew-reserver.yaml").read_text())
    spec = manifest.pop("spec")
    assert manifest == {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "reserver"},
    }
    assert spec.keys() == {"version", "shortDescription", "description", "caveats", "platforms"}
    assert spec["version"] == f"v{PROJECT['version']}"
    assert re.fullmatch(r"[^\r\n]{1,50}", spec["shortDescription"])


@pytest.mark.parametrize("system", ["linux", "darwin"])
def test_what_the_manifest_names_is_in_the_archive(
    published: Path, tmp_path: Path, system: str
) -> None:
    installed = krew.install(published, tmp_path / "store", system)
    assert installed.name == "kubectl-reserver"
    assert os.access(installed, os.X_OK)
    (packed,) = (tmp_path / "store").glob("*.whl")
    assert packed.name in installed.read_text()
    assert packed.read_bytes() == b"a wheel"
    assert (tmp_path / "store/LICENSE").read_text() == (dist.ROOT / "LICENSE").read_text()


def run_plug_in(folder: Path, script: bytes, tool: str) -> subprocess.CompletedProcess[str]:
    """Run the plug-in from a link, as krew does, with one tool on the PATH."""
    tools = folder / "tools"
    tools.mkdir()
    for name in ("readlink", "dirname", "sha256sum"):
        (tools / name).symlink_to(shutil.which(name) or "")
    if tool:
        (tools / tool).write_text(f'#!/bin/sh\necho {tool} "$@"\n')
        (tools / tool).chmod(0o755)
    (folder / "plug-in").write_bytes(script)
    (tools / "kubectl-reserver").symlink_to(folder / "plug-in")
    return subprocess.run(
        ["/bin/sh", str(tools / "kubectl-reserver"), "get", "a b"],
        env={"PATH": str(tools)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ("reserver", "reserver get a b\n"),
        ("uv", "uv tool run --quiet --from WHEEL kubectl-reserver get a b\n"),
        ("pipx", "pipx run --quiet --spec WHEEL kubectl-reserver get a b\n"),
    ],
)
def test_the_plug_in_runs_what_is_installed_or_its_own_wheel(
    tmp_path: Path, wheel: Path, tool: str, said: str
) -> None:
    done = run_plug_in(tmp_path, dist.launcher(wheel), tool)
    assert (done.stdout, done.stderr) == (said.replace("WHEEL", str(wheel)), "")


def test_the_plug_in_says_what_to_install(tmp_path: Path, wheel: Path) -> None:
    done = run_plug_in(tmp_path, dist.launcher(wheel), "")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"pip install {wheel}" in done.stderr


@pytest.mark.parametrize("tool", ["uv", "pipx"])
@pytest.mark.parametrize("other", [b"another wheel", None])
def test_the_plug_in_runs_no_wheel_but_its_own(
    tmp_path: Path, wheel: Path, tool: str, other: bytes | None
) -> None:
    script = dist.launcher(wheel)
    wheel.unlink()
    if other is not None:
        wheel.write_bytes(other)
    done = run_plug_in(tmp_path, script, tool)
    assert (done.returncode, done.stdout) == (1, "")
    assert "is not the wheel that came with this plug-in" in done.stderr


FETCHES = re.compile(
    r"""(?x) \b (?: pip3? \s+ (?:install|download) | pipx \s+ \w+ | uvx
                 | uv \s+ (?:pip\s+install|tool\s+\w+|add|run) ) \b
        [^\n`]*? [\s'"=]
        (?: kube[-_] )? reserver (?= $ | [\s'"`)] | [\[=<>~!@] )"""
)
"""A command that asks the Python index for Reserver by its name, in any of the ways to say so."""

TOLD = re.compile(r"\breserver(\[[a-z]+\]|[=~<>]=)")
"""A requirement, as a person would hand it to such a command."""


def is_bare(line: str) -> bool:
    """Return whether this line runs a package that any stranger may have published."""
    return bool(FETCHES.search(line) or TOLD.search(line))


def test_no_page_and_no_code_has_reserver_fetched_by_its_name() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=dist.ROOT, capture_output=True, text=True, check=True
    )
    read = 0
    for name in filter(None, listed.stdout.split("\0")):
        path = dist.ROOT / name
        if path == Path(__file__) or not path.is_file():
            continue
        text = path.read_bytes().decode(errors="replace")
        read += 1
        bare = [line for line in text.splitlines() if is_bare(line)]
        assert not bare, f"{name}: name a wheel's file instead: {bare}"
    assert read > 500


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("$ pipx install reserver    # or: uv tool install reserver", True),
        ("pipx install 'reserver[client]'", True),
        ("pip install kube-reserver", True),
        ("pip install --user --upgrade kube_reserver==0.2.0", True),
        ("uvx reserver demo", True),
        ("uvx --from kube-reserver reserver demo", True),
        ("uv tool run --quiet --from 'reserver==VERSION' kubectl-reserver", True),
        ("pipx run --spec kube-reserver kubectl-reserver", True),
        ("Needs reserver[tracing].", True),
        ("pipx install ./kube_reserver-0.2.0-py3-none-any.whl[tracing]", False),
        ("pip install './WHEEL[tracing]', or leave it out", False),
        ('uv tool run --quiet --from "$wheel" kubectl-reserver "$@"', False),
        ("uv pip install --python /opt/reserver/bin/python --editable .", False),
        ("/opt/reserver/bin/pip install --no-index /wheels/*.whl", False),
    ],
)
def test_a_bare_name_is_seen(line: str, *, expected: bool) -> None:
    assert is_bare(line) == expected
