"""Jobs, CronJobs, ReplicaSets and Deployments: defaults, refusals and kept fields."""

import pytest

from tests.contract.api import Api, Json

CONTAINER = {"name": "main", "image": "web:1"}
LABELS = {"app": "web"}
SELECTED: Json = {
    "selector": {"matchLabels": LABELS},
    "template": {"metadata": {"labels": LABELS}, "spec": {"containers": [CONTAINER]}},
}
ONCE: Json = {"template": {"spec": {"containers": [CONTAINER], "restartPolicy": "Never"}}}
SPECS: dict[str, Json] = {
    "apps/v1/deployments": SELECTED,
    "apps/v1/replicasets": SELECTED,
    "batch/v1/cronjobs": {"schedule": "0 22 * * *", "jobTemplate": {"spec": ONCE}},
    "batch/v1/jobs": ONCE,
}
DEFAULTS: dict[str, Json] = {
    "apps/v1/deployments": {
        "progressDeadlineSeconds": 600,
        "replicas": 1,
        "revisionHistoryLimit": 10,
        "strategy": {
            "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"},
            "type": "RollingUpdate",
        },
    },
    "apps/v1/replicasets": {"replicas": 1},
    "batch/v1/cronjobs": {
        "concurrencyPolicy": "Allow",
        "failedJobsHistoryLimit": 1,
        "successfulJobsHistoryLimit": 3,
        "suspend": False,
    },
    "batch/v1/jobs": {
        "backoffLimit": 6,
        "completionMode": "NonIndexed",
        "completions": 1,
        "manualSelector": False,
        "parallelism": 1,
        "podReplacementPolicy": "TerminatingOrFailed",
        "suspend": False,
    },
}
FILLED_IN = {
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
    "securityContext": {},
    "terminationGracePeriodSeconds": 30,
}


def path(api: Api, resource: str) -> str:
    version, _, plural = resource.rpartition("/")
    return f"/apis/{version}/namespaces/{api.namespace}/{plural}"


@pytest.mark.parametrize("resource", SPECS)
async def test_what_a_workload_leaves_out_is_filled_in(api: Api, resource: str) -> None:
    body = {"metadata": {"name": "web"}, "spec": SPECS[resource]}
    made = await api.post(path(api, resource), body, dryRun="All")
    assert (made.status, made.body["metadata"]["generation"]) == (201, 1)
    spec = made.body["spec"]
    given = {*SPECS[resource], "selector"}
    assert {key: spec[key] for key in spec if key not in given} == DEFAULTS[resource]
    job = spec.get("jobTemplate", {}).get("spec", spec)
    pod = job["template"]["spec"]
    assert {key: pod[key] for key in pod if key not in {"containers", "restartPolicy"}} == FILLED_IN
    assert pod["containers"][0]["resources"] == {}


async def test_a_job_selects_its_own_pods(api: Api) -> None:
    made = await api.post(
        path(api, "batch/v1/jobs"), {"metadata": {"name": "train"}, "spec": ONCE}, dryRun="All"
    )
    uid = made.body["metadata"]["uid"]
    own = {"batch.kubernetes.io/controller-uid": uid}
    assert made.body["spec"]["selector"] == {"matchLabels": own}
    assert made.body["spec"]["template"]["metadata"]["labels"] == {
        **own,
        "batch.kubernetes.io/job-name": "train",
        "controller-uid": uid,
        "job-name": "train",
    }


@pytest.mark.parametrize(
    ("resource", "spec", "field"),
    [
        ("batch/v1/jobs", {"template": SELECTED["template"]}, "spec.template.spec.restartPolicy"),
        (
            "apps/v1/deployments",
            {**SELECTED, "selector": {"matchLabels": {"app": "other"}}},
            "spec.template.metadata.labels",
        ),
        (
            "apps/v1/replicasets",
            {**SELECTED, "selector": {"matchLabels": {"app": "other"}}},
            "spec.template.metadata.labels",
        ),
    ],
)
async def test_a_workload_that_cannot_work_is_refused(
    api: Api, resource: str, spec: Json, field: str
) -> None:
    answer = await api.post(path(api, resource), {"metadata": {"name": "web"}, "spec": spec})
    assert answer.outline == (422, "Invalid")
    assert field in {cause["field"] for cause in answer.body["details"]["causes"]}


async def test_a_jobs_template_stays(api: Api) -> None:
    jobs = path(api, "batch/v1/jobs")
    suspended = {"metadata": {"name": "train"}, "spec": {**ONCE, "suspend": True}}
    assert (await api.post(jobs, suspended)).status == 201
    other = {"template": {"spec": {"containers": [{**CONTAINER, "image": "web:2"}]}}}
    changed = await api.patch(f"{jobs}/train", {"spec": other})
    assert changed.outline == (422, "Invalid")
    assert changed.body["details"]["causes"][0]["field"].startswith("spec.template")
    assert (await api.patch(f"{jobs}/train", {"spec": {"backoffLimit": 2}})).status == 200
