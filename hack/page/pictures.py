"""`python -m hack.page.pictures` draws the page's views into docs/ui, from a real Reserver."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.async_api import Browser, async_playwright

from reserver import app
from reserver.cli import ui
from reserver.cli.target import Target
from reserver.client import Client
from reserver.k8s.client import MERGE_PATCH
from reserver.reservations.enums import Outcome
from reserver.settings.serve import Settings
from reserver.stores.archive import (
    LABEL,
    SHARDS,
    Archive,
    ArchivedClaim,
    ArchivedReservation,
)
from reserver_demo.clock import SystemClock, rfc3339
from reserver_demo.cluster import EmbeddedCluster

FOLDER = Path("docs/ui")
NODES = 18
_API = "reserver.io/v1alpha1"
_VIEWS = {
    "timeline": "timeline?range=day&group=topology.kubernetes.io/zone&sort=name",
    "reservations": "reservations",
    "pod": "pod/shop/checkout-7",
    "plan": "plan?goal=make-room",
    "teams": "teams",
    "health": "health",
}
_KEPT_DARK = ("timeline",)
_HOURS = (3, 7, 2, 12, 5, 9, 16, 4)
_AGES = (1, 5, 0, 3, 2, 4)
_TEAMS = ("ml", "shop", "search")
_OVER = 90
_LATER = 6
"""Of seven reservations this one begins later."""

_LENDS = 11
"""The reservation of this number lends, to a pod on its node."""

_RELEASED = ("shop/web-4", "shop/web-13", "search/web-23", "ml/train-30")
_SMALL_NODE = "worker-3"
_MAINTAINED = ["worker-6", "worker-9"]


class _EarlierClock(SystemClock):
    """A clock that can be turned back: reservations are made hours before the picture."""

    hours = 0

    def now(self) -> datetime:
        return super().now() - timedelta(hours=self.hours)


async def main() -> None:
    """Draw all views, light and dark."""
    with TemporaryDirectory() as folder:
        kubeconfig, clock = Path(folder, "kubeconfig"), _EarlierClock()
        async with EmbeddedCluster(clock=clock) as cluster:
            cluster.write_kubeconfig(kubeconfig)
            await _furnish(cluster)
            await _reserve(cluster, clock)
            await _maintain(cluster)
            await _remember(cluster)
            settings = Settings(
                kubeconfig=kubeconfig,
                http_port=0,
                grpc_address=("127.0.0.1", 0),
                pod_moves=True,
                maintenance_windows=True,
                tenant_ceiling_cluster="none",
                lending=True,
            )
            async with app.running(settings) as reserver:
                address = str(reserver.grpc_address)
                async with Client(address) as client:
                    for name in _RELEASED:
                        await client.release(name)
                await _move(cluster)
                async with ui.serving(Target(address=address, kubeconfig=kubeconfig)) as page:
                    await _draw(page, FOLDER)


async def _furnish(cluster: EmbeddedCluster) -> None:
    for name in ("reserver-system", *_TEAMS):
        await cluster.client.send("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    for name, cpu in zip(_TEAMS, ("96", "80", "120"), strict=True):
        hard = {"held.cpu": cpu, "reservations": "40"}
        await _create(cluster, "ReservationQuota", name, "team", {"hard": hard})
    for number in range(1, NODES + 1):
        labels = {"topology.kubernetes.io/zone": f"eu-1{'abc'[number % 3]}", "pool": "general"}
        await cluster.create_node(f"worker-{number}", {"cpu": "16", "memory": "64Gi"}, labels)
    for number in range(1, NODES + 1):
        await _create_pod(cluster, f"cart-{number}", "2", f"worker-{number}")
    await _create_pod(cluster, "checkout-7", "13")
    await _create_pod(cluster, "nightly-report", "4", f"worker-{_LENDS + 1}", borrows=True)


async def _create_pod(
    cluster: EmbeddedCluster, name: str, cpu: str, node: str = "", *, borrows: bool = False
) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": f"rs-{name}"}
    container = {"name": "c", "image": "c", "resources": {"requests": {"cpu": cpu}}}
    body = {
        "metadata": {"name": name, "ownerReferences": [owner | {"controller": True}]},
        "spec": {
            "containers": [container],
            **({"nodeName": node} if node else {}),
            "tolerations": [{"key": "reserver.io/lent", "operator": "Exists"}] if borrows else [],
        },
    }
    await cluster.client.send("POST", "/api/v1/namespaces/shop/pods", body)


async def _reserve(cluster: EmbeddedCluster, clock: _EarlierClock) -> None:
    """Create reservations of some hours ago, and some that begin in some hours."""
    for number in range(NODES * 2):
        team, hours = _TEAMS[number % 3], _HOURS[number % 8]
        begin = datetime.now(UTC) + timedelta(hours=hours)
        is_later = number % 7 == _LATER
        spec = {
            "owners": [{"controller": {"kind": "Job", "name": f"train-{number}"}}]
            if team == "ml"
            else [{"pod": {"name": f"web-{number}"}}],
            "node": f"worker-{number % NODES + 1}",
            "resources": {"cpu": 2 + number % 4 * 2, "memory": f"{4 + number % 3 * 8}Gi"},
            "expiresAt": rfc3339(begin + timedelta(hours=6 * is_later)),
            **({"startsAt": rfc3339(begin)} if is_later else {}),
            **({"lend": {"belowPriority": 100}} if number == _LENDS else {}),
            "description": "Room for the nightly training" if team == "ml" else "For the sale",
        }
        clock.hours = _AGES[number % 6]
        name = f"{'train' if team == 'ml' else 'web'}-{number}"
        await _create(cluster, "Reservation", team, name, spec)
    clock.hours = 0
    job = {"controller": {"kind": "Job", "name": "finetune"}}
    tonight = datetime.now(UTC) + timedelta(hours=9)
    nightly = {
        "owners": [{"controller": {"kind": "Job", "name": "evaluate"}}],
        "node": "worker-15",
        "resources": {"cpu": 6, "memory": "16Gi"},
        "schedule": {"cron": f"0 {tonight.hour} * * *", "duration": "5h", "lead": "1h"},
    }
    hourly = {
        "owners": [{"pod": {"name": "reindex"}}],
        "node": "worker-9",
        "resources": {"cpu": 4, "memory": "8Gi"},
        "schedule": {"cron": "0 */6 * * *", "duration": "2h"},
    }
    await _create(cluster, "Reservation", "ml", "evaluate", nightly)
    await _create(cluster, "Reservation", "search", "reindex", hourly)
    large = {"owners": [job], "resources": {"cpu": 20, "memory": "48Gi"}, "ttl": "8h"}
    await _create(cluster, "Reservation", "ml", "finetune", large)


async def _create(
    cluster: EmbeddedCluster, kind: str, namespace: str, name: str, spec: Mapping[str, object]
) -> None:
    """Create an object of ours, of the cluster if the namespace is empty."""
    body = {"apiVersion": _API, "kind": kind, "metadata": {"name": name}, "spec": spec}
    where = f"namespaces/{namespace}/" if namespace else ""
    await cluster.client.send("POST", f"/apis/{_API}/{where}{kind.lower()}s", body)


async def _remember(cluster: EmbeddedCluster) -> None:
    """Write an archive of reservations that are over since some days."""
    now, archive = datetime.now(UTC), Archive(timedelta(days=8).total_seconds())
    for number in range(_OVER):
        began = now - timedelta(hours=8 + 156 * number / _OVER)
        hours, team = _HOURS[number % 8], _TEAMS[number % 3]
        ended, is_used = began + timedelta(hours=hours / 2), number % 4 > 0
        claim = ArchivedClaim("uid", f"{team}-{number}-0", at=rfc3339(ended))
        one = ArchivedReservation(
            name=f"{team}-{number}",
            id=f"{team}/{team}-{number}",
            namespace=team,
            owner_namespace=team,
            owners=f"{team}/job/{team}-{number}",
            outcome=Outcome.CLAIMED if is_used else Outcome.EXPIRED,
            since=rfc3339(began),
            ended=rfc3339(ended),
            nodes=[f"worker-{number % NODES + 1}"],
            resources={"cpu": str(4 + number % 5 * 2), "memory": "16Gi"},
            claimed=int(is_used),
            claims=[claim] if is_used else [],
        )
        archive.add(one, now.timestamp())
    for shard in range(SHARDS):
        name = {"name": f"reserver-history-{shard}", "labels": {LABEL: "true"}}
        body = {"metadata": name, "data": archive.pending(shard)}
        path = "/api/v1/namespaces/reserver-system/configmaps"
        await cluster.client.send("POST", path, body)


async def _maintain(cluster: EmbeddedCluster) -> None:
    start = datetime.now(UTC) + timedelta(hours=11)
    spec = {
        "start": rfc3339(start),
        "end": rfc3339(start + timedelta(hours=4)),
        "nodes": _MAINTAINED,
        "maxUnavailable": "100%",
        "drainBefore": "90m",
    }
    await _create(cluster, "MaintenanceWindow", "", "new-disks", spec)


async def _move(cluster: EmbeddedCluster) -> None:
    """Move two pods that wait for each other, and shrink a node below its holds."""
    for name, to in (("cart-2", {}), ("cart-5", {"nodeSelector": {"pool": "burst"}})):
        spec = {"pod": {"name": name}, "to": to, "group": {"name": "plan", "size": 2}}
        await _create(cluster, "PodMove", "shop", f"move-{name}", spec)
    smaller = {"status": {"allocatable": {"cpu": "6"}}}
    path = f"/api/v1/nodes/{_SMALL_NODE}/status"
    await cluster.client.send("PATCH", path, smaller, media=MERGE_PATCH)


async def _draw(address: str, folder: Path) -> None:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for name, view in _VIEWS.items():
            for scheme in ("light", "dark") if name in _KEPT_DARK else ("light",):
                await _picture(browser, f"{address}#/{view}", folder / f"{name}-{scheme}.png")
        await browser.close()


async def _picture(browser: Browser, address: str, file: Path) -> None:
    scheme = "dark" if "dark" in file.name else "light"
    page = await browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme=scheme)
    await page.goto(address)
    await page.locator("#state.good").wait_for()
    await page.wait_for_timeout(1500)  # Until the view has asked its question.
    if bars := await page.locator(".bar").count():
        await page.locator(".bar").nth(bars // 2).hover()
    await page.screenshot(path=file)
    await page.close()


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    asyncio.run(main())
