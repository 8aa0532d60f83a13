"""The columns of resources in tables (pkg/printers/internalversion/printers.go)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from reserver_demo.apiserver.status import Json
from reserver_demo.clock import parse_rfc3339

Cell = str | int | None
_MINUTE, _HOUR, _DAY = 60, 3600, 86400


@dataclass(frozen=True, slots=True)
class Column:
    """A column; `read` returns the cell of an object at a time."""

    name: str
    read: Callable[[Json, datetime], Cell]
    kind: str = "string"
    wide: bool = False


def human_duration(seconds: float) -> str:
    """Return a duration in kubectl's format (`duration.HumanDuration`)."""
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
    return since(content["metadata"]["creationTimestamp"], now)


def since(moment: str, now: datetime) -> str:
    """Return the age of a time in kubectl's format."""
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
    states = [each.get("state", {}) for each in status.get("containerStatuses", ())]
    ended = [state["terminated"]["reason"] for state in states if "terminated" in state]
    return str(status.get("reason") or next(iter(ended), status.get("phase", "")))


def _restarts(content: Json, _: datetime) -> int:
    return sum(s.get("restartCount", 0) for s in content["status"].get("containerStatuses", ()))


def field(*steps: str, default: str = "<none>") -> Callable[[Json, datetime], Cell]:
    """Return a reader of a field as a cell."""

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
    return since(moment, now) if moment else "<unknown>"


def _involved(content: Json, _: datetime) -> str:
    involved = content.get("involvedObject", {})
    return f"{involved.get('kind', '').lower()}/{involved.get('name', '')}"


NAME, AGE = Column("Name", _name), Column("Age", _age)
PLAIN = (NAME, AGE)
COLUMNS: dict[str, tuple[Column, ...]] = {
    "pods": (
        NAME,
        Column("Ready", _ready),
        Column("Status", _pod_status),
        Column("Restarts", _restarts, "integer"),
        AGE,
        Column("IP", field("status", "podIP"), wide=True),
        Column("Node", field("spec", "nodeName"), wide=True),
        Column("Nominated Node", field("status", "nominatedNodeName"), wide=True),
    ),
    "nodes": (
        NAME,
        Column("Status", _node_status),
        Column("Roles", lambda *_: "<none>"),
        AGE,
        Column("Version", field("status", "nodeInfo", "kubeletVersion", default="")),
    ),
    "configmaps": (NAME, Column("Data", _data_count, "integer"), AGE),
    "namespaces": (NAME, Column("Status", field("status", "phase")), AGE),
    "events": (
        Column("Last Seen", _last_seen),
        Column("Type", field("type", default="")),
        Column("Reason", field("reason", default="")),
        Column("Object", _involved),
        Column("Message", field("message", default="")),
        Column("Name", _name, wide=True),
    ),
    "priorityclasses": (
        NAME,
        Column("Value", field("value"), "integer"),
        Column("Global-Default", field("globalDefault", default="false")),
        AGE,
        Column("PreemptionPolicy", field("preemptionPolicy")),
    ),
}
"""The columns of resources with columns of their own."""
