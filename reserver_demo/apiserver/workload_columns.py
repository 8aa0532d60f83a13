"""The columns of Jobs, CronJobs, ReplicaSets, Deployments and budgets."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from reserver_demo.apiserver.columns import AGE, NAME, Cell, Column, field, human_duration, since
from reserver_demo.apiserver.status import Json
from reserver_demo.clock import parse_rfc3339


def _count(*steps: str) -> Callable[[Json, datetime], Cell]:
    read = field(*steps)

    def count(content: Json, now: datetime) -> Cell:
        found = read(content, now)
        return found if isinstance(found, int) else 0

    return count


def _ready(content: Json, _: datetime) -> str:
    return f"{content['status'].get('readyReplicas', 0)}/{content['spec']['replicas']}"


def _job_status(content: Json, _: datetime) -> str:
    status = content["status"]
    true = [each["type"] for each in status.get("conditions", ()) if each["status"] == "True"]
    if ending := next((each for each in ("Complete", "Failed") if each in true), ""):
        return ending
    if "deletionTimestamp" in content["metadata"]:
        return "Terminating"
    if content["spec"]["suspend"]:
        return "Suspended"
    return "FailureTarget" if "FailureTarget" in true else "Running"


def _completions(content: Json, _: datetime) -> str:
    spec, succeeded = content["spec"], content["status"].get("succeeded", 0)
    if "completions" in spec:
        return f"{succeeded}/{spec['completions']}"
    most = spec["parallelism"]
    return f"{succeeded}/1 of {most}" if most > 1 else f"{succeeded}/1"


def _job_duration(content: Json, now: datetime) -> str:
    status = content["status"]
    if "startTime" not in status:
        return ""
    if "completionTime" not in status:
        return since(status["startTime"], now)
    took = parse_rfc3339(status["completionTime"]) - parse_rfc3339(status["startTime"])
    return human_duration(took.total_seconds())


def _or_not_available(name: str) -> Callable[[Json, datetime], Cell]:
    read = field("spec", name, default="N/A")
    return lambda content, now: str(read(content, now))


WORKLOAD_COLUMNS: dict[str, tuple[Column, ...]] = {
    "jobs": (
        NAME,
        Column("Status", _job_status),
        Column("Completions", _completions),
        Column("Duration", _job_duration),
        AGE,
    ),
    "cronjobs": (
        NAME,
        Column("Schedule", field("spec", "schedule")),
        Column("Timezone", field("spec", "timeZone")),
        Column("Suspend", lambda content, _: str(content["spec"]["suspend"])),
        Column("Active", lambda content, _: len(content["status"].get("active", ())), "integer"),
        Column("Last Schedule", field("status", "lastScheduleTime")),
        AGE,
    ),
    "replicasets": (
        NAME,
        Column("Desired", _count("spec", "replicas"), "integer"),
        Column("Current", _count("status", "replicas"), "integer"),
        Column("Ready", _count("status", "readyReplicas"), "integer"),
        AGE,
    ),
    "deployments": (
        NAME,
        Column("Ready", _ready),
        Column("Up-to-date", _count("status", "updatedReplicas"), "integer"),
        Column("Available", _count("status", "availableReplicas"), "integer"),
        AGE,
    ),
    "poddisruptionbudgets": (
        NAME,
        Column("Min Available", _or_not_available("minAvailable")),
        Column("Max Unavailable", _or_not_available("maxUnavailable")),
        Column("Allowed Disruptions", _count("status", "disruptionsAllowed"), "integer"),
        AGE,
    ),
}
