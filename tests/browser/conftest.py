"""A real browser, the page, Reserver and the embedded cluster."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, async_playwright

from reserver import app
from reserver.cli import ui
from reserver.cli.options import Target
from reserver.client import Client
from reserver.settings.serve import Settings
from reserver_demo.cluster import EmbeddedCluster

ORIGINS = ("data:", "about:", "blob:")


class Bed:
    """What a test acts on.

    Attributes:
        cluster: the embedded cluster.
        client: of Reserver's gRPC API.
        address: of the page.
        asked: every address that the browser has asked for.
        problems: what the page printed as an error or warning.
    """

    def __init__(self, folder: Path, cluster: EmbeddedCluster, page: Page) -> None:
        self.cluster, self.page = cluster, page
        self.kubeconfig = folder / "kubeconfig"
        cluster.write_kubeconfig(self.kubeconfig)
        self.asked: list[str] = []
        self.problems: list[str] = []
        self.address = ""
        self.grpc = "127.0.0.1:0"
        self.client = Client(self.grpc)
        self._reserver = AsyncExitStack()
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("pageerror", lambda error: self.problems.append(str(error)))

    async def start_reserver(self) -> None:
        """Start Reserver; a successor serves where its predecessor did."""
        host, _, port = self.grpc.rpartition(":")
        settings = Settings(kubeconfig=self.kubeconfig, http_port=0, grpc_address=(host, int(port)))
        running = await self._reserver.enter_async_context(app.running(settings))
        self.grpc = str(running.grpc_address)
        self.client = Client(self.grpc)

    async def stop_reserver(self) -> None:
        """Stop Reserver."""
        await self.client.__aexit__()
        await self._reserver.aclose()

    @property
    def target(self) -> Target:
        """Where the page finds Reserver and the API server."""
        return Target(address=self.grpc, kubeconfig=self.kubeconfig)

    async def open(self, view: str = "timeline") -> Page:
        """Open a view; return once it is live."""
        await self.page.goto(f"{self.address}#/{view}")
        await self.page.locator("#state.good").wait_for()
        return self.page


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
    assert all(each.startswith((bed.address, *ORIGINS)) for each in bed.asked)
    assert bed.problems == []
