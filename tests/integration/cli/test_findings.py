"""The first commands of a new user, in terminals of 80 and 160 columns and in a pipe."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
import pytest_asyncio
from structlog.testing import capture_logs

from tests import forked
from tests.integration.cli.runs import runs_beside, write
from tests.integration.cli.screens import Screen, Shown
from tests.integration.world import World, serving
from tests.waiting import until_answered

pytestmark = pytest.mark.asyncio(loop_scope="module")

Show = Callable[..., Awaitable[Shown]]
OWNERS = [{"pod": {"name": "web-0", "namespace": "shop"}}]
_NUMBERS = count(1)
SPEC = {"owners": OWNERS, "node": "worker-1", "resources": {"cpu": "100m"}}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    with capture_logs():
        async with serving(tmp_path_factory.mktemp("world"), "worker-1", "worker-2") as world:
            yield world


@pytest.fixture(scope="module", params=[80, 160, 0], ids=["80-columns", "160-columns", "a-pipe"])
def screen(world: World, request: pytest.FixtureRequest) -> Iterator[Screen]:
    with Screen(request.param, world.running.grpc_address or "") as screen:
        yield screen


@pytest.fixture
def show(screen: Screen) -> Show:
    """Run a command; whatever it shows fits, and a pipe gets nothing that a terminal obeys."""

    async def show(*arguments: str, typed: str = "") -> Shown:
        shown = await asyncio.to_thread(screen.run, *arguments, typed=typed)
        if not screen.columns:
            assert "\x1b" not in shown.raw
        assert "Traceback" not in shown.text
        assert "Value error" not in shown.text
        return shown

    return show


def fits(shown: Shown, screen: Screen) -> bool:
    return not screen.columns or max(map(len, shown.text.splitlines())) <= screen.columns


@pytest.fixture
def name(screen: Screen) -> str:
    """A name that no other test uses."""
    return f"r{screen.columns}-{next(_NUMBERS)}"


async def made(show: Show, name: str, *flags: str) -> None:
    owner = ("--owner", "pod/web-0", "-n", "shop")
    shown = await show("create", name, "--node", "worker-1", *owner, "--cpu", "100m", *flags)
    assert shown.status == 0, shown.text


async def test_the_name_that_get_prints_is_enough(show: Show, world: World, name: str) -> None:
    await write(world, name, {f"{name}-seat": json.dumps(SPEC)})
    while f"{name}-seat" not in (await show("get")).words:
        pass
    for command in (("get",), ("describe",), ("extend", "--ttl", "2h"), ("release",)):
        assert (await show(*command, f"{name}-seat")).status == 0


async def test_what_can_never_fit_is_refused(show: Show, name: str) -> None:
    flags = ("--owner", "pod/a", "--cpu", "64")
    shown = await show("create", name, "--node", "worker-2", *flags)
    assert shown.status == 4
    assert f"{name}: worker-2 offers too little cpu (4 of 64); it would never fit" in shown.words
    unknown = await show("create", name, "--node", "worker-99", *flags)
    assert "node 'worker-99' does not exist" in unknown.words


async def test_broken_entries_are_shown(
    show: Show, screen: Screen, world: World, name: str
) -> None:
    broken = SPEC | {"resources": {"cpu": "two"}}
    await write(world, name, {f"{name}-bad": json.dumps(broken)})
    while f"{name}-bad Invalid" not in (await show("get", "--phase", "invalid")).words:
        pass
    shown = await show("describe", f"{name}-bad")
    assert "resources.cpu: 'two' is not a quantity; write a Kubernetes quantity" in shown.words
    assert fits(await show("get"), screen)


async def test_no_traceback_whatever_is_asked_for(show: Show) -> None:
    for words in ("get ghost", "describe ghost", "release ghost", "explain pod shop/ghost"):
        shown = await show(*words.split())
        assert (shown.status, "there is no" in shown.words) == (1, True)
    assert (await show("get", "--kubeconfig", "/nope", "--address", "")).status == 2


async def test_useless_files_are_refused(show: Show, tmp_path: Path) -> None:
    past = {"name": "a", "spec": SPEC | {"expiresAt": "2020-01-31T10:00:00Z"}}
    (tmp_path / "past.json").write_text(json.dumps(past))
    shown = await show("validate", "-f", str(tmp_path))
    assert (shown.status, "lies in the past" in shown.words) == (1, True)
    store = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "s"}}
    text = json.dumps(store | {"data": {"a": json.dumps(SPEC)}})
    (tmp_path / "past.json").write_text(text)
    shown = await show("validate", "-f", str(tmp_path))
    assert (shown.status, "lacks reserver.io/store" in shown.words) == (1, True)


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        ("serve --grpc-address 9443", "write ADDRESS:PORT, e.g. 127.0.0.1:9443"),
        ("create a --node n --strategy pack --owner pod/a", "--strategy: excludes --node"),
        ("create a --ttl 1h --expires-at x --owner pod/a", "--expires-at: excludes --ttl"),
        ("get --phase lost", "write one of Pending, Active, Claimed, Expired, Failed, Invalid"),
        ("get --nope", "there is no option --nope; did you mean --node?"),
    ],
)
async def test_a_remedy_is_right(show: Show, words: str, remedy: str) -> None:
    shown = await show(*words.split())
    assert shown.status == 2
    assert remedy in shown.words


async def test_a_duration_that_is_printed_is_taken(show: Show, name: str) -> None:
    await made(show, name, "--ttl", "30d")
    shown = await show("extend", name, "--ttl", "2d12h")
    assert f"{name} extended: 100m CPU on worker-1 held for shop/pod/web-0, until" in shown.words
    assert "2d12h" in (await show("get", name)).words


@pytest.mark.parametrize("words", ["", "serve", "create", "get", "top nodes", "rebalance plan"])
async def test_help_is_whole_at_any_width(show: Show, screen: Screen, words: str) -> None:
    shown = await show(*words.split(), "--help")
    assert shown.status == 0
    assert fits(shown, screen)
    if words == "serve":
        assert "--extender-client-ca-file FILE" in shown.words
    assert not any(kind in shown.text for kind in ("<str>", "<bool>", "list["))


async def test_numbers_stand_beside_bars(show: Show, screen: Screen) -> None:
    shown = await show("top", "nodes", "--slot", "cpu=1")
    assert shown.status == 0
    assert "worker-1" in shown.words
    assert "16Gi" in shown.words
    assert fits(shown, screen)


async def test_odd_amounts_are_rounded_for_people_and_exact_for_programs(
    world: World, show: Show, screen: Screen, name: str
) -> None:
    odd = SPEC | {"node": "worker-2", "resources": {"memory": "4000000005"}}
    await write(world, name, {f"{name}-odd": json.dumps(odd)})

    async def is_exact() -> bool:
        return "4000000005" in (await show("top", "nodes", "-o", "csv")).text

    await until_answered(is_exact)
    shown = await show("top", "nodes", "worker-2")
    assert "12.3Gi" in shown.words
    assert "4000000005" not in shown.words
    await show("release", f"{name}-odd")
    assert fits(shown, screen)


async def test_owners_show_their_namespace(show: Show, screen: Screen, name: str) -> None:
    await made(show, name)
    assert "shop/pod/web-0" in (await show("describe", name)).words
    wide = await show("get", "-o", "wide")
    assert name in wide.words
    assert "shop/pod/web-0" in wide.words
    assert "ONE SLOT HOLDS" in wide.words
    assert fits(wide, screen)


async def test_the_small_ones(show: Show, name: str) -> None:
    assert (await show("--version")).text.startswith("reserver ")
    await made(show, name)
    assert name in (await show("get", "-A")).words
    assert name in (await show("get", name, "-n", "shop")).words
    assert "#compdef reserver" in (await show("completion", "zsh")).text
    refused = await show("get", "--address", "127.0.0.1:1")
    assert refused.status == 3
    assert "retrying for" in refused.words
    assert "cannot reach reserver at 127.0.0.1:1" in refused.words


async def test_tab_offers_names_nodes_and_namespaces(world: World, tmp_path: Path) -> None:
    address, name = str(world.running.grpc_address), "offered"
    run = runs_beside(world)
    world.cluster.write_kubeconfig(tmp_path / "kubeconfig")
    pod = {"metadata": {"name": "web-7"}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
    await world.cluster.client.send("POST", "/api/v1/namespaces/shop/pods", pod)
    await run(
        "create", name, "--node", "worker-2", "--owner", "pod/a", "-n", "tab", "--cpu", "100m"
    )
    for words, offered in (
        (f"reserver describe {name[:-1]}", name),
        ("reserver drain worker-", "worker-2"),
        ("reserver move shop/web-0 --to worker-", "worker-2"),
        ("reserver top nodes --resource mem", "memory"),
        ("reserver get --sort-by spec.n", "spec.node"),
        ("reserver top nodes worker-", "worker-2"),
        ("reserver get -n ta", "tab"),
        ("reserver create a -n ta", "tab"),
        ("reserver move shop/we", "shop/web-7"),
        ("reserver explain pod -n shop we", "web-7"),
        ("reserver create a -n shop --owner pod/we", "pod/web-7"),
    ):
        told = await asyncio.to_thread(
            forked.run,
            environment={
                **os.environ,
                "RESERVER_ADDRESS": address,
                "KUBECONFIG": str(tmp_path / "kubeconfig"),
                "_RESERVER_COMPLETE": "complete_fish",
                "_TYPER_COMPLETE_FISH_ACTION": "get-args",
                "_TYPER_COMPLETE_ARGS": words,
            },
        )
        assert offered in told.stdout.split(), words
    await run("release", name)


async def test_a_terminal_is_asked_and_a_pipe_is_not(show: Show, screen: Screen, name: str) -> None:
    await made(show, name)
    owner = ("--owner", "pod/web-0", "-n", "shop")
    typed = "n\n" if screen.columns else ""
    shown = await show("release", "--all", *owner, typed=typed)
    assert shown.status == (1 if screen.columns else 2)
    said = "nothing released" if screen.columns else "pass --yes"
    assert said in shown.words
    assert name in (await show("get")).words
    assert f"{name} released" in (await show("release", "--all", *owner, "--yes")).words


async def test_apply_update_and_a_manifest_read_the_same(
    show: Show, tmp_path: Path, name: str
) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"name": name, "spec": SPEC}))
    file = str(tmp_path / "a.json")
    assert f"{name} created: 100m CPU on worker-1 held" in (await show("apply", "-f", file)).words
    assert f"{name} unchanged" in (await show("apply", "-f", file)).words
    assert (
        f"{name} updated: 2 slots of 100m CPU on worker-1"
        in (await show("update", name, "--slots", "2")).words
    )
    assert f"{name} configured: 100m CPU on worker-1" in (await show("apply", "-f", file)).words
    shown = await show("create", "-f", file, "--dry-run", "-o", "yaml")
    assert "kind: Reservation" in shown.text
