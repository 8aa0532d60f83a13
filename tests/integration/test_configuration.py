"""A configuration file that changes takes effect, as far as that takes no restart."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from structlog.testing import capture_logs

from reserver import app
from reserver.process import reload
from reserver.settings.configuration_file import configured
from reserver.settings.serve import Settings
from reserver_demo.cluster import EmbeddedCluster
from tests.waiting import until_answered

HEAD = "apiVersion: reserver.io/v1alpha1\nkind: ReserverConfiguration\n"
SYSTEM = "reserver-system"


class Mounted:
    """A ConfigMap as kubelet mounts it: a link to a link, which is swapped."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._number = 0
        self.path = folder / "config.yaml"
        self.path.symlink_to("..data/config.yaml")

    def write(self, text: str) -> None:
        self._number += 1
        version = self._folder / f"..{self._number}"
        version.mkdir()
        (version / "config.yaml").write_text(HEAD + text)
        (self._folder / "new").symlink_to(version.name)
        (self._folder / "new").rename(self._folder / "..data")


class Configured:
    """A Reserver that serves with a file."""

    def __init__(self, cluster: EmbeddedCluster, running: app.Running, file: Mounted) -> None:
        self.cluster, self.running, self.file = cluster, running, file

    async def get(self, path: str) -> str:
        async with aiohttp.ClientSession() as http, http.get(self.running.url + path) as answer:
            return await answer.text()

    async def configz(self) -> dict[str, Any]:
        return dict(json.loads(await self.get("/configz")))

    async def phase(self, name: str) -> str:
        path = f"/apis/reserver.io/v1alpha1/namespaces/shop/reservations/{name}"
        found = json.loads(await self.cluster.client.send("GET", path))
        return str(found.get("status", {}).get("phase", ""))

    async def reserve(self, name: str, cpu: str) -> None:
        spec = {
            "owners": [{"pod": {"name": "a"}}],
            "resources": {"cpu": cpu},
            "node": "worker-1",
            "ttl": "1h",
        }
        body = {
            "apiVersion": "reserver.io/v1alpha1",
            "kind": "Reservation",
            "metadata": {"name": name, "namespace": "shop"},
            "spec": spec,
        }
        path = "/apis/reserver.io/v1alpha1/namespaces/shop/reservations"
        await self.cluster.client.send("POST", path, body)


@pytest.fixture
async def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Configured]:
    monkeypatch.setattr(reload, "LOOK_EVERY_S", 0.01)
    (tmp_path / "mounted").mkdir()
    file = Mounted(tmp_path / "mounted")
    file.write("defaultQuota: {hard: {held.cpu: 2}}")
    async with contextlib.AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(EmbeddedCluster())
        for name in ("worker-1", "worker-2"):
            await cluster.create_node(name)
        for namespace in (SYSTEM, "shop"):
            body = {"metadata": {"name": namespace}}
            await cluster.client.send("POST", "/api/v1/namespaces", body)
        cluster.write_kubeconfig(tmp_path / "kubeconfig")
        flags = Settings(kubeconfig=tmp_path / "kubeconfig", http_port=0, config=file.path)
        running = await stack.enter_async_context(app.running(configured(flags)))
        made = Configured(cluster, running, file)

        async def is_ready() -> bool:
            return await made.get("/readyz") == "ok\n"

        await until_answered(is_ready)
        yield made


async def test_a_swapped_link_changes_quota_and_namespaces_without_a_restart(
    world: Configured,
) -> None:
    await world.reserve("small", "2")
    await world.reserve("large", "3")

    async def large_waits() -> bool:
        return (await world.phase("small"), await world.phase("large")) == ("Active", "Pending")

    await until_answered(large_waits)
    world.file.write(
        "defaultQuota: {hard: {held.cpu: 5}}\nexemptNamespaces: [storage]\nhistoryTTL: 1h"
    )

    async def large_holds() -> bool:
        return await world.phase("large") == "Active"

    await until_answered(large_holds)
    snapshot = world.running.assembly.state.snapshot
    assert snapshot.exempt_namespaces == {"kube-system", "storage"}
    assert world.running.assembly.archivist.archive.kept_s == 3600.0
    shown = (await world.configz())["reserver.io"]
    assert shown["defaultQuota"] == {"hard": {"held.cpu": "5"}}
    assert shown["exemptNamespaces"] == ["storage"]

    world.file.write("defaultQuota: {hard: {held.cpu: 1}}")

    async def is_lowered() -> bool:
        exceeding = 'reserver_reservations_exceeding{reason="ExceedsQuota"} 2.0'
        return exceeding in await world.get("/metrics")

    await until_answered(is_lowered)
    assert await large_holds()  # What was admitted stays admitted.
    assert snapshot.exempt_namespaces == {"kube-system"}


async def test_a_ceiling_for_all_tenants_takes_effect_without_a_restart(world: Configured) -> None:
    world.file.write("defaultQuota: {}\ntenantCeiling: {cluster: 1%}")

    async def is_limited() -> bool:
        return 'reserver_tenant_ceiling{resource="cpu",unit="core"} 0.' in await world.get(
            "/metrics"
        )

    await until_answered(is_limited)
    await world.reserve("large", "3")

    async def waits() -> bool:
        return await world.phase("large") == "Pending"

    await until_answered(waits)
    path = "/apis/reserver.io/v1alpha1/namespaces/shop/reservations/large"
    found = json.loads(await world.cluster.client.send("GET", path))
    (backed,) = (each for each in found["status"]["conditions"] if each["type"] == "Backed")
    assert backed["reason"] == "QuotaExceeded"
    assert "tenantCeiling of the cluster, requested: held.cpu=3" in backed["message"]
    world.file.write("defaultQuota: {}\ntenantCeiling: {cluster: 100%, node: 100%}")

    async def holds() -> bool:
        return await world.phase("large") == "Active"

    await until_answered(holds)
    assert 'reserver_tenant_held{resource="cpu",unit="core"} 3.0' in await world.get("/metrics")


async def test_a_file_that_became_invalid_is_refused_and_the_former_settings_stay(
    world: Configured,
) -> None:
    before = (await world.configz())["reserver.io"]
    with capture_logs() as lines:
        world.file.write("defaultQuota: {hard: {held.cpu: lots}}")

        async def is_refused() -> bool:
            return "reserver_configuration_invalid 1.0" in await world.get("/metrics")

        await until_answered(is_refused)
    (line,) = [line for line in lines if line["log_level"] == "error"]
    assert line["event"] == "configuration refused, the former settings stay"
    assert "defaultQuota.hard.held.cpu: " in line["why"][0]
    shown = await world.configz()
    assert shown["reserver.io"] == before
    assert "defaultQuota.hard.held.cpu: " in shown["file"]["problem"]

    async def is_told() -> bool:
        path = f"/api/v1/namespaces/{SYSTEM}/events"
        events = json.loads(await world.cluster.client.send("GET", path))
        return any(event["reason"] == "ConfigurationRefused" for event in events["items"])

    await until_answered(is_told)
    world.file.write("defaultQuota: {hard: {held.cpu: 2}}")

    async def is_mended() -> bool:
        return "reserver_configuration_invalid 0.0" in await world.get("/metrics")

    await until_answered(is_mended)


async def test_a_change_that_needs_a_restart_is_named(world: Configured) -> None:
    world.file.write("defaultQuota: {hard: {held.cpu: 2}}\nfeatureGates: {KeepHeldNodes: true}")

    async def is_named() -> bool:
        waiting = (await world.configz())["file"]["awaitingRestart"]
        return bool(waiting == ["featureGates.KeepHeldNodes"])

    await until_answered(is_named)
    async with asyncio.timeout(20):
        await world.running.restart.wait()
    assert (await world.configz())["reserver.io"]["featureGates"]["KeepHeldNodes"] is False
    measured = await world.get("/metrics")
    assert "reserver_configuration_awaiting_restart 1.0" in measured
    assert 'reserver_feature_enabled{name="KeepHeldNodes",stage="BETA"} 0.0' in measured


async def test_a_gate_whose_crd_is_missing_ends_nothing(
    world: Configured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reload, "LOOK_EVERY_S", 0.01)
    with capture_logs() as lines:
        world.file.write("featureGates: {ProvisioningRequests: true}")

        async def waits() -> bool:
            return any("the restart for the configuration waits" in each["event"] for each in lines)

        await until_answered(waits)
    (why,) = (each["why"] for each in lines if "waits" in each["event"])
    assert "provisioningrequests" in why.lower()
    assert not world.running.restart.is_set()
