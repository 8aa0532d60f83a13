"""`python -m hack.page.pictures` draws the page's views into docs/ui, from a real Reserver."""

from __future__ import annotations

import asyncio
import shutil
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.async_api import Browser, async_playwright

from reserver import app
from reserver.cli import ui
from reserver.cli.options import Target
from reserver.client import Client, ControllerOwner, OwnerSelector, PodOwner, Spec
from reserver.settings.serve import Settings
from reserver_demo.cluster import EmbeddedCluster

FOLDER = Path("docs/ui")
NODES = 18
_VIEWS = {
    "timeline": "timeline?range=day&group=topology.kubernetes.io/zone&sort=name",
    "reservations": "reservations",
    "pod": "pod/shop/checkout-7",
    "plan": "plan?goal=make-room",
    "teams": "teams",
    "health": "health",
}
_HOURS = (3, 7, 2, 12, 5, 9, 16, 4)
_TEAMS = ("ml", "shop", "search")


async def main() -> None:
    """Draw all views, light and dark."""
    with TemporaryDirectory() as folder:
        kubeconfig = Path(folder, "kubeconfig")
        async with EmbeddedCluster() as cluster:
            cluster.write_kubeconfig(kubeconfig)
            await _furnish(cluster)
            settings = Settings(
                kubeconfig=kubeconfig, http_port=0, grpc_address=("127.0.0.1", 0), pod_moves=True
            )
            async with app.running(settings) as reserver:
                address = str(reserver.grpc_address)
                async with Client(address) as client:
                    await _reserve(client)
                async with ui.serving(Target(address=address, kubeconfig=kubeconfig)) as page:
                    await _draw(page, FOLDER)


async def _furnish(cluster: EmbeddedCluster) -> None:
    for name in ("reserver-system", *_TEAMS):
        await cluster.client.send("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    for number in range(NODES):
        labels = {"topology.kubernetes.io/zone": f"eu-1{'abc'[number % 3]}", "pool": "general"}
        await cluster.create_node(f"worker-{number + 1}", {"cpu": "16", "memory": "64Gi"}, labels)
    requests = {"requests": {"cpu": "14"}}
    pod = {
        "metadata": {"name": "checkout-7", "namespace": "shop"},
        "spec": {"containers": [{"name": "c", "image": "c", "resources": requests}]},
    }
    await cluster.client.send("POST", "/api/v1/namespaces/shop/pods", pod)


async def _reserve(client: Client) -> None:
    for number in range(NODES * 2):
        team, hours = _TEAMS[number % 3], _HOURS[number % 8]
        job = OwnerSelector(namespace=team, controller=ControllerOwner("Job", f"train-{number}"))
        pod = PodOwner(namespace=team, name=f"web-{number}")
        spec = Spec(
            owners=(job if team == "ml" else pod,),
            node=f"worker-{number % NODES + 1}",
            resources={"cpu": str(2 + number % 4 * 2), "memory": f"{4 + number % 3 * 8}Gi"},
            ttl=timedelta(hours=hours),
            description="Room for the nightly training" if team == "ml" else "",
        )
        await client.create(f"{'train' if team == 'ml' else 'web'}-{number}", spec)


async def _draw(address: str, folder: Path) -> None:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for name, view in _VIEWS.items():
            for scheme in ("light", "dark"):
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
