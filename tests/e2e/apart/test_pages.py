"""The commands of README and docs do what the pages say, on the demo's cluster.

Those of docs/cli.md run on a real control plane (tests/e2e/test_cli.py). Pages whose commands no
test runs as they are written are named here, with the test that shows what they say.
"""

from __future__ import annotations

import asyncio
import io
import re
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from rich.console import Console

from hack.controlplane.build import bin_dir
from reserver.cli.demo_folder import demo_folder
from reserver.cli.demo_run import play, started

pytestmark = pytest.mark.controlplane  # for its kubectl

ROOT = Path(__file__).parents[3]
PAGES = ("README.md", "docs/crd.md", "docs/quotas.md", "docs/tutorial.md")
SET_UPS = {
    "docs/quotas.md": ("kubectl apply -f examples/quota.yaml", "kubectl create -f held.yaml")
}
"""What there is before the first command of a page."""
ELSEWHERE = {
    "docs/cli.md": "tests/e2e/test_cli.py",
    "docs/operations.md": "tests/e2e/test_manifests.py, for what is there to be applied",
    "docs/tutorial-cluster.md": "tests/e2e/test_manifests.py",
    "docs/grpc.md": "tests/e2e/test_grpc.py",
    "docs/rebalance.md": "tests/unit/cli/test_plan.py and test_rebalance.py",
    "docs/reservations.md": "tests/integration/test_endings.py",
    "docs/promises.md": "tests/e2e/test_chaos.py",
    "docs/moves.md": "tests/e2e/apart/test_moves.py",
    "docs/patches.md": "tests/e2e/apart/test_patches.py",
    "CONTRIBUTING.md": ".ci/run",
    "PACKAGE.md": "make dist, and tests/e2e/test_cli.py",
}
NOT_HERE = ("make ", "reserver migrate", "reserver demo")
"""Commands that start something else, or need what the demo does not have."""

_PATIENCE_S = 10.0
_BLOCK = re.compile(r"^```(console|yaml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_VARYING = (
    (re.compile(r"\b(?:\d+[dhms]){1,2}\b"), "SPAN"),
    (re.compile(r"\b20\d\d-\d\d-\d\dT[\d:.]+Z"), "MOMENT"),
    (re.compile(r"[ \t]+"), " "),
    (re.compile(r" $", re.MULTILINE), ""),
)


_HELD = """\
apiVersion: reserver.io/v1alpha1
kind: Reservation
metadata: {{name: {name}, namespace: shop}}
spec:
  owners: [{{selector: {{matchLabels: {{app: web}}}}}}]
  node: {node}
  resources: {{cpu: {cpu}{more}}}
  slots: {slots}
  ttl: 1h
---
"""
QUOTA_USED = "".join(
    _HELD.format(name=f"held-{node}", node=node, cpu=20, more=", memory: 40Gi", slots=1)
    for node in ("worker-1", "worker-2", "worker-3")
) + _HELD.format(name="web", node="worker-3", cpu=2, more="", slots=4)
"""Three that use 60 CPUs and 120 GiB of a quota, and one more."""


@dataclass(frozen=True)
class Command:
    """A command of a page, and what the page says that it prints; nothing if it does not say."""

    line: str
    expected: str


def blocks(page: str) -> Iterator[Command | tuple[str, str]]:
    """Yield the commands of a page, and its files as (name, content), in their order."""
    for kind, block in _BLOCK.findall((ROOT / page).read_text()):
        if kind == "yaml":
            name = re.match(r"# (\S+\.yaml)\n", block)
            if name:
                yield name[1], block
            continue
        for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, _, expected = step.partition("\n")
            yield Command(line, expected)


def normal(text: str) -> list[str]:
    for pattern, word in _VARYING:
        text = pattern.sub(word, text)
    return text.strip().splitlines()


@pytest.mark.parametrize("page", PAGES)
async def test_the_page_shows_what_happens(page: str, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "held.yaml").write_text(QUOTA_USED)
    with demo_folder() as folder:
        async with started(folder, Console(file=io.StringIO())) as demo:
            assert await play(demo, folder)
            for line in SET_UPS.get(page, ()):
                await _run(line, folder, tmp_path)
            for block in blocks(page):
                if not isinstance(block, Command):
                    (tmp_path / block[0]).write_text(block[1])
                elif not block.line.startswith(NOT_HERE):
                    said = await _run(block.line, folder, tmp_path)
                    if block.line.startswith("kubectl get"):
                        said = await _settled(block, said, folder, tmp_path)
                    assert not block.expected or normal(said) == normal(block.expected), said


async def _settled(command: Command, said: str, folder: Path, here: Path) -> str:
    """Repeat a command until it prints what is expected: a status follows within a second or so."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_PATIENCE_S):
            while command.expected and normal(said) != normal(command.expected):
                said = await _run(command.line, folder, here)
    return said


async def _run(line: str, folder: Path, here: Path) -> str:
    """Run a command in a terminal that knows the demo's cluster; return what it printed."""
    done = await asyncio.to_thread(
        subprocess.run,
        ["bash", "-c", f"PATH={bin_dir()}:$PATH; . {folder}/env; {line}"],
        cwd=here,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_every_page_with_commands_is_run_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]
    with_commands = {str(p.relative_to(ROOT)) for p in pages if "```console" in p.read_text()}
    assert with_commands <= {*PAGES, *ELSEWHERE}
