"""Sets of objects on the real control plane: whole or nothing, whatever is refused or dies."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client as kubernetes
from kubernetes.client.exceptions import ApiException

from hack.controlplane.cluster import ControlPlane
from hack.reserver_process import ReserverProcess, wait_for
from hack.sets.race import race
from reserver.client import CallFailed, Client, PodOwner, Spec
from reserver.reservations.enums import StoreKind
from tests.e2e.cluster import Corner
from tests.e2e.forms import OBJECTS
from tests.waiting import until

pytestmark = pytest.mark.controlplane

HOME = "reserver-system"
FORBIDDEN = "set-forbidden"
"""No Reservation of a name that ends with this can be created."""

UNFINISHED = "reserver.io/unfinished-set"


@pytest.fixture
def process(reserver_kubeconfig: Path, tmp_path: Path) -> Iterator[ReserverProcess]:
    """Reserver that creates objects."""
    flags = ("--grpc-address=127.0.0.1:0", "--reservation-store=object")
    with ReserverProcess(reserver_kubeconfig, tmp_path / "log", *flags) as process:
        yield process


@pytest.fixture
def corner(control_plane: ControlPlane, api: Any) -> Iterator[Corner]:
    corner = Corner(control_plane.kubeconfig, "nobody", api)
    corner.open()
    try:
        yield corner
    finally:  # Nobody else reserves there, and thousands would be deleted one by one.
        corner._objects.delete_collection_namespaced_custom_object(*OBJECTS, HOME, "reservations")
        corner.close()


@pytest.fixture
def policy(api: Any) -> Iterator[None]:
    """An admission policy of the cluster that refuses some names."""
    admission: Any = kubernetes.AdmissionregistrationV1Api(api.api_client)
    group, version = OBJECTS
    rule = {
        "apiGroups": [group],
        "apiVersions": [version],
        "operations": ["CREATE"],
        "resources": ["reservations"],
    }
    expression = f"!object.metadata.name.endsWith('{FORBIDDEN}')"
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": expression}],
    }
    metadata = {"name": "e2e-sets"}
    admission.create_validating_admission_policy({"metadata": metadata, "spec": spec})
    binding = {"policyName": "e2e-sets", "validationActions": ["Deny"]}
    admission.create_validating_admission_policy_binding({"metadata": metadata, "spec": binding})
    try:
        wait_for(lambda: _is_refused(api), "the policy is in force")
        yield
    finally:
        admission.delete_validating_admission_policy_binding("e2e-sets")
        admission.delete_validating_admission_policy("e2e-sets")


def _is_refused(api: Any) -> bool:
    body = {
        "apiVersion": "/".join(OBJECTS),
        "kind": "Reservation",
        "metadata": {"name": f"probe-{FORBIDDEN}"},
        "spec": {"owners": [{"pod": {"name": "a"}}], "resources": {"cpu": 1}, "node": "nowhere"},
    }
    objects: Any = kubernetes.CustomObjectsApi(api.api_client)
    where = (*OBJECTS, HOME, "reservations")
    try:
        objects.create_namespaced_custom_object(*where, body, dry_run="All")
    except ApiException as refusal:
        return "denied" in str(refusal.body)
    return False


def members(corner: Corner) -> dict[str, Any]:
    """Return the objects of this corner's sets, by name."""
    where = (*OBJECTS, HOME, "reservations")
    found = corner._objects.list_namespaced_custom_object(*where)["items"]
    mine = (item for item in found if item["metadata"]["name"].startswith(corner.name))
    return {item["metadata"]["name"]: item for item in mine}


def wanted(corner: Corner, node: str, *names: str) -> dict[str, Spec]:
    return {
        f"{corner.name}-{name}": Spec(
            owners=(PodOwner(namespace=corner.name, name=name),),
            node=node,
            resources={"cpu": "10m"},
        )
        for name in names
    }


async def sees(client: Client, corner: Corner, node: str) -> None:
    """Return once reserver has seen a node."""
    async with asyncio.timeout(60):
        while True:
            with suppress(CallFailed):
                (probe,) = await client.create_set(wanted(corner, node, "probe"))
                await client.release(probe.id)
                return


@pytest.mark.usefixtures("policy")
async def test_a_set_of_which_the_cluster_refuses_one_leaves_nothing(
    corner: Corner, process: ReserverProcess
) -> None:
    (node,) = await asyncio.to_thread(corner.add_nodes, 1, cpu="4")
    async with Client(process.grpc_address, deadline_s=60) as client:
        await sees(client, corner, node)
        names = ["a", "b", "c", FORBIDDEN, "d", "e"]
        with pytest.raises(CallFailed, match="denied") as caught:
            await client.create_set(wanted(corner, node, *names))
        assert caught.value.code == "FAILED_PRECONDITION"
        assert not members(corner)
        # Nothing is held any more either, and the names are free at once.
        names.remove(FORBIDDEN)
        made = await client.create_set(wanted(corner, node, *names))
        assert all(each.is_backed for each in made)
        assert UNFINISHED not in str(members(corner))


@pytest.mark.parametrize("store", StoreKind)
async def test_whoever_races_for_room_no_node_holds_too_much_and_no_set_is_half_there(
    control_plane: ControlPlane,
    reserver_kubeconfig: Path,
    tmp_path: Path,
    store: StoreKind,
) -> None:
    where = (control_plane.kubeconfig, reserver_kubeconfig, store, tmp_path)
    outcome, auditor, _ = await race(*where, calls=400, count=20)
    assert not auditor.wrong
    assert auditor.writes > outcome.codes["OK"] > 0
    assert set(outcome.codes) == {"OK", "RESOURCE_EXHAUSTED"}


async def test_a_set_that_reserver_died_over_is_there_whole_or_not_at_all(
    corner: Corner, process: ReserverProcess
) -> None:
    nodes = await asyncio.to_thread(corner.add_nodes, 3, cpu="4")
    names = [f"m{number}" for number in range(300)]
    async with Client(process.grpc_address, deadline_s=60) as client:
        specs: dict[str, Spec] = {}
        for number, node in enumerate(nodes):
            await sees(client, corner, node)
            specs |= wanted(corner, node, *names[number::3])
        call = asyncio.create_task(client.create_set(specs, request_id=corner.name))
        await asyncio.to_thread(wait_for, lambda: members(corner), "the first is written")
        process.kill()
        left = members(corner)
        call.cancel()
        assert 0 < len(left) <= len(names)
    process.start()
    await asyncio.to_thread(process.wait_ready)
    is_whole = UNFINISHED not in str(left)
    expected = len(names) if is_whole else 0

    def settled() -> bool:
        return len(members(corner)) == expected

    await asyncio.to_thread(wait_for, settled, "the set is there whole or not at all")
    async with Client(process.grpc_address, deadline_s=60) as client:
        made = await client.create_set(specs, request_id=corner.name)
        assert len(made) == len(members(corner)) == len(names)


@pytest.mark.release
async def test_who_starts_beside_a_writer_deletes_no_set_that_is_acknowledged(
    corner: Corner, process: ReserverProcess, reserver_kubeconfig: Path, tmp_path: Path
) -> None:
    """The new Reserver finds sets that their writer finishes a moment later. One write decides."""
    (node,) = await asyncio.to_thread(corner.add_nodes, 1, cpu="64", pods=100_000)
    whole: list[list[str]] = []
    refused: list[str] = []
    is_over = False

    async def write(client: Client) -> None:
        for number in count():
            if is_over:
                return
            names = [f"s{number}-{member}" for member in range(60)]
            try:
                made = await client.create_set(wanted(corner, node, *names))
            except CallFailed as exc:
                refused.append(exc.code)
            else:
                whole.append([each.name for each in made])

    async with Client(process.grpc_address, deadline_s=60) as client:
        await sees(client, corner, node)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(write(client))
            for number in range(4):
                log = tmp_path / f"beside-{number}"
                flags = ("--reservation-store=object",)
                with ReserverProcess(reserver_kubeconfig, log, *flags) as beside:
                    await asyncio.to_thread(wait_for, beside.is_ready, "it is ready", 60)

                    def go_on(before: int = len(whole) + len(refused)) -> bool:
                        return len(whole) + len(refused) >= before + 2

                    await until(go_on)
            is_over = True
    assert whole
    assert set(refused) <= {"UNAVAILABLE"}
    there = members(corner)
    assert set(there) == {name for names in whole for name in names}
    assert UNFINISHED not in str(there)
