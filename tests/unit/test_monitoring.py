"""Dashboard, alerts and runbooks belong together."""

import json
import re
from pathlib import Path

import yaml

from hack.dashboard import FILE, dashboard, queries

ROOT = Path(__file__).parents[2]
RUNBOOKS = (ROOT / "docs/troubleshooting.md").read_text()
EVERY = [
    rule
    for group in yaml.safe_load((ROOT / "monitoring/rules.yaml").read_text())["spec"]["groups"]
    for rule in group["rules"]
]
RULES = [rule for rule in EVERY if "alert" in rule]
RECORDS = {rule["record"]: rule["expr"] for rule in EVERY if "record" in rule}
BY_ONE_TENANT = (
    "reserver_acknowledgement_seconds",
    "reserver_expired_unclaimed_total",
    "reserver_holds_violated_total",
    "reserver_invalid_entries",
    "reserver_namespace_held",
    "reserver_pod_moves_total",
    "reserver_quota_exceeded_reservations",
    "reserver_reservations_exceeding",
    "reserver_resources_held",
    "reserver_store_edit_conflicts_total",
    "reserver_unbacked_reservations",
    "descheduler_pods_evicted_total",
)
"""Metrics that a team can change alone, by writes in its own namespace."""


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
    alerts = RUNBOOKS.partition("## Alerts\n")[2].partition("\n## ")[0]
    sections = re.split(r"^### ", alerts, flags=re.MULTILINE)[1:]
    assert [section.partition("\n")[0] for section in sections] == [rule["alert"] for rule in RULES]
    for section in sections:
        words = re.findall(r"^- \*\*(\w+)\*\*: \S", section, re.MULTILINE)
        same = re.search(r"^As \[(\w+)\]", section, re.MULTILINE)
        if same:
            assert section.startswith(same[1].replace("Reserver", "ReserverTenant"))
        else:
            assert words == ["Meaning", "Impact", "Diagnosis", "Remedy"], section


def test_each_alert_says_how_bad_it_is_and_where_its_runbook_is() -> None:
    for rule in RULES:
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}
        url = f"https://docs.example/troubleshooting.html#{rule['alert'].lower()}"
        assert rule["annotations"]["runbook_url"] == url
        assert rule["annotations"].keys() == {"summary", "description", "runbook_url"}


def resolved(expression: str) -> str:
    """Return an expression with the expressions of its recorded series."""
    for record, made_of in RECORDS.items():
        selector = re.search(rf"{record}(\{{[^}}]*\}})?", expression)
        if selector is not None:
            expression += resolved(made_of) + (selector[1] or "")
    return expression


def test_what_one_tenant_can_cause_alone_calls_nobody_of_the_platform() -> None:
    raised = {rule["alert"]: rule for rule in RULES}
    by_tenants = {
        name
        for name, rule in raised.items()
        if any(metric in resolved(rule["expr"]) for metric in BY_ONE_TENANT)
        and 'scope="home"' not in resolved(rule["expr"])
    }
    assert {raised[name]["labels"]["severity"] for name in by_tenants} == {"info"}
    assert {name for name in raised if "Tenant" in name} < by_tenants | {
        "ReserverTenantUnreadableObjects"
    }


def test_each_series_that_is_recorded_is_used_and_none_other_is_asked_for() -> None:
    asked = " ".join([*queries().values(), *(rule["expr"] for rule in EVERY)])
    to_be_charged = {"reserver:namespace_held_core_hours:1d"}
    assert {*re.findall(r"reserver:\w+:\w+", asked)} | to_be_charged == {*RECORDS}


def test_every_rule_is_tried_by_promtool() -> None:
    """By the tests that tests/load/test_monitoring.py has the real one run."""
    tried = (ROOT / "monitoring/rules_test.yaml").read_text()
    for rule in RULES:
        assert f'alertname="{rule["alert"]}"' in tried
    for record in RECORDS:
        assert f"expr: {record}" in tried, record
