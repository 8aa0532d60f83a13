"""A real browser, the page, Reserver and the embedded cluster."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from playwright.async_api import Browser, Page, async_playwright, expect

from reserver import app
from reserver.cli import ui
from reserver.cli.target import Target
from reserver.client import Client
from reserver.settings.serve import Settings
from reserver_demo.cluster import EmbeddedCluster

ORIGINS = ("data:", "about:", "blob:")
expect.set_options(timeout=30_000)  # Its own limit is too short for a busy machine.


class Bed:
    """The page, cluster and server of a test.

    Attributes:
        cluster: the embedded cluster.
        client: of Reserver's gRPC API.
        address: of the page.
        asked: every address that the browser has asked for.
        problems: errors and warnings in the console of the page.
    """

    def __init__(self, folder: Path, cluster: EmbeddedCluster, page: Page) -> None:
        self.cluster, self.page = cluster, page
        self.kubeconfig = folder / "kubeconfig"
        cluster.write_kubeconfig(self.kubeconfig)
        self.asked: list[str] = []
        self.problems: list[str] = []
        self.address = ""
        self.addresses: list[str] = []
        self.grpc = "127.0.0.1:0"
        self.client = Client(self.grpc)
        self._reserver = AsyncExitStack()
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("pageerror", lambda error: self.problems.append(str(error)))

    async def start_reserver(self) -> None:
        """Start Reserver; a successor serves where its predecessor did."""
        host, _, port = self.grpc.rpartition(":")
        settings = Settings(
            kubeconfig=self.kubeconfig,
            http_port=0,
            grpc_address=(host, int(port)),
            pod_moves=True,
            tenant_ceiling_cluster="none",
        )
        running = await self._reserver.enter_async_context(app.running(settings))
        self.grpc = str(running.grpc_address)
        self.client = Client(self.grpc)

    async def stop_reserver(self) -> None:
        """Stop Reserver."""
        await self.client.__aexit__()
        await self._reserver.aclose()

    @property
    def target(self) -> Target:
        """The addresses of Reserver and the API server for the page."""
        return Target(address=self.grpc, kubeconfig=self.kubeconfig)

    async def create_pod(self, name: str, cpu: str, node: str = "") -> None:
        """Create a pod of a ReplicaSet, on a node if it is named."""
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": f"rs-{name}"}
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
        body = {
            "metadata": {"name": name, "ownerReferences": [owner | {"controller": True}]},
            "spec": {"containers": [container], **({"nodeName": node} if node else {})},
        }
        await self.cluster.client.send("POST", "/api/v1/namespaces/shop/pods", body)

    async def move(self, pod: str, **to: object) -> None:
        """Move a pod, in a group of two moves that wait for each other's seats."""
        body = {
            "apiVersion": "reserver.io/v1alpha1",
            "kind": "PodMove",
            "metadata": {"name": f"move-{pod}"},
            "spec": {"pod": {"name": pod}, "to": to, "group": {"name": "plan", "size": 2}},
        }
        moves = "/apis/reserver.io/v1alpha1/namespaces/shop/podmoves"
        await self.cluster.client.send("POST", moves, body)

    async def open(self, view: str = "timeline") -> Page:
        """Open a view; return once it is live."""
        self.addresses.append(self.address)
        await self.page.goto(f"{self.address}#/{view}")
        await self.page.locator("#state.good").wait_for()
        return self.page


@asynccontextmanager
async def forbidding() -> AsyncIterator[str]:
    """Serve an API server that refuses all requests, as for a user without rights."""

    async def refuse(request: web.Request) -> web.Response:
        message = f'nodes is forbidden: User "ann" cannot {request.method.lower()} {request.path}'
        status = {"kind": "Status", "reason": "Forbidden", "code": 403, "message": message}
        return web.json_response(status, status=403)

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", refuse)
    runner = web.AppRunner(application)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=shutil.which("chromium") or shutil.which("google-chrome"),
            args=["--no-sandbox", "--disable-dev-shm-usage"],
        )
        yield browser
        await browser.close()


@pytest.fixture
async def bed(browser: Browser, tmp_path: Path) -> AsyncIterator[Bed]:
    async with EmbeddedCluster() as cluster:
        for name in ("reserver-system", "shop"):
            body = {"metadata": {"name": name}}
            await cluster.client.send("POST", "/api/v1/namespaces", body)
        for number in (1, 2, 3):
            await cluster.create_node(f"worker-{number}", {"cpu": "8", "memory": "16Gi"})
        page = await browser.new_page(viewport={"width": 1280, "height": 800})
        bed = Bed(tmp_path, cluster, page)
        await bed.start_reserver()
        async with ui.serving(bed.target) as address:
            bed.address = address
            yield bed
            await page.close()
        await bed.stop_reserver()
    assert all(each.startswith((*bed.addresses, *ORIGINS)) for each in bed.asked)
    assert bed.problems == []
