"""The gRPC API on the real control plane: reserve, refuse, land, release; tokens and rights."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml
from kubernetes import client as kubernetes
from kubernetes.client.exceptions import ApiException
from kubernetes.utils import FailToCreateError

from hack.reserver_process import ReserverProcess, wait_for
from reserver.client import CallFailed, ChangeKind, Client, Phase, PodOwner, Spec
from tests.e2e.cluster import Corner
from tests.e2e.conftest import grant

pytestmark = pytest.mark.controlplane

SYSTEM = "reserver-system"
ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/global_manager.py"


@pytest.fixture
def corner(rpc_corner: Corner) -> Corner:
    return rpc_corner


def spec(corner: Corner, node: str, cpu: str = "3") -> Spec:
    owners = (PodOwner(namespace=corner.name, name="owner"),)
    return Spec(owners=owners, node=node, resources={"cpu": cpu}, ttl=timedelta(minutes=10))


async def test_from_create_on_the_room_is_the_owners(
    corner: Corner, served: ReserverProcess
) -> None:
    (node,) = corner.add_nodes(1, cpu="4")
    name = f"{corner.name}-move"
    async with Client(served.grpc_address) as client:
        await _sees(client, corner, node)
        reservation = await client.create(name, spec(corner, node))
        assert (reservation.phase, reservation.is_backed) == (Phase.ACTIVE, True)
        changes = client.watch()
        while (await anext(changes)).reservation.name != name:
            pass
        # No wait: it is in force when the call has returned.
        await asyncio.to_thread(corner.create_pod, "stranger", {"cpu": "2"})
        await asyncio.to_thread(corner.wait_refused, "stranger", "held by reservation")
        await asyncio.to_thread(corner.create_pod, "owner", {"cpu": "3"})
        assert await asyncio.to_thread(corner.wait_bound, "owner") == node
        async with asyncio.timeout(90):
            async for change in changes:
                if change.reservation.name == name and change.kind is ChangeKind.DELETED:
                    break


async def test_a_release_frees_the_room_for_who_waits(
    corner: Corner, served: ReserverProcess
) -> None:
    (node,) = corner.add_nodes(1, cpu="4")
    async with Client(served.grpc_address) as client:
        await _sees(client, corner, node)
        async with client.hold(f"{corner.name}-hold", spec(corner, node)):
            await asyncio.to_thread(corner.create_pod, "stranger", {"cpu": "2"})
            await asyncio.to_thread(corner.wait_refused, "stranger", "held by reservation")
        # kube-scheduler alone would try again after five minutes.
        assert await asyncio.to_thread(corner.wait_bound, "stranger") == node


async def test_a_set_is_held_whole_or_not_at_all(corner: Corner, served: ReserverProcess) -> None:
    nodes = corner.add_nodes(2, cpu="4")
    async with Client(served.grpc_address) as client:
        for node in nodes:
            await _sees(client, corner, node)
        specs = {f"{corner.name}-{node}": spec(corner, node) for node in nodes}
        with pytest.raises(CallFailed, match="too little cpu"):
            await client.create_set({**specs, f"{corner.name}-more": spec(corner, nodes[0])})
        made = await client.create_set(specs)
        assert all(each.is_backed for each in made)
        for each in made:
            await client.release(each.name)


def tls_flags(ca: trustme.CA, folder: Path) -> list[str]:
    """Write a certificate of the CA; return the flags that serve gRPC with it on all addresses."""
    certificate = ca.issue_cert("reserver.test", "0.0.0.0")
    certificate.private_key_pem.write_to_path(folder / "tls.key")
    certificate.cert_chain_pems[0].write_to_path(folder / "tls.crt")
    return [
        f"--tls-cert-file={folder / 'tls.crt'}",
        f"--tls-private-key-file={folder / 'tls.key'}",
        "--grpc-address=0.0.0.0:0",
    ]


async def test_beyond_loopback_a_token_and_a_right_are_needed(
    reserver_kubeconfig: Path, api: Any, tmp_path: Path, corner: Corner
) -> None:
    """On an address that is not loopback, with tokens and roles of the real API server."""
    (node,) = await asyncio.to_thread(corner.add_nodes, 1, cpu="4")
    owner = {"pod": {"name": "owner"}}
    for namespace in (corner.name, SYSTEM):
        wanted = {"owners": [owner], "node": node, "resources": {"cpu": "1"}}
        corner.write_object(corner.name, wanted, namespace)
    ca = trustme.CA()
    flags = tls_flags(ca, tmp_path)
    give_role(api, "grpc-reader", "reserver-view", SYSTEM)
    give_role(api, "grpc-editor", "reserver-edit", corner.name)
    log = tmp_path / "log"
    with ReserverProcess(reserver_kubeconfig, log, *flags, wait_ready=False) as process:
        wait_for(lambda: '"event": "ready"' in log.read_text(), "reserver is ready")
        roots = ca.cert_pem.bytes()
        async with Client(process.grpc_address, root_certificates=roots) as client:
            with pytest.raises(CallFailed, match="UNAUTHENTICATED"):
                await client.get("nothing")
        token = token_of(api, "grpc-reader")
        async with Client(process.grpc_address, token=token, root_certificates=roots) as client:
            with pytest.raises(CallFailed, match="NOT_FOUND"):
                await client.get("nothing")
            with pytest.raises(CallFailed, match="PERMISSION_DENIED"):
                await client.release("nothing")
            assert (await client.capacity.what_if([spec(corner, node, "1m")])).fits
        # An editor of one namespace may there what kubectl lets them, and nowhere else.
        token = token_of(api, "grpc-editor")
        async with Client(process.grpc_address, token=token, root_certificates=roots) as client:
            longer = await client.extend(f"{corner.name}/{corner.name}", timedelta(hours=2))
            assert longer.id == f"{corner.name}/{corner.name}"
            await client.release(longer.id)
            with pytest.raises(CallFailed, match="PERMISSION_DENIED"):
                await client.release(f"{SYSTEM}/{corner.name}")
            with pytest.raises(CallFailed, match="PERMISSION_DENIED"):
                await client.release(corner.name)
    audit = [line for line in log.read_text().splitlines() if '"event": "audit"' in line]
    assert any("UNAUTHENTICATED" in line for line in audit)
    who = f"system:serviceaccount:{SYSTEM}:grpc-reader"
    assert any("PERMISSION_DENIED" in line and who in line for line in audit)


async def test_the_global_manager_of_the_examples_reserves_before_it_sends(
    corner: Corner, served: ReserverProcess
) -> None:
    (node,) = await asyncio.to_thread(corner.add_nodes, 1, cpu="4")
    async with Client(served.grpc_address) as client:
        await _sees(client, corner, node)
        done = await _example(corner, served, node, "--cpu=3", "--pod=sent")
        assert done.returncode == 0, done.stderr
        assert f"3 CPU held on {node} for {corner.name}/sent" in done.stdout
        assert f"{corner.name}/sent has landed" in done.stdout
        assert corner.node_of("sent") == node
        claims = corner.pod("sent").metadata.annotations["reserver.io/claims"]
        assert "send-sent" in claims
        done = await _example(corner, served, node, "--cpu=3", "--pod=late")
        assert (done.returncode, "no room: " in done.stdout) == (1, True)
        assert "late" not in corner.pod_names()
        with pytest.raises(CallFailed, match="NOT_FOUND"):
            await client.get("send-late")


async def _example(
    corner: Corner, served: ReserverProcess, node: str, *more: str
) -> subprocess.CompletedProcess[str]:
    """Run the example as its head says."""
    command = [sys.executable, str(EXAMPLE), f"--address={served.grpc_address}", *more]
    command += [f"--kubeconfig={corner.kubeconfig}", f"--scheduler={corner.scheduler}"]
    command += [f"--namespace={corner.name}", f"--node={node}"]
    return await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, check=False, timeout=120
    )


async def _sees(client: Client, corner: Corner, node: str) -> None:
    """Return once reserver has seen a node."""
    name = f"{corner.name}-probe"
    async with asyncio.timeout(60):
        while True:
            async with client.hold(name, spec(corner, node, "1m")) as reservation:
                if reservation.is_backed:
                    return


def give_role(api: Any, name: str, role: str, namespace: str) -> None:
    """Give a service account a role that we ship, in a namespace."""
    shipped = next(each for each in _shipped_roles() if each["metadata"]["name"] == role)
    with suppress(FailToCreateError):  # From the same test on the other store.
        grant(api, shipped)
    with suppress(ApiException):
        api.create_namespaced_service_account(SYSTEM, {"metadata": {"name": name}})
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": SYSTEM}],
    }
    rbac: Any = kubernetes.RbacAuthorizationV1Api(api.api_client)
    with suppress(ApiException):
        rbac.create_namespaced_role_binding(namespace, binding)


def _shipped_roles() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((ROOT / "scheduler-config/core/rbac-users.yaml").read_text()))


def token_of(api: Any, name: str, *audiences: str) -> str:
    """Return a token of a service account, for the API server unless an audience is named."""
    request = {"spec": {"expirationSeconds": 600, "audiences": audiences}}
    answer = api.create_namespaced_service_account_token(name, SYSTEM, request)
    return str(answer.status.token)
