"""Writes monitoring/dashboard.json, for Grafana, from the panels in monitoring/dashboard.yaml."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parents[1] / "monitoring"
FILE = FOLDER / "dashboard.json"
_COLUMNS, _ROW, _STAT, _GRAPH = 24, 1, 4, 8
"""The width of the grid, and the heights of rows, numbers and graphs."""

_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_SERIES = "reserver_ready|reserver_rebalance_policy_broken"
"""A series of each process whose job can be chosen."""

_VARIABLES = [
    {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"},
    {
        "name": "job",
        "label": "Job",
        "type": "query",
        "datasource": _SOURCE,
        "query": {
            "query": f'label_values({{__name__=~"{_SERIES}"}}, job)',
            "refId": "job",
        },
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "allValue": ".+",
        "current": {"text": ["All"], "value": ["$__all"]},
    },
]


def dashboard() -> dict[str, Any]:
    """Return the dashboard as Grafana imports it."""
    return {
        "uid": "reserver",
        "title": "Reserver",
        "description": "Reservations, moves and rebalancing for the stock kube-scheduler.",
        "tags": ["kubernetes", "scheduling"],
        "schemaVersion": 39,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {"list": _VARIABLES},
        "panels": list(_panels(yaml.safe_load((FOLDER / "dashboard.yaml").read_text()))),
    }


def queries() -> dict[str, str]:
    """Return each query, by its row, panel and legend."""
    rows = yaml.safe_load((FOLDER / "dashboard.yaml").read_text())
    return {
        f"{row['row']} / {panel['title']} / {legend}": query
        for row in rows
        for panel in row["panels"]
        for legend, query in panel["queries"].items()
    }


def _panels(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    numbers, y = count(1), 0
    for row in rows:
        yield {
            "id": next(numbers),
            "type": "row",
            "title": row["row"],
            "collapsed": False,
            "panels": [],
            "gridPos": {"x": 0, "y": y, "w": _COLUMNS, "h": _ROW},
        }
        x, y, height = 0, y + _ROW, 0
        for panel in row["panels"]:
            width = panel.get("width", _COLUMNS // 3)
            if x + width > _COLUMNS:
                x, y = 0, y + height
            height = _STAT if panel.get("kind") == "stat" else _GRAPH
            place = {"x": x, "y": y, "w": width, "h": height}
            yield _panel(panel, next(numbers), place)
            x += width
        y += height


def _panel(panel: dict[str, Any], number: int, place: dict[str, int]) -> dict[str, Any]:
    is_stat = panel.get("kind") == "stat"
    options: dict[str, Any] = {"tooltip": {"mode": "multi", "sort": "desc"}}
    if is_stat:
        options = {"colorMode": "none", "reduceOptions": {"calcs": ["lastNotNull"]}}
    return {
        "id": number,
        "type": "stat" if is_stat else "timeseries",
        "title": panel["title"],
        "description": panel["about"],
        "datasource": _SOURCE,
        "gridPos": place,
        "fieldConfig": {
            "defaults": {"unit": panel.get("unit", "short"), "min": 0},
            "overrides": [],
        },
        "options": options,
        "targets": [
            {
                "refId": chr(ord("A") + at),
                "datasource": _SOURCE,
                "expr": query,
                "legendFormat": legend,
            }
            for at, (legend, query) in enumerate(panel["queries"].items())
        ],
    }


def main() -> None:
    """Write the file."""
    FILE.write_text(json.dumps(dashboard(), indent=2) + "\n")


if __name__ == "__main__":
    main()
