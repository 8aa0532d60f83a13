"""The strategies of Jobs, CronJobs, ReplicaSets and Deployments: pkg/registry/batch and apps."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from reserver_demo.apiserver.pod_defaults import set_template_defaults
from reserver_demo.apiserver.selectors import selects
from reserver_demo.apiserver.status import Cause, Json, invalid_value, required
from reserver_demo.apiserver.strategy import Strategy, keep

JOB_NAME = "batch.kubernetes.io/job-name"
CONTROLLER_UID = "batch.kubernetes.io/controller-uid"
_TEMPLATE = "spec.template"
_MISMATCH = "`selector` does not match template `labels`"
_IMMUTABLE = "field is immutable"


def _keep_spec(new: Json, old: Json) -> None:
    keep("spec", new, old)


def _creation(set_defaults: Callable[[Json], None]) -> Callable[[Json], None]:
    def prepare(body: Json) -> None:
        body["metadata"]["generation"] = 1
        body["status"] = {}
        set_defaults(body)

    return prepare


def _update(set_defaults: Callable[[Json], None]) -> Callable[[Json, Json], None]:
    def prepare(new: Json, old: Json) -> None:
        keep("status", new, old)
        set_defaults(new)
        if new.get("spec") != old.get("spec"):
            new["metadata"]["generation"] = old["metadata"]["generation"] + 1

    return prepare


def _replicas_defaults(workload: Json) -> None:
    workload["spec"].setdefault("replicas", 1)
    set_template_defaults(workload["spec"]["template"])


def _deployment_defaults(deployment: Json) -> None:
    _replicas_defaults(deployment)
    spec = deployment["spec"]
    spec.setdefault("progressDeadlineSeconds", 600)
    spec.setdefault("revisionHistoryLimit", 10)
    strategy = spec.setdefault("strategy", {})
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxSurge", "25%")
        rolling.setdefault("maxUnavailable", "25%")


def _job_spec_defaults(spec: Json) -> None:
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    for name, value in (
        ("backoffLimit", 6),
        ("completionMode", "NonIndexed"),
        ("manualSelector", False),
        ("podReplacementPolicy", "TerminatingOrFailed"),
        ("suspend", False),
    ):
        spec.setdefault(name, value)
    set_template_defaults(spec["template"])


def _job_defaults(job: Json) -> None:
    metadata, spec = job["metadata"], job["spec"]
    _job_spec_defaults(spec)
    if "selector" in spec:  # An update.
        return
    own = {CONTROLLER_UID: metadata["uid"]}
    spec["selector"] = {"matchLabels": own}
    former = {"controller-uid": metadata["uid"], "job-name": metadata["name"]}
    inside = spec["template"]["metadata"]
    inside["labels"] = inside.get("labels", {}) | own | {JOB_NAME: metadata["name"]} | former
    metadata.setdefault("labels", inside["labels"])


def _cron_job_defaults(cron_job: Json) -> None:
    spec = cron_job["spec"]
    for name, value in (
        ("concurrencyPolicy", "Allow"),
        ("failedJobsHistoryLimit", 1),
        ("successfulJobsHistoryLimit", 3),
        ("suspend", False),
    ):
        spec.setdefault(name, value)
    template = spec["jobTemplate"]
    template.setdefault("metadata", {})
    set_template_defaults(template["spec"]["template"])


def _check_template(template: Json, path: str) -> Iterator[Cause]:
    if not template.get("spec", {}).get("containers"):
        yield required(f"{path}.spec.containers")


def _check_selected(workload: Json) -> Iterator[Cause]:
    spec = workload.get("spec", {})
    template = spec.get("template", {})
    if not spec.get("selector"):
        yield required("spec.selector")
    elif not selects(spec["selector"], template.get("metadata", {}).get("labels", {})):
        yield invalid_value(f"{_TEMPLATE}.metadata.labels", "", _MISMATCH)
    yield from _check_template(template, _TEMPLATE)


def _check_job_spec(spec: Json, path: str) -> Iterator[Cause]:
    template = spec.get("template", {})
    yield from _check_template(template, f"{path}.template")
    if template.get("spec", {}).get("restartPolicy") not in {"OnFailure", "Never"}:
        valid = 'valid values: "OnFailure", "Never"'
        yield required(f"{path}.template.spec.restartPolicy", valid)


def _check_job(job: Json) -> Iterator[Cause]:
    return _check_job_spec(job.get("spec", {}), "spec")


def _check_cron_job(cron_job: Json) -> Iterator[Cause]:
    spec = cron_job.get("spec", {})
    if not spec.get("schedule"):
        yield required("spec.schedule")
    yield from _check_job_spec(spec.get("jobTemplate", {}).get("spec", {}), "spec.jobTemplate.spec")


def _immutable(*fields: str) -> Callable[[Json, Json], Iterator[Cause]]:
    def check(new: Json, old: Json) -> Iterator[Cause]:
        for field in fields:
            if new["spec"].get(field) != old["spec"].get(field):
                yield invalid_value(f"spec.{field}", "", _IMMUTABLE)

    return check


def _strategy(
    defaults: Callable[[Json], None],
    check: Callable[[Json], Iterator[Cause]],
    *immutable: str,
) -> Strategy:
    return Strategy(
        prepare_create=_creation(defaults),
        prepare_update=_update(defaults),
        prepare_status=_keep_spec,
        check=check,
        check_update=_immutable(*immutable),
    )


JOB = _strategy(_job_defaults, _check_job, "completions", "selector", "template")
CRON_JOB = _strategy(_cron_job_defaults, _check_cron_job)
"""No controller runs the schedules: `kubectl create job --from=cronjob/NAME` runs a job."""
REPLICA_SET = _strategy(_replicas_defaults, _check_selected, "selector")
DEPLOYMENT = _strategy(_deployment_defaults, _check_selected, "selector")
