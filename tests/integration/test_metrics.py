"""/metrics exposes the metrics of the reference, the dashboard and the alerts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from hack import metrics_reference
from hack.dashboard import queries

ROOT = Path(__file__).parents[2]
RULES = (ROOT / "monitoring/rules.yaml").read_text()
_PARTS = ("_bucket", "_count", "_sum")


@pytest.fixture
async def text() -> str:
    return await metrics_reference.served()


@pytest.fixture
def exposed(text: str) -> dict[str, set[str]]:
    return metrics_reference.exposed(text + metrics_reference.rebalancing())


async def test_the_reference_is_what_is_exposed(text: str) -> None:
    known = metrics_reference.PAGE.read_text()
    assert known == metrics_reference.page(text), "run `make metrics-reference`"


async def test_dashboard_and_alerts_ask_for_metrics_that_there_are(
    exposed: dict[str, set[str]],
) -> None:
    rules = [
        rule["expr"] for group in yaml.safe_load(RULES)["spec"]["groups"] for rule in group["rules"]
    ]
    asked = re.findall(
        r"\b(?:reserver|descheduler|process)_\w+", " ".join([*queries().values(), *rules])
    )
    names = {_family(name) for name in asked}
    assert len(names) > len(exposed) / 2
    assert names <= exposed.keys()


def _family(name: str) -> str:
    """Return whose bucket, count or sum it is."""
    return next((name.removesuffix(part) for part in _PARTS if name.endswith(part)), name)


async def test_all_that_is_exposed_is_on_the_dashboard_or_in_an_alert_or_left_out_on_purpose(
    exposed: dict[str, set[str]],
) -> None:
    shown = " ".join(queries().values()) + RULES
    left = {name for name in exposed if not re.search(rf"\b{name}(_bucket|_count)?\b", shown)}
    assert left == {
        "descheduler_build_info",
        "descheduler_pods_evicted",  # The older names of others.
        "descheduler_descheduler_loop_duration_seconds",
        "descheduler_descheduler_strategy_duration_seconds",
        "process_max_fds",
        "process_virtual_memory_bytes",
        "reserver_event_loop_held_seconds",  # Deprecated names.
        "reserver_store_edits_lost_total",
        "reserver_watch_current",
    }
