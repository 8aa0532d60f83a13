"""Tables of the documentation fit narrow screens, where each row becomes a list."""

from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from hack.site_tables import titled

STYLE = (Path(__file__).parents[2] / "docs/site.css").read_text()
TITLES = ("input", "who writes it", "bound on one", "how many", "in the code")
CELLS = ("ReservationQuota", "administrator", "64" * 9, "", "reserver/stores/quota_codec.py")
HEAD, ROW = (
    "".join(f"<{tag}>{each}</{tag}>" for each in texts)
    for tag, texts in (("th", TITLES), ("td", CELLS))
)
TABLE = f"<table><thead><tr>{HEAD}</tr></thead><tbody><tr>{ROW}</tr></tbody></table>"
PAGE = f"<style>{STYLE}</style><body class='md-typeset' style='margin: 0'>{titled(TABLE)}"


@pytest.mark.parametrize(("width", "is_stacked"), [(360, True), (500, True), (1280, False)])
async def test_rows_are_lists_where_the_table_has_no_room(
    browser: Browser, width: int, *, is_stacked: bool
) -> None:
    page = await browser.new_page(viewport={"width": width, "height": 900})
    await page.set_content(PAGE)
    assert await page.evaluate("document.documentElement.scrollWidth") <= width
    await expect(page.locator("thead")).to_be_visible(visible=not is_stacked)
    title = "getComputedStyle(document.querySelectorAll('td')[1], '::before').content"
    assert ("who writes it" in await page.evaluate(title)) is is_stacked
    await expect(page.locator("td:empty")).to_be_visible(visible=not is_stacked)
    await page.close()
