"""Jobs: pods until enough have succeeded, or too many have failed (pkg/controller/job)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from reserver_demo.apiserver.status import Json
from reserver_demo.clock import parse_rfc3339, rfc3339
from reserver_demo.controllers.effects import (
    Change,
    Create,
    Delete,
    Effect,
    key_of,
    with_conditions,
)
from reserver_demo.controllers.made_pods import (
    is_active,
    is_ready,
    is_terminating,
    new_pod,
    owner_reference,
)

_INDEX = "batch.kubernetes.io/job-completion-index"
_ENDINGS = ("Complete", "Failed")


def reconciled(job: Json, pods: Sequence[Json], now: datetime) -> Iterator[Effect]:
    """Yield the due changes of a Job at a time; `pods` are its own."""
    if ended := _ended(job):
        ttl = job["spec"].get("ttlSecondsAfterFinished")
        if ttl is not None and (now - parse_rfc3339(ended)).total_seconds() >= ttl:
            yield Delete("jobs", key_of(job))
        return
    active = [pod for pod in pods if is_active(pod)]
    conditions = _conditions(job, pods, active)
    desired = 0 if conditions else _desired(job, pods, len(active))
    for pod in active[desired:]:
        yield Delete("pods", key_of(pod))
    free = _free_indexes(job, pods)
    for _ in range(desired - len(active)):
        yield _new_pod(job, next(free, None))
    status = _status(job, pods, active[:desired], rfc3339(now))
    if conditions:
        status["conditions"] = with_conditions(job["status"], conditions, rfc3339(now))
        if conditions[-1]["type"] == "Complete":
            status["completionTime"] = rfc3339(now)
    yield Change("jobs", key_of(job), {"status": status}, "status")


def _count(pods: Sequence[Json], phase: str) -> int:
    return sum(pod["status"].get("phase") == phase for pod in pods)


def _ended(job: Json) -> str:
    """Return the end of a Job, RFC 3339; empty while it runs."""
    for each in job["status"].get("conditions", ()):
        if each["type"] in _ENDINGS and each["status"] == "True":
            return str(each["lastTransitionTime"])
    return ""


def _desired(job: Json, pods: Sequence[Json], active: int) -> int:
    spec, succeeded = job["spec"], _count(pods, "Succeeded")
    if spec["suspend"]:
        return 0
    if "completions" not in spec:  # A work queue: a pod succeeds when the queue is empty.
        return active if succeeded else int(spec["parallelism"])
    return int(max(min(spec["parallelism"], spec["completions"] - succeeded), 0))


def _conditions(job: Json, pods: Sequence[Json], active: Sequence[Json]) -> list[Json]:
    """Return the conditions of a Job that ends now; empty while it runs."""
    spec, succeeded = job["spec"], _count(pods, "Succeeded")
    if _count(pods, "Failed") > spec["backoffLimit"]:
        why, text = "BackoffLimitExceeded", "Job has reached the specified backoff limit"
        kinds = ("FailureTarget", "Failed")
    elif _is_done(spec, succeeded, active):
        why, text = "CompletionsReached", "Reached expected number of succeeded pods"
        kinds = ("SuccessCriteriaMet", "Complete")
    else:
        return []
    return [{"type": kind, "status": "True", "reason": why, "message": text} for kind in kinds]


def _is_done(spec: Json, succeeded: int, active: Sequence[Json]) -> bool:
    if "completions" in spec:
        return bool(succeeded >= spec["completions"])
    return succeeded > 0 and not active


def _free_indexes(job: Json, pods: Sequence[Json]) -> Iterator[int]:
    """Yield the indexes without a running or succeeded pod; none unless the Job is Indexed."""
    if job["spec"]["completionMode"] != "Indexed":
        return
    taken = {
        pod["metadata"]["annotations"][_INDEX]
        for pod in pods
        if is_active(pod) or pod["status"].get("phase") == "Succeeded"
    }
    for index in range(job["spec"]["completions"]):
        if str(index) not in taken:
            yield index


def _new_pod(job: Json, index: int | None) -> Create:
    reference = owner_reference("Job", "batch/v1", job)
    if index is None:
        return new_pod(reference, job)
    made = new_pod(reference, job, f"{job['metadata']['name']}-{index}-")
    for field in ("annotations", "labels"):
        made.body["metadata"][field][_INDEX] = str(index)
    for container in made.body["spec"]["containers"]:
        container.setdefault("env", []).append(
            {"name": "JOB_COMPLETION_INDEX", "value": str(index)}
        )
    return made


def _status(job: Json, pods: Sequence[Json], active: Sequence[Json], now: str) -> Json:
    status: Json = {
        "startTime": job["status"].get("startTime", now),
        "ready": sum(map(is_ready, active)),
        "terminating": sum(map(is_terminating, pods)),
        "uncountedTerminatedPods": {},
    }
    if job["spec"]["suspend"]:
        del status["startTime"]
    counts = {
        "active": len(active),
        "succeeded": _count(pods, "Succeeded"),
        "failed": _count(pods, "Failed"),
    }
    return status | {name: count for name, count in counts.items() if count}
