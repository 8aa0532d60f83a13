"""Reservations whose manifests are applied again and again, as Argo CD and Flux do."""

from __future__ import annotations

import asyncio
import json
import subprocess
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.controlplane.build import bin_dir
from hack.reserver_process import ReserverProcess, wait_for
from reserver.client import Client
from tests.e2e.cluster import Corner

pytestmark = pytest.mark.controlplane

AUTHORS = Path(__file__).parents[2] / "examples/author-policy.yaml"
BOTH = pytest.mark.parametrize("how", [(), ("--server-side",)], ids=["client-side", "server-side"])


def kubectl(corner: Corner, *arguments: str, text: str = "") -> str:
    command = ["--kubeconfig", str(corner.kubeconfig), "-n", corner.name, *arguments]
    done = subprocess.run(
        [str(bin_dir() / "kubectl"), *command],
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def manifest(node: str, **more: Any) -> str:
    spec = {"owners": [{"pod": {"name": "owner"}}], "resources": {"cpu": "2"}, "node": node}
    metadata = {"name": "web"}
    kind = {"apiVersion": "reserver.io/v1alpha1", "kind": "Reservation"}
    return json.dumps({**kind, "metadata": metadata, "spec": spec | {"ttl": "1h"} | more})


def status(corner: Corner, field: str) -> Any:
    found = corner.object("web")
    return (found or {}).get("status", {}).get(field)


def extend(reserver: ReserverProcess, name: str, until: timedelta) -> None:
    async def call() -> None:
        assert reserver.grpc_address
        async with Client(reserver.grpc_address) as client:
            await client.extend(name, until)

    asyncio.run(call())


@BOTH
def test_a_manifest_can_be_applied_again_after_its_hold_was_extended(
    corner: Corner, reserver: ReserverProcess, how: tuple[str, ...]
) -> None:
    (node,) = corner.add_nodes(1, cpu="4")
    text = manifest(node)
    kubectl(corner, "apply", *how, "-f", "-", text=text)
    first = wait_for(partial(status, corner, "expiresAt"), "it says until when it holds")
    extend(reserver, f"{corner.name}/web", timedelta(hours=3))
    later = wait_for(lambda: _other(corner, first), "it holds for longer")
    kubectl(corner, "diff", *how, "-f", "-", text=text)  # It exits with 1 where something differs.
    kubectl(corner, "apply", *how, "-f", "-", text=text)
    kubectl(corner, "apply", *how, "-f", "-", text=manifest(node, description="for the move"))
    wait_for(lambda: _is_observed(corner, "for the move"), "the manifest counts otherwise")
    assert (first, status(corner, "expiresAt")) == (first, later)


def _other(corner: Corner, before: str) -> str | None:
    now = status(corner, "expiresAt")
    return str(now) if now != before else None


def _is_observed(corner: Corner, description: str) -> bool:
    found = corner.object("web")
    if found is None or found["spec"].get("description") != description:
        return False
    return bool(found["status"]["observedGeneration"] == found["metadata"]["generation"])


@BOTH
def test_what_is_retained_says_who_claimed_it_and_holds_no_more_when_it_is_applied_again(
    corner: Corner, how: tuple[str, ...]
) -> None:
    (node,) = corner.add_nodes(1, cpu="4")
    text = manifest(node, retain=True)
    kubectl(corner, "apply", *how, "-f", "-", text=text)
    wait_for(lambda: status(corner, "phase") == "Active", "it holds")
    corner.create_pod("owner", {"cpu": "2"})
    corner.wait_bound("owner")
    wait_for(lambda: status(corner, "phase") == "Claimed", "it is claimed")
    kubectl(corner, "diff", *how, "-f", "-", text=text)
    kubectl(corner, "apply", *how, "-f", "-", text=text)
    wait_for(lambda: _claimants(corner) == [f"{corner.name}/owner"], "it says who claimed it")
    corner.create_pod("stranger", {"cpu": "2"})
    assert corner.wait_bound("stranger") == node


def _claimants(corner: Corner) -> list[str]:
    """Return the pods in the status, which come once the watch has shown their bindings."""
    return [claim["pod"] for claim in status(corner, "claims")]


def test_an_admission_policy_writes_who_wrote_it(corner: Corner) -> None:
    (node,) = corner.add_nodes(1, cpu="4")
    documents = list(yaml.safe_load_all(AUTHORS.read_text()))
    kubectl(corner, "apply", "-f", str(AUTHORS))
    try:
        wait_for(lambda: _author(corner, node) == "alice", "the policy is in force")
        forged = manifest(node, author="mallory")
        kubectl(
            corner, "apply", "--as", "bob", "--as-group", "system:masters", "-f", "-", text=forged
        )
        found = corner.object("web")
        assert found is not None
        assert found["spec"]["author"] == "bob"
    finally:
        for each in documents:
            kubectl(corner, "delete", each["kind"], each["metadata"]["name"])
        wait_for(lambda: not _author(corner, node), "the policy is in force no more")


def _author(corner: Corner, node: str) -> str:
    who = ("--as", "alice", "--as-group", "system:masters")
    probe = manifest(node).replace('"web"', '"probe"')
    made = kubectl(corner, "create", *who, "--dry-run=server", "-o", "json", "-f", "-", text=probe)
    return str(json.loads(made)["spec"].get("author", ""))
