"""The page with more, fewer and stranger documents than anybody has; no cluster is needed."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any, NamedTuple

import pytest
from playwright.async_api import Browser, Page, expect

from reserver.ui import server
from reserver.ui.server import Stream

MANY = 5_000
HOUR = 3_600_000


class Shown(NamedTuple):
    """A page, its stream, and its address."""

    page: Page
    stream: Stream
    address: str


def node(name: str) -> Mapping[str, Any]:
    amounts = {"cpu": 64_000}
    return {
        "name": name,
        "labels": {},
        "windows": [],
        "allocatable": amounts,
        "requested": {},
        "held": {},
        "borrowed": {},
    }


def hold(name: str, on: str, **fields: Any) -> Mapping[str, Any]:
    now = int(time.time() * 1000)
    return {
        "id": f"shop/{name}", "name": name, "namespace": "shop", "owners": "shop/pod/web-0",
        "amounts": {"cpu": 100}, "holds": "cpu 100m", "slots": 1, "claimed": 0, "claims": [],
        "nodes": [[on, 1]], "since": now - HOUR, "starts": None, "ends": now + 5 * HOUR,
        "words": "Active", "shape": "held", "why": "", "description": "", "author": "",
        "isSeat": False, **fields,
    }  # fmt: skip


@pytest.fixture
async def shown(browser: Browser) -> AsyncIterator[Shown]:
    stream = Stream()
    page = await browser.new_page(viewport={"width": 1280, "height": 800})
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    async with server.serving(stream, {}, str, 0) as address:
        await page.goto(address)
        yield Shown(page, stream, address)
        await page.close()
    assert problems == []


async def test_a_cluster_without_nodes_says_so(shown: Shown) -> None:
    await expect(shown.page.locator(".rows")).to_contain_text("There are no nodes yet")


async def test_a_node_with_thousands_of_holds_shows_the_largest_and_counts_the_rest(
    shown: Shown,
) -> None:
    shown.stream.board.put("nodes", "worker-1", node("worker-1"))
    for number in range(MANY):
        one = hold(f"r{number}", "worker-1", amounts={"cpu": 32_000 if number == MANY - 1 else 10})
        shown.stream.board.put("reservations", one["id"], one)
    await expect(shown.page.locator(f".bar[aria-label^='r{MANY - 1} ']")).to_be_visible()
    await expect(shown.page.locator(".row .share")).to_contain_text("+4,800")
    await shown.page.locator(".row .share a").click()
    await expect(shown.page.locator(".count")).to_contain_text("5,000 of 5,000")


async def test_ends_may_be_far_away_or_nowhere(shown: Shown) -> None:
    ends = {"never": None, "in-2099": 4_070_908_800_000, "in-9999": 253_402_300_799_000}
    for name, end in ends.items():
        one = hold(name, "worker-1", ends=end)
        shown.stream.board.put("reservations", one["id"], one)
    await expect(shown.page.locator(".bar.held")).to_have_count(3)
    await shown.page.goto(f"{shown.address}#/reservations?q=in-9999&id=shop/in-9999")
    await expect(shown.page.locator("aside")).to_contain_text("9999")


async def test_an_address_brings_its_reservation_into_sight(shown: Shown) -> None:
    for number in range(500):
        shown.stream.board.put("nodes", f"worker-{number}", node(f"worker-{number}"))
    one = hold("far", "worker-400")
    shown.stream.board.put("reservations", one["id"], one)
    await shown.page.goto(f"{shown.address}#/timeline?sort=name&id=shop/far")
    await expect(shown.page.locator(".bar[aria-pressed='true']")).to_be_in_viewport()


async def test_nodes_are_grouped_by_a_label_that_only_some_have(shown: Shown) -> None:
    for number in range(600):
        labels = {"pool": f"p{number % 2}"} if number in (597, 598) else {}
        shown.stream.board.put(
            "nodes", f"worker-{number}", {**node(f"worker-{number}"), "labels": labels}
        )
    group = shown.page.get_by_label("Group by")
    await expect(group.locator("option[value=pool]")).to_be_attached()
    await group.select_option("pool")
    await expect(shown.page.locator(".row.group h2").first).to_have_text("no pool: 598 nodes")
    await expect(shown.page).to_have_url(f"{shown.address}#/timeline?group=pool")


async def test_a_nodes_maintenance_is_seen_by_pointer_and_keyboard(shown: Shown) -> None:
    now = int(time.time() * 1000)
    window = {
        "name": "disks",
        "drains": now + HOUR,
        "starts": now + 2 * HOUR,
        "ends": now + 4 * HOUR,
    }
    shown.stream.board.put("windows", "disks", {**window, "progress": "1 Planned"})
    shown.stream.board.put("nodes", "worker-1", {**node("worker-1"), "windows": ["disks"]})
    one = hold("web", "worker-1")
    shown.stream.board.put("reservations", one["id"], one)
    await shown.page.locator(".bar.window").hover()
    await expect(shown.page.locator("aside")).to_contain_text("kubectl describe maintenancewindow")
    await shown.page.locator(".bar.held").focus()
    await expect(shown.page.locator("aside h2")).to_contain_text("web")
    await shown.page.keyboard.press("ArrowRight")
    await expect(shown.page.locator("aside")).to_contain_text("1 Planned")
    await shown.page.keyboard.press("Enter")
    await expect(shown.page).to_have_url(f"{shown.address}#/timeline?id=window+disks")


async def test_what_comes_again_is_outlined_on_its_node_or_where_no_node_is_chosen(
    shown: Shown,
) -> None:
    now = int(time.time() * 1000)
    again = {"every": "0 * * * * (UTC) for 1h", "ends": now + HOUR}
    coming = {"coming": [(now + 2 * HOUR, now + 3 * HOUR), (now + 9 * HOUR, now + 10 * HOUR)]}
    shown.stream.board.put("nodes", "worker-1", node("worker-1"))
    for name, fields in (
        ("nightly", {}),
        ("used", {"shape": "claimed", "claimed": 1}),
        ("unplaced", {"nodes": [], "shape": "later", "starts": now}),
    ):
        one = hold(name, "worker-1", amounts={"cpu": 16_000}, **again, **coming, **fields)
        shown.stream.board.put("reservations", one["id"], one)
    page, ghosts = shown.page, shown.page.locator(".bar.coming")
    await expect(ghosts).to_have_count(6)
    await expect(page.locator(".row.waiting .bar.coming")).to_have_count(2)
    await expect(
        page.locator(".bar[aria-label^='unplaced for'].coming").first
    ).to_have_accessible_name(re.compile("its node is chosen then"))
    await page.locator(".bar.held").focus()
    await page.keyboard.press("ArrowRight")
    await expect(page.locator(".bar.coming:focus")).to_have_accessible_name(re.compile("recurs"))
    await expect(page.locator("aside .tag")).to_contain_text("recurs")
    await expect(page.locator("aside")).to_contain_text("reserver skip shop/")
    await expect(page.locator("aside")).to_contain_text("0 * * * * (UTC) for 1h")
    await page.keyboard.press("Enter")
    key = await page.locator(".bar:focus").get_attribute("data-key")
    await page.reload()
    await expect(page.locator(f".bar[data-key='{key}']")).to_have_attribute("aria-pressed", "true")
    await expect(page.get_by_label("Legend")).to_contain_text("Recurs")


async def test_what_pods_borrow_is_seen_on_the_hold_that_lends_it(shown: Shown) -> None:
    shown.stream.board.put("nodes", "worker-1", {**node("worker-1"), "borrowed": {"cpu": 5_000}})
    for name, lends in (("keeps", None), ("last", 100), ("first", 10)):
        one = hold(name, "worker-1", amounts={"cpu": 4_000}, lends=lends)
        shown.stream.board.put("reservations", one["id"], one)
    page = shown.page
    await expect(page.locator(".bar[aria-label^='first ']")).to_have_accessible_name(
        re.compile("100 % lent")
    )
    await expect(page.locator(".bar[aria-label^='last '] .lent")).to_have_attribute(
        "style", "height: 25%;"
    )
    await expect(page.locator(".bar .lent")).to_have_count(2)
    await page.locator(".bar[aria-label^='last ']").hover()
    await expect(page.locator("aside")).to_contain_text(
        "1 CPU on worker-1, to pods of a priority below 100"
    )
    await expect(page.get_by_label("Legend")).to_contain_text("Lent to pods")


async def test_slots_that_are_claimed_lend_nothing(shown: Shown) -> None:
    shown.stream.board.put("nodes", "worker-1", {**node("worker-1"), "borrowed": {"cpu": 6_000}})
    part = {"amounts": {"cpu": 4_000}, "slots": 2, "nodes": [["worker-1", 2]]}
    for name, fields in (("first", {"lends": 10, "claimed": 1}), ("last", {"lends": 100})):
        one = hold(name, "worker-1", **{**part, **fields})
        shown.stream.board.put("reservations", one["id"], one)
    for name, share in (("first", "50 %"), ("last", "25 %")):
        bar = shown.page.locator(f".bar[aria-label^='{name} ']")
        await expect(bar).to_have_accessible_name(re.compile(f"{share} lent"))


async def test_two_tabs_follow_a_storm_of_changes(browser: Browser, shown: Shown) -> None:
    other = await browser.new_page()
    await other.goto(f"{shown.address}#/reservations")
    for turn in range(20):
        for number in range(1000):
            one = hold(f"r{number}", f"worker-{number % 50}", claimed=turn)
            shown.stream.board.put("reservations", one["id"], one)
        await shown.page.evaluate("new Promise(requestAnimationFrame)")
    last = hold("last", "worker-1", amounts={"cpu": 32_000})
    shown.stream.board.put("reservations", last["id"], last)
    await expect(shown.page.locator(".bar[aria-label^='last ']")).to_be_visible()
    await expect(other.locator(".count")).to_contain_text("1,001 of 1,001")
    await other.close()


async def test_a_command_that_has_ended_is_reported_and_all_stays_in_sight(
    browser: Browser,
) -> None:
    stream, page = Stream(), await browser.new_page()
    one = hold("web", "worker-1")
    stream.board.put("reservations", one["id"], one)
    async with server.serving(stream, {}, str, 0) as address:
        await page.goto(address)
        await expect(page.locator(".bar")).to_be_visible()
    await expect(page.locator("#state.lost")).to_contain_text("start it again")
    await expect(page.locator(".bar")).to_be_visible()
    await page.close()
