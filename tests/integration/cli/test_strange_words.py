"""Unusual arguments: empty, blank, very long, or with special characters of paths."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from structlog.testing import capture_logs

from hack.presses.invocations import commands, words_of
from reserver.cli import usage_errors
from reserver.reservations.enums import StoreKind
from tests.integration.cli.runs import Run, runs_beside
from tests.integration.world import World, serving

pytestmark = pytest.mark.asyncio(loop_scope="module")

ENDLESS = "a" * 100_000
WORDS = ("", " ", "..", "?x=1#{", "\x1b[31m\u202e", "-1", "9" * 400, "=,", ENDLESS)
LASTING = {("serve",), ("demo",), ("ui",), ("watch",), ("edit",), ("completion",), ("options",)}
NOT_ASKED = {"--reserver-namespace", "--address"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    with capture_logs():
        folder = tmp_path_factory.mktemp("world")
        async with serving(folder, "worker-1", store=StoreKind.OBJECT, pod_moves=True) as world:
            yield world


@pytest.fixture
def run(world: World, tmp_path: Path) -> Run:
    kubeconfig, beside = tmp_path / "kubeconfig", runs_beside(world)
    world.cluster.write_kubeconfig(kubeconfig)

    async def run(*arguments: str, **more: str) -> object:
        return await beside(*arguments, KUBECONFIG=str(kubeconfig), **more)

    return run  # type: ignore[return-value]


def strange() -> list[tuple[str, ...]]:
    """Return lines with a strange word for each argument and option there is, each word in turn."""
    found: list[tuple[str, ...]] = []
    for path, command in commands():
        if path in LASTING or path == ("rebalance", "run"):
            continue
        line = words_of(path, command)
        for each in command.params:
            word = WORDS[len(found) % len(WORDS)]
            flag = max(each.opts, key=len)
            if each.param_type_name == "argument":
                word = word.replace("-1", "1")
                rest = line[len(path) :]
                found.append((*path, word, *rest[not rest[:1] or rest[0][0] != "-" :]))
            elif usage_errors.kind(each) and flag not in NOT_ASKED:
                found.append((*line, f"{flag}={word}"))
    return found


async def test_no_command_breaks_by_a_strange_word(run: Run) -> None:
    lines = strange()
    assert len(lines) > 150
    for line in lines:
        ended = await run(*line)
        said = [each[:40] for each in line]
        assert ended.exception is None or isinstance(ended.exception, SystemExit), said
        assert ended.exit_code in {0, 1, 2, 4, 5}, (said, ended.output[:500])
        assert max(map(len, ended.stderr.splitlines()), default=0) < 1_100, said
        assert not {"\x1b", "\u202e"} & set(ended.output), said


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (("release", "--all", "--yes", "--node="), "--node: is empty; leave it out"),
        (("release", "--yes", "-l", " "), "--selector: is empty; leave it out"),
        (("extend", "--ttl", "1h", "-l", "\n"), "--selector: is empty; leave it out"),
        (("get", "--owner", ""), "--owner: is empty; leave it out"),
        (("restore", ""), "NAME: is empty; name a reservation that is over"),
        (("apply", "-f", "-", "--prune", "--yes", "-l", " "), "--prune: --selector is missing"),
        (("move", "shop/.."), "POD: 'shop/..' is not a pod; write NAME or NAMESPACE/NAME"),
        (("move", "web-0", "--to", "?x"), "--to: '?x' is not a node's name"),
        (("move", "web-0", "--timeout", "0"), "--timeout: is zero"),
        (("move", "web-0", "-n", "../x"), "--namespace: '../x' is not a namespace's name"),
        (("drain", "a,b"), "NODE: 'a,b' is not a node's name"),
        (("moves", "pause", ""), "NAME: '' is not a PodMove's name"),
        (("get", "--token", "a\r"), "token: has a line break"),
        (("preflight", "-f", ENDLESS), "cannot be read: File name too long"),
    ],
)
async def test_what_cannot_be_meant_changes_nothing(
    run: Run, line: tuple[str, ...], words: str
) -> None:
    owner = ("--owner", "pod/web-0", "--cpu", "100m")
    await run("create", "kept", *owner)
    ended = await run(*line, text="")
    assert ended.exit_code == (1 if "--token" in line else 2)
    assert words in ended.stderr
    assert (await run("get", "kept")).exit_code == 0
