"""The page in a real browser: visible text, and text from other writers."""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Page, expect

from hack.reserver_process import ReserverProcess
from reserver.cli import ui
from reserver.cli.target import Target
from reserver.client import PodOwner, Spec
from tests.browser.conftest import Bed, forbidding

VIEWS = ("timeline", "reservations", "pod/default/nobody", "plan", "teams", "health")
SECOND_MS = 1000.0
HOSTILE = "<script>hacked = 1</script><img src=x onerror='hacked=1'>\u202etxt.exe"


def spec(node: str = "worker-1", **fields: Any) -> Spec:
    made = {
        "owners": (PodOwner(namespace="shop", name="web-0"),),
        "resources": {"cpu": "1"},
        "node": node,
    }
    return Spec(**{**made, "ttl": timedelta(hours=2), **fields})


def bar(page: Page, name: str) -> Any:
    return page.locator(f".bar[aria-label^='{name} for']")


async def size(page: Page) -> float:
    """Return how wide the bar is, in pixels."""
    box = await bar(page, "web").bounding_box()
    assert box is not None
    return float(box["width"])


async def test_each_change_of_a_hold_is_seen_within_a_second(bed: Bed) -> None:
    page = await bed.open()
    await bed.client.create("web", spec(slots=2))
    await expect(bar(page, "web")).to_be_visible(timeout=SECOND_MS)
    label, box = await bar(page, "web").get_attribute("aria-label"), await size(page)
    await bed.client.extend("web", timedelta(hours=8))
    await expect(bar(page, "web")).not_to_have_attribute(
        "aria-label", str(label), timeout=SECOND_MS
    )
    assert await size(page) > 2 * box
    await bed.create_pod("web-0", "1", "worker-1")
    await expect(bar(page, "web")).to_have_accessible_name(
        re.compile("1 of 2 claimed"), timeout=SECOND_MS
    )
    await bed.client.release("web")
    await expect(page.locator(".bar.held")).to_have_count(0, timeout=SECOND_MS)


async def test_the_table_filters_sorts_and_keeps_its_address(bed: Bed) -> None:
    for name, cpu in (("train", "2"), ("web", "1"), ("job", "3")):
        await bed.client.create(name, spec(f"worker-{cpu}", resources={"cpu": cpu}))
    page = await bed.open("reservations")
    names = page.locator(".body .name button")
    await expect(names).to_have_count(3)
    await page.get_by_role("button", name="Name").click()
    await expect(names).to_have_text(["job", "train", "web"])
    await page.get_by_role("searchbox").fill("worker-2")
    await expect(names).to_have_text(["train"])
    await names.first.click()
    await expect(page.locator("aside")).to_contain_text("reserver release")
    await page.reload()
    await expect(names).to_have_text(["train"])
    await expect(page.locator("aside h2")).to_contain_text("train")


async def test_a_successor_of_reserver_is_followed_without_a_reload(
    bed: Bed, tmp_path: Path
) -> None:
    await bed.client.create("before", spec())
    page = await bed.open()
    await page.evaluate("window.isSame = true")
    await bed.stop_reserver()
    await _is_out_of_date(page)
    killed = ReserverProcess(bed.kubeconfig, tmp_path / "log", f"--grpc-address={bed.grpc}")
    await asyncio.to_thread(killed.start)
    try:
        await expect(page.locator("#state.good")).to_be_visible()
    finally:
        await asyncio.to_thread(killed.kill)
    await _is_out_of_date(page)
    await bed.start_reserver()
    await bed.client.create("after", spec("worker-2"))
    await expect(bar(page, "after")).to_be_visible()
    await expect(page.locator("#state.good")).to_be_visible()
    assert await page.evaluate("window.isSame")


async def _is_out_of_date(page: Page) -> None:
    """Expect the page to show the error, and the last known objects."""
    state = page.locator("#state.warn")
    await expect(state).to_contain_text("Reserver does not answer")
    await expect(state).to_contain_text("shown as of")
    await expect(bar(page, "before")).to_be_visible()


async def test_what_others_wrote_is_text(bed: Bed) -> None:
    long = "n" * 253
    await bed.client.create("web", spec(description=HOSTILE))
    await bed.client.create(
        long, spec("worker-2", owners=(PodOwner(namespace="shop", name="p" * 253),))
    )
    page = await bed.open()
    await bar(page, "web").hover()
    await expect(page.locator("aside")).to_contain_text("<script>hacked = 1</script>")
    for width in (360, 2560):
        await page.set_viewport_size({"width": width, "height": 700})
        for view in VIEWS:
            await bed.open(view)
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), view
    assert await page.evaluate("typeof hacked") == "undefined"


async def test_bars_are_walked_with_the_keyboard(bed: Bed) -> None:
    for number in (1, 2, 3):
        await bed.client.create(f"r{number}", spec(f"worker-{number}"))
    page = await bed.open("timeline?sort=name")
    await expect(page.locator(".bar.held")).to_have_count(3)
    await bar(page, "r1").focus()
    await page.keyboard.press("ArrowDown")
    await expect(bar(page, "r2")).to_be_focused()
    await expect(page.locator("aside h2")).to_contain_text("r2")
    await page.keyboard.press("ArrowDown")
    await expect(bar(page, "r3")).to_be_focused()
    await page.keyboard.press("ArrowUp")
    await expect(bar(page, "r2")).to_be_focused()


async def test_times_are_reservers_where_the_browsers_clock_is_off(bed: Bed) -> None:
    await bed.page.add_init_script("const real = Date.now; Date.now = () => real() + 5 * 3600_000;")
    await bed.client.create("web", spec())
    page = await bed.open("reservations")
    await expect(page.locator(".body time")).to_have_text(re.compile("^(2h|1h5)"))


async def test_a_pod_that_waits_is_explained(bed: Bed) -> None:
    await bed.client.create("web", spec(resources={"cpu": "7"}))
    page = await bed.open("pod/default/nobody")
    await expect(page.get_by_role("alert")).to_contain_text("there is no pod default/nobody")


async def test_what_may_not_be_read_says_so_and_the_rest_is_shown(bed: Bed, tmp_path: Path) -> None:
    await bed.client.create("web", spec())
    page = await bed.open("plan?goal=policy")
    await expect(page.get_by_role("alert")).to_contain_text("--policy-config-file")
    poor = tmp_path / "poor"
    async with forbidding() as url:
        bed.cluster.write_kubeconfig(poor, url)
        async with ui.serving(Target(address=bed.grpc, kubeconfig=poor)) as bed.address:
            await bed.open()
            await expect(bar(page, "web")).to_be_visible()
            await expect(page.locator(".toolbar")).to_contain_text("ask for a role")
            await bed.open("plan?goal=make-room")
            await expect(page.locator("main")).to_contain_text("ClusterRole reserver-edit")
            await expect(page.get_by_role("alert")).to_contain_text("ask for a role")
            await bed.open("health")
            await expect(page.locator("tr", has_text="kubernetes")).to_contain_text("to do")


async def test_a_planned_move_is_followed_until_it_is_carried_out(bed: Bed) -> None:
    for number in (1, 2, 3):
        await bed.create_pod(f"web-{number}", "3", f"worker-{number}")
    await bed.create_pod("big", "7")
    page = await bed.open("plan?goal=make-room")
    row = page.locator(".answer tr", has_text="shop/web-")
    await expect(row).to_contain_text("planned")
    await expect(page.locator(".answer")).to_contain_text("CPU before")
    await expect(page.locator(".answer .command")).to_contain_text("--mode reserve-first")
    planned = str(await row.locator("[data-pod]").get_attribute("data-pod")).partition("/")[2]
    await bed.move(planned)
    await bed.move("web-3" if planned != "web-3" else "web-2", nodeSelector={"at": "nowhere"})
    await expect(row).to_contain_text("Evicting WaitsForGroup")
    await expect(page.locator("section tr", has_text="→ Reserving")).to_contain_text("didn't match")
    await bed.open()
    await expect(page.locator(".bar.seat")).to_have_count(2)


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_nothing_serious_keeps_anybody_out(bed: Bed, scheme: Any) -> None:
    await bed.client.create("web", spec())
    await bed.client.create("later", spec("worker-2", ttl=None, slots=2))
    await bed.page.emulate_media(color_scheme=scheme)
    found = []
    for view in VIEWS:
        page = await bed.open(view)
        await page.locator("main > *").first.wait_for()
        results = await Axe().run(page)
        found += [
            (view, each["id"], [node["html"][:150] for node in each["nodes"][:3]])
            for each in results.response["violations"]
            if each["impact"] in {"serious", "critical"}
        ]
    assert found == []


@pytest.mark.parametrize("paper", ["A4", "Letter"])
async def test_each_view_is_printed_on_one_sheet_without_controls(bed: Bed, paper: str) -> None:
    for number in range(40):
        await bed.cluster.create_node(f"more-{number}", {"cpu": "8"})
    await bed.client.create("web", spec())
    for view in VIEWS:
        page = await bed.open(view)
        await page.locator("main > *").first.wait_for()
        if view == "timeline":
            await expect(page.locator(".count")).to_contain_text("43 nodes")
        printed = await page.pdf(format=paper, landscape=True, prefer_css_page_size=True)
        assert len(re.findall(rb"/Type\s*/Page\b", printed)) == 1, view
        if view == "timeline":
            await expect(page.locator(".row[data-row='21']")).to_be_attached()
            await expect(page.locator(".cut")).to_contain_text("Rows 1 to 22 of 43")
            await expect(bar(page, "web")).to_be_visible()
        await page.emulate_media(media="print")
        await expect(page.locator("nav")).to_be_hidden()
        await page.emulate_media(media="screen")
