"""Dashboard, alerts and runbooks belong together."""

import json
import re
from pathlib import Path

import yaml

from hack.dashboard import FILE, dashboard

ROOT = Path(__file__).parents[2]
RUNBOOKS = (ROOT / "docs/runbooks.md").read_text()
RULES = [
    rule
    for group in yaml.safe_load((ROOT / "monitoring/rules.yaml").read_text())["spec"]["groups"]
    for rule in group["rules"]
]


def test_the_dashboard_is_what_its_panels_say() -> None:
    assert json.loads(FILE.read_text()) == dashboard(), "run `make dashboard`"


def test_no_panel_lies_over_another() -> None:
    places = [panel["gridPos"] for panel in dashboard()["panels"]]
    cells = [
        (x, y)
        for at in places
        for x in range(at["x"], at["x"] + at["w"])
        for y in range(at["y"], at["y"] + at["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24


def test_each_alert_has_a_runbook_that_says_what_to_do_and_no_other_has() -> None:
    sections = re.split(r"^## ", RUNBOOKS, flags=re.MULTILINE)[1:]
    assert [section.partition("\n")[0] for section in sections] == [rule["alert"] for rule in RULES]
    for section in sections:
        words = re.findall(r"^\*\*(\w+)\*\*:", section, re.MULTILINE)
        assert words == ["Meaning", "Impact", "Diagnosis", "Mitigation"], section


def test_each_alert_says_how_bad_it_is_and_where_its_runbook_is() -> None:
    for rule in RULES:
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}
        anchor = rule["alert"].lower()
        assert rule["annotations"]["runbook_url"] == f"docs/runbooks.md#{anchor}"
        assert rule["annotations"].keys() == {"summary", "description", "runbook_url"}
