"""The typed client on the embedded cluster, and the example that uses it."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hack.controlplane.process import HeldPort
from hack.programs import done
from reserver import app
from reserver.client import (
    CallFailed,
    ChangeKind,
    Client,
    ControllerOwner,
    LabelRequirement,
    OwnerSelector,
    Phase,
    PodOwner,
    Policy,
    Selection,
    Spec,
)
from reserver.reservations.enums import StoreKind
from reserver.settings.serve import Settings
from tests.integration.world import World, serving

EXAMPLE = Path(__file__).parents[2] / "examples/global_manager.py"
SPEC = Spec(
    owners=(PodOwner(namespace="shop", name="web-0"),), node="worker-1", resources={"cpu": "2"}
)


@pytest.fixture(params=StoreKind)
async def world(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[World]:
    async with serving(tmp_path, store=request.param) as world:
        yield world


async def test_what_is_held_is_released_when_the_block_ends(world: World, client: Client) -> None:
    ledger = world.running.assembly.ledger
    async with client.hold("move", SPEC) as reservation:
        assert (reservation.phase, reservation.is_backed) == (Phase.ACTIVE, True)
        assert ledger.held_on("worker-1")["cpu"] == 2000
    assert not ledger.held_on("worker-1")
    with pytest.raises(RuntimeError, match="sending failed"):
        async with client.hold("move", SPEC):
            raise RuntimeError("sending failed")
    assert not ledger.held_on("worker-1")


async def test_what_cannot_hold_does_not_enter_the_block(client: Client) -> None:
    entered = False
    with pytest.raises(CallFailed, match="node 'worker-99' does not exist"):
        async with client.hold("move", replace(SPEC, node="worker-99")):
            entered = True
    assert not entered
    assert [each async for each in client.list()] == []


async def test_what_was_claimed_meanwhile_is_no_error(client: Client) -> None:
    async with client.hold("move", SPEC):
        await client.release("move")


async def test_a_spec_comes_back_as_it_was_sent(client: Client) -> None:
    until = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    spec = Spec(
        owners=(PodOwner(namespace="shop", name="web-0"), PodOwner(namespace="shop", name="web-1")),
        node="worker-1",
        resources={"cpu": "500m", "memory": "1Gi"},
        slots=2,
        expires_at=until,
        policy=Policy.REQUIRE,
    )
    assert (await client.create("a", spec)).spec == spec
    forever = await client.extend("a", timedelta(0))
    assert (forever.spec.expires_at, forever.spec.ttl) == (None, timedelta(0))
    assert (await client.extend("a", until)).spec == spec
    assert (await client.update("a", SPEC)).spec.resources == {"cpu": "2"}


async def test_owners_that_are_no_named_pods_come_back_as_they_were_sent(client: Client) -> None:
    spec = Spec(
        owners=(
            OwnerSelector(namespace="shop", controller=ControllerOwner("ReplicaSet", "web-5d8f")),
            OwnerSelector(
                namespace="shop",
                pod="web-0",
                match_labels={"app": "web"},
                match_expressions=(LabelRequirement("tier", "In", ("front", "edge")),),
            ),
        ),
        node="worker-1",
        resources={"cpu": "1"},
        expires_at=datetime(2030, 1, 31, 10, tzinfo=UTC),
        reusable=True,
        preemptible=True,
        priority=-5,
    )
    assert (await client.create("a", spec)).spec == spec


async def test_a_release_can_insist_on_what_it_releases(client: Client) -> None:
    made = await client.create("a", SPEC)
    with pytest.raises(CallFailed, match="ABORTED"):
        await client.release("a", etag="another")
    await client.release("a", etag=made.etag)
    await client.release("a")
    with pytest.raises(CallFailed, match="NOT_FOUND"):
        await client.release("a", missing_ok=False)


async def test_capacity_is_told_as_quantities(client: Client) -> None:
    await client.create("a", SPEC)
    nodes = {each.node: each async for each in client.capacity.nodes(slot={"cpu": "1500m"})}
    cpu = nodes["worker-1"].resources["cpu"]
    assert (cpu.allocatable, cpu.requested, cpu.held, cpu.free) == ("4", "0", "2", "2")
    assert (nodes["worker-1"].fits, nodes["worker-2"].fits) == (1, 2)
    assert [each.node async for each in client.capacity.nodes(["worker-2", "ghost"])] == [
        "worker-2"
    ]


async def test_what_would_fit_is_told_and_what_is_missing(client: Client) -> None:
    assert (await client.capacity.what_if([SPEC, SPEC])).fits
    verdict = await client.capacity.what_if([SPEC, SPEC, SPEC, replace(SPEC, slots=99)])
    assert not verdict.fits
    lacking = {each.index: each.never for each in verdict.shortages}
    assert lacking[3] is True
    assert all(each.message for each in verdict.shortages)


async def test_a_pod_is_explained(world: World, client: Client) -> None:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "9"}}}
    body = {"metadata": {"name": "web-0"}, "spec": {"containers": [container]}}
    await world.cluster.client.send("POST", "/api/v1/namespaces/shop/pods", body)
    async with asyncio.timeout(20):
        while True:
            with contextlib.suppress(CallFailed):
                told = await client.capacity.explain("shop", "web-0")
                break
    assert told["summary"] == "0/2 nodes are available: 2 Insufficient cpu."
    assert type(told["nodes"]) is int
    with pytest.raises(CallFailed, match="no pod shop/ghost"):
        await client.capacity.explain("shop", "ghost")


async def test_a_refusal_names_the_field(client: Client) -> None:
    bad = Spec(
        owners=(PodOwner(namespace="shop", name="web-0"),),
        node="worker-1",
        resources={"cpu": "lots"},
    )
    with pytest.raises(CallFailed) as caught:
        await client.create("a", bad)
    assert (caught.value.code, caught.value.reason) == ("INVALID_ARGUMENT", "INVALID_FIELD")
    assert "is not a quantity" in caught.value.fields["spec.resources.cpu"]


async def test_sets_and_lists(client: Client) -> None:
    made = await client.create_set({f"s-{n}": SPEC for n in range(2)})
    assert [each.name for each in made] == ["s-0", "s-1"]
    with pytest.raises(CallFailed, match="RESOURCE_EXHAUSTED"):
        await client.create_set({"more": SPEC})
    selection = Selection(owner=PodOwner(namespace="shop", name="web-0"), phases=[Phase.ACTIVE])
    assert [each.name async for each in client.list(selection)] == ["s-0", "s-1"]
    assert [each async for each in client.list(Selection(node="worker-2"))] == []


async def test_lists_by_who_may_claim(client: Client) -> None:
    rules: dict[str, PodOwner | OwnerSelector] = {
        "made": OwnerSelector(namespace="shop", controller=ControllerOwner("ReplicaSet", "web")),
        "labelled": OwnerSelector(namespace="shop", match_labels={"app": "web"}),
        "named": PodOwner(namespace="shop", name="web-0"),
    }
    for name, owner in rules.items():
        await client.create(name, replace(SPEC, owners=(owner,)))

    async def names(**meant: Any) -> list[str]:
        return [each.name async for each in client.list(Selection(**meant))]

    assert await names(owner_controller=ControllerOwner("ReplicaSet", "web")) == ["made"]
    assert await names(owner_labels={"app": "web", "tier": "front"}) == ["labelled"]
    assert await names(owner_labels={"app": "db"}) == []
    assert await names(owner=PodOwner(namespace="shop", name="web-0")) == ["named"]


async def test_a_watch_tells_what_is_there_and_what_changes(client: Client) -> None:
    await client.create("a", SPEC)
    changes = client.watch()
    first = await anext(changes)
    assert (first.kind, first.reservation.name) == (ChangeKind.ADDED, "a")
    await client.create("b", SPEC)
    second = await anext(changes)
    assert (second.kind, second.reservation.name) == (ChangeKind.ADDED, "b")
    await client.release("a")
    async for change in changes:
        if change.kind is ChangeKind.DELETED:
            assert change.reservation.name == "a"
            break


async def test_a_watch_goes_on_when_the_server_was_away(tmp_path: Path) -> None:
    """Reservations that were removed meanwhile are reported, too."""
    async with serving(tmp_path) as world:
        address = world.running.grpc_address
        assert address
        path = tmp_path / "kubeconfig"
        held = HeldPort()  # It serves there again.
        grpc_address = ("127.0.0.1", held.number)
        settings = Settings(kubeconfig=path, http_port=0, grpc_address=grpc_address)
        async with AsyncExitStack() as stack:
            second = await stack.enter_async_context(app.running(settings))
            assert second.grpc_address
            client = Client(second.grpc_address)
            for name in ("a", "b"):
                await client.create(name, SPEC)
            changes = client.watch()
            assert {(await anext(changes)).reservation.name for _ in range(2)} == {"a", "b"}
            waiting = asyncio.ensure_future(anext(changes))
        async with Client(address) as other:
            await other.release("a")
        async with app.running(settings), client, asyncio.timeout(30):
            change = await waiting
            while change.kind is not ChangeKind.DELETED:
                assert change.reservation.name == "b"
                change = await anext(changes)
            assert change.reservation.name == "a"


async def test_a_server_that_is_not_there_is_waited_for_until_the_deadline() -> None:
    async with Client("127.0.0.1:1", deadline_s=0.3) as client:
        with pytest.raises(CallFailed) as caught:
            await client.get("a")
    assert caught.value.code in {"UNAVAILABLE", "DEADLINE_EXCEEDED"}


def test_a_token_is_not_sent_in_plain_text() -> None:
    with pytest.raises(ValueError, match="TLS"):
        Client("10.0.0.1:1", token="t")


async def example(world: World, *flags: str) -> tuple[int | None, str]:
    """Run the global manager of the examples; return its exit status and its output."""
    assert world.running.grpc_address
    address = f"--address={world.running.grpc_address}"
    command = (sys.executable, str(EXAMPLE), address, "--node=worker-1", "--namespace=shop", *flags)
    told = await asyncio.to_thread(done, *command, stderr=subprocess.STDOUT)
    return told.returncode, told.stdout


async def test_the_example_reserves_before_it_sends(world: World, tmp_path: Path) -> None:
    status, said = await example(world, f"--kubeconfig={tmp_path / 'kubeconfig'}", "--dry-run")
    assert (status, "held on worker-1" in said) == (0, True), said
    assert not world.running.assembly.ledger.held_on("worker-1")


async def test_the_example_without_a_kubeconfig_says_so_and_holds_nothing(world: World) -> None:
    status, said = await example(world, "--kubeconfig=/nope")
    assert (status, "not sent: Invalid kube-config" in said) == (1, True), said
    assert "Traceback" not in said
    assert not world.running.assembly.ledger.held_on("worker-1")


async def test_the_example_says_in_one_line_that_its_pod_is_there_already(
    world: World, tmp_path: Path
) -> None:
    there = {"metadata": {"name": "sent-0"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    await world.cluster.client.send("POST", "/api/v1/namespaces/shop/pods", there)
    status, said = await example(world, f"--kubeconfig={tmp_path / 'kubeconfig'}")
    assert (status, said.splitlines()[1:]) == (1, ['not sent: pods "sent-0" already exists'])
    assert not world.running.assembly.ledger.held_on("worker-1")
