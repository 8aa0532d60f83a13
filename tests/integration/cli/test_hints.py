"""A wrong word, and the one that is meant: at 80 and 160 columns, and in a pipe."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from structlog.testing import capture_logs

from reserver.reservations.enums import StoreKind
from tests.integration.cli.runs import runs_beside
from tests.integration.cli.screens import Screen
from tests.integration.world import World, serving

pytestmark = pytest.mark.asyncio(loop_scope="module")
FLAGS = "--owner pod/x --node worker-1"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("world")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(folder: Path) -> AsyncIterator[World]:
    with capture_logs():
        async with serving(folder, "worker-1", "worker-2", store=StoreKind.OBJECT) as world:
            await runs_beside(world)("create", "web", "-n", "shop", *FLAGS.split(), "--cpu", "500m")
            spec = {"containers": [{"name": "main", "image": "main"}]}
            pod = {"metadata": {"name": "web-0"}, "spec": spec | {"nodeName": "worker-1"}}
            await world.cluster.client.send("POST", "/api/v1/namespaces/shop/pods", pod)
            yield world


@pytest.fixture(scope="module", params=[80, 160, 0], ids=["80-columns", "160-columns", "a-pipe"])
def screen(world: World, folder: Path, request: pytest.FixtureRequest) -> Iterator[Screen]:
    address, kubeconfig = world.running.grpc_address or "", str(folder / "kubeconfig")
    with Screen(request.param, address, KUBECONFIG=kubeconfig) as screen:
        yield screen


@pytest.mark.parametrize(
    ("words", "status", "hint"),
    [
        ("create a --owner pod/x --node worker1 --cpu 1", 4, "did you mean --node worker-1?"),
        (
            "create a --owner pod/x --node-selector zone=nowhere --cpu 1",
            4,
            "no node has the label zone=nowhere",
        ),
        (
            f"create a {FLAGS} --resource nvidia.com/gpus=1 -n reserver-system",
            4,
            "worker-1 offers too little nvidia.com/gpus",
        ),
        (f"create a {FLAGS} --resource memroy=1Gi", 2, "'memroy' is not a resource"),
        (f"create a {FLAGS} --resource memroy=1Gi", 2, "did you mean memory?"),
        (f"create a {FLAGS} --resource gpu=1", 2, "did you mean nvidia.com/gpu?"),
        (f"create a {FLAGS} --cpu 0", 2, "--cpu, --memory, --resource: the reservation holds"),
        (f"create a {FLAGS} --cpu 1 --expires-at 2020-01-01", 2, "--expires-at: '2020-01-01' is"),
        (
            f"create a {FLAGS} --cpu 1 --expires-at 2020-01-01T00:00:00Z",
            2,
            "--expires-at: '2020-01-01T00:00:00Z' lies in the past",
        ),
        (
            f"create a {FLAGS} --cpu 1 -n shpo",
            1,
            "there is no namespace 'shpo'; did you mean shop?",
        ),
        ("create a --owner deplyoment/x --cpu 1", 2, "did you mean deployment?"),
        ("get --node worker1", 0, "there is no node worker1; did you mean worker-1?"),
        ("get -n shpo", 0, "no reservation is for pods of shpo; did you mean shop?"),
        ("top nodes worker1", 1, "there is no node worker1; did you mean worker-1?"),
        ("top nodes --resource memroy", 1, "no node offers 'memroy'; did you mean memory?"),
        ("top nodes --slot cpu=1,memory=x", 2, "--slot: memory: 'x' is not a quantity"),
        ("ls", 2, "there is no command 'ls'; did you mean get?"),
        ("list", 2, "did you mean get?"),
        ("rm web", 2, "did you mean release?"),
        ("cancel web", 2, "did you mean release?"),
        ("extend web --by 1h", 2, "there is no option --by; did you mean --ttl? See"),
        ("get --selectr a=b", 2, "there is no option --selectr; did you mean --selector? See"),
        (f"create a {FLAGS} --gpu 1", 2, "did you mean --resource nvidia.com/gpu=1?"),
        ("apply -f x --dry-run=server", 2, "--dry-run: takes no value here; write --dry-run alone"),
        (f"create a {FLAGS} --cpu 1 --until 22:00", 2, "does not recur, write --expires-at"),
        (f"create a {FLAGS} --cpu 1 --for 8h", 2, "does not recur, write --ttl"),
        (f"create a {FLAGS} --cpu 1 --lead 5m", 2, "--lead: goes with --every only"),
        ("get -o foo", 2, "--output: 'foo' is not supported; write one of table, wide"),
        ("explain shop/web-0", 2, "did you mean `reserver explain pod shop/web-0`?"),
        ("explain pod shop/web0", 1, "there is no pod shop/web0; did you mean shop/web-0?"),
        ("explain pod web-0", 1, "there is no pod default/web-0; did you mean shop/web-0?"),
        ("explain pod nobody", 1, "there is no pod default/nobody"),
        ("moves -n shop", 0, "no moves in this namespace; -A lists all"),
        ("move shop/web0", 1, "there is no pod shop/web0; did you mean shop/web-0?"),
        ("move web-0", 1, "there is no pod default/web-0; did you mean shop/web-0?"),
        ("move shop/web-0 --to worker1", 1, "there is no node 'worker1'; did you mean worker-1?"),
        ("drain worker1", 1, "there is no node 'worker1'; did you mean worker-1?"),
        ("drain worker1 --dry-run", 1, "there is no node 'worker1'; did you mean worker-1?"),
    ],
)
async def test_the_word_that_is_meant_is_named(
    screen: Screen, words: str, status: int, hint: str
) -> None:
    shown = await asyncio.to_thread(screen.run, *words.split(" "))
    assert hint in shown.words
    assert shown.status == status


async def test_no_pod_is_meant_because_its_namespace_is_the_same(screen: Screen) -> None:
    shown = await asyncio.to_thread(screen.run, "explain", "pod", "shop/w")
    assert shown.words == "reserver: there is no pod shop/w"


@pytest.mark.parametrize("words", ["get", "describe", "release", "extend --ttl 1h"])
async def test_a_name_that_is_over_says_what_became_of_it_also_with_its_namespace(
    world: World, screen: Screen, words: str
) -> None:
    first = words.partition(" ")[0]
    run, name = runs_beside(world), f"over-{screen.columns}-{first}"
    await run("create", name, "-n", "shop", *FLAGS.split(), "--cpu", "1m")
    await run("release", name, "-n", "shop")
    shown = await asyncio.to_thread(screen.run, *words.split(), name, "-n", "shop")
    assert f"'shop/{name}' any more: it was removed unclaimed" in shown.words
