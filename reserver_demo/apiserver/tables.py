"""Tables: the server-side columns that kubectl prints (`meta.k8s.io/v1` Table).

pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from reserver_demo.apiserver.jsonpath import first
from reserver_demo.apiserver.resources import Resource
from reserver_demo.apiserver.status import Json
from reserver_demo.apiserver.store import Stored
from reserver_demo.clock import parse_rfc3339

Cell = str | int | None
_MINUTE, _HOUR, _DAY = 60, 3600, 86400


@dataclass(frozen=True, slots=True)
class Column:
    """One column; `read` gets the object and the time."""

    name: str
    read: Callable[[Json, datetime], Cell]
    kind: str = "string"
    wide: bool = False


def table(
    resource: Resource, rows: Iterable[Stored], metadata: Json, now: datetime, include: str
) -> Json:
    """Return objects as a table; `include` says what of each comes along: Metadata or Object."""
    columns = _columns(resource)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": [
            {
                "name": column.name,
                "type": column.kind,
                "format": "name" if column.name == "Name" else "",
                "description": "",
                "priority": int(column.wide),
            }
            for column in columns
        ],
        "rows": [
            {
                "cells": [column.read(stored.content, now) for column in columns],
                "object": _included(resource, stored, include),
            }
            for stored in rows
        ],
    }


def _columns(resource: Resource) -> tuple[Column, ...]:
    if resource.printer_columns:
        return (_NAME, *map(_printed, resource.printer_columns))
    return COLUMNS.get(resource.plural, _PLAIN)


def _included(resource: Resource, stored: Stored, include: str) -> Json | None:
    if include == "None":
        return None
    if include == "Object":
        return {"kind": resource.kind, "apiVersion": resource.api_version, **stored.content}
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": stored.content["metadata"],
    }


def human_duration(seconds: float) -> str:
    """Return a duration as kubectl does (`duration.HumanDuration`)."""
    whole = max(int(seconds), 0)
    for limit, unit, letter, finer, finer_letter, coarse in (
        (2 * _MINUTE, 1, "s", 0, "", 0),
        (3 * _HOUR, _MINUTE, "m", 1, "s", 10 * _MINUTE),
        (2 * _DAY, _HOUR, "h", _MINUTE, "m", 8 * _HOUR),
        (365 * 2 * _DAY, _DAY, "d", _HOUR, "h", 8 * _DAY),
    ):
        if whole < limit:
            rest = (whole % unit) // finer if finer and whole < coarse else 0
            return f"{whole // unit}{letter}" + (f"{rest}{finer_letter}" if rest else "")
    return f"{whole // (365 * _DAY)}y"


def _age(content: Json, now: datetime) -> str:
    return _since(content["metadata"]["creationTimestamp"], now)


def _since(moment: str, now: datetime) -> str:
    return human_duration((now - parse_rfc3339(moment)).total_seconds())


def _name(content: Json, _: datetime) -> str:
    name: str = content["metadata"]["name"]
    return name


def _ready(content: Json, _: datetime) -> str:
    statuses = content["status"].get("containerStatuses", ())
    ready = sum(bool(status.get("ready")) for status in statuses)
    return f"{ready}/{len(content['spec'].get('containers', ()))}"


def _pod_status(content: Json, _: datetime) -> str:
    if "deletionTimestamp" in content["metadata"]:
        return "Terminating"
    status = content["status"]
    if any(c.get("reason") == "SchedulingGated" for c in status.get("conditions", ())):
        return "SchedulingGated"
    return str(status.get("reason") or status.get("phase", ""))


def _restarts(content: Json, _: datetime) -> int:
    return sum(s.get("restartCount", 0) for s in content["status"].get("containerStatuses", ()))


def _field(*steps: str, default: str = "<none>") -> Callable[[Json, datetime], Cell]:
    def read(content: Json, _: datetime) -> Cell:
        value: object = content
        for step in steps:
            value = value.get(step) if isinstance(value, dict) else None
        if isinstance(value, bool):
            return str(value).lower()
        return value if isinstance(value, str | int) and value != "" else default

    return read


def _node_status(content: Json, _: datetime) -> str:
    conditions = content["status"].get("conditions", ())
    ready = next((c["status"] == "True" for c in conditions if c["type"] == "Ready"), None)
    words = ["Unknown" if ready is None else "Ready" if ready else "NotReady"]
    if content["spec"].get("unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def _data_count(content: Json, _: datetime) -> int:
    return len(content.get("data", ())) + len(content.get("binaryData", ()))


def _last_seen(content: Json, now: datetime) -> str:
    moment = content.get("lastTimestamp") or content.get("eventTime")
    return _since(moment, now) if moment else "<unknown>"


def _involved(content: Json, _: datetime) -> str:
    involved = content.get("involvedObject", {})
    return f"{involved.get('kind', '').lower()}/{involved.get('name', '')}"


def _printed(column: Json) -> Column:
    """Return the column that a CRD defines (customresource/tableconvertor)."""
    path, kind = column["jsonPath"], column["type"]

    def read(content: Json, now: datetime) -> Cell:
        value = first(content, path)
        if kind == "date":
            return _since(str(value), now) if value else None
        return value if isinstance(value, str | int) else None

    return Column(column["name"], read, kind, wide=bool(column.get("priority")))


_NAME, _AGE = Column("Name", _name), Column("Age", _age)
_PLAIN = (_NAME, _AGE)
COLUMNS: Mapping[str, tuple[Column, ...]] = {
    "pods": (
        _NAME,
        Column("Ready", _ready),
        Column("Status", _pod_status),
        Column("Restarts", _restarts, "integer"),
        _AGE,
        Column("IP", _field("status", "podIP"), wide=True),
        Column("Node", _field("spec", "nodeName"), wide=True),
        Column("Nominated Node", _field("status", "nominatedNodeName"), wide=True),
    ),
    "nodes": (
        _NAME,
        Column("Status", _node_status),
        Column("Roles", lambda *_: "<none>"),
        _AGE,
        Column("Version", _field("status", "nodeInfo", "kubeletVersion", default="")),
    ),
    "configmaps": (_NAME, Column("Data", _data_count, "integer"), _AGE),
    "namespaces": (_NAME, Column("Status", _field("status", "phase")), _AGE),
    "events": (
        Column("Last Seen", _last_seen),
        Column("Type", _field("type", default="")),
        Column("Reason", _field("reason", default="")),
        Column("Object", _involved),
        Column("Message", _field("message", default="")),
        Column("Name", _name, wide=True),
    ),
    "priorityclasses": (
        _NAME,
        Column("Value", _field("value"), "integer"),
        Column("Global-Default", _field("globalDefault", default="false")),
        _AGE,
        Column("PreemptionPolicy", _field("preemptionPolicy")),
    ),
}
"""The columns of the resources that have their own."""
