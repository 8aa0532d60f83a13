"""Jobs of the embedded cluster, without its network."""

from __future__ import annotations

import pytest

from reserver_demo.apiserver.status import StatusError
from reserver_demo.kubelet import PodEnding, ending
from tests.unit.sim.controlled import BY_PLURAL, Cluster, conditions, template


def test_a_job_runs_so_many_at_once_until_all_have_succeeded(cluster: Cluster) -> None:
    pods = template(restartPolicy="Never")
    cluster.create("jobs", "train", parallelism=2, completions=3, template=pods)
    assert cluster.phases() == ["Pending"] * 2
    cluster.run()
    assert cluster.get("jobs", "train")["status"]["ready"] == 2
    cluster.finish(most=1)
    assert cluster.phases() == ["Pending", "Running", "Succeeded"]
    cluster.run()
    cluster.finish()
    job = cluster.get("jobs", "train")
    assert cluster.phases() == ["Succeeded"] * 3
    assert (job["status"]["succeeded"], "active" in job["status"]) == (3, False)
    assert conditions(job) == {"SuccessCriteriaMet", "Complete"}
    labels = cluster.all("pods")[0]["metadata"]["labels"]
    assert labels["batch.kubernetes.io/job-name"] == "train"


def test_a_pod_that_fails_is_retried_and_one_that_is_deleted_replaced(cluster: Cluster) -> None:
    cluster.create("jobs", "train", backoffLimit=1, template=template(restartPolicy="Never"))
    cluster.run()
    cluster.remove("pods", cluster.all("pods")[0]["metadata"]["name"])
    assert cluster.phases() == ["Pending"]
    cluster.run()
    cluster.finish(exit_status=1)
    assert cluster.phases() == ["Failed", "Pending"]
    cluster.run()
    cluster.finish(exit_status=1)
    job = cluster.get("jobs", "train")
    assert cluster.phases() == ["Failed", "Failed"]
    assert conditions(job) == {"FailureTarget", "Failed"}
    assert job["status"]["conditions"][-1]["reason"] == "BackoffLimitExceeded"


def test_each_pod_of_an_indexed_job_has_its_index(cluster: Cluster) -> None:
    pods = template(restartPolicy="Never")
    indexed = {"completionMode": "Indexed", "parallelism": 3, "completions": 3}
    cluster.create("jobs", "gang", **indexed, template=pods)
    cluster.run()
    cluster.remove("pods", cluster.all("pods")[1]["metadata"]["name"])
    found = [pod["spec"]["containers"][0]["env"][0]["value"] for pod in cluster.all("pods")]
    assert found == ["0", "1", "2"]
    assert cluster.all("pods")[1]["metadata"]["name"].startswith("gang-1-")


def test_a_suspended_job_waits_and_a_finished_one_may_go_by_itself(cluster: Cluster) -> None:
    pods = template(restartPolicy="Never")
    brief = {"suspend": True, "ttlSecondsAfterFinished": 60}
    cluster.create("jobs", "train", **brief, template=pods)
    assert cluster.phases() == []
    spec = cluster.get("jobs", "train")["spec"] | {"suspend": False}
    cluster.change("jobs", "train", spec=spec)
    cluster.run()
    cluster.finish()
    cluster.clock.advance(59)
    cluster.controllers.settle()
    assert cluster.phases() == ["Succeeded"]
    cluster.clock.advance(1)
    cluster.controllers.settle()
    assert cluster.all("jobs") == cluster.all("pods") == []


def test_a_work_queue_is_empty_once_one_has_succeeded_and_none_runs(cluster: Cluster) -> None:
    cluster.create("jobs", "queue", parallelism=2, template=template(restartPolicy="Never"))
    cluster.run()
    cluster.finish(most=1)
    assert cluster.phases() == ["Running", "Succeeded"]
    cluster.finish()
    assert "Complete" in conditions(cluster.get("jobs", "queue"))


def test_a_job_whose_pods_would_run_for_ever_is_refused(cluster: Cluster) -> None:
    with pytest.raises(StatusError, match=r"restartPolicy: Required value: valid values"):
        cluster.create("jobs", "train", template=template())


def test_what_cannot_be_created_stops_nobody(cluster: Cluster) -> None:
    pods = template(restartPolicy="Never", priorityClassName="none-such")
    cluster.create("jobs", "bad", template=pods)
    cluster.create("jobs", "good", template=template(restartPolicy="Never"))
    assert len(cluster.phases()) == 1


def test_a_history_too_short_for_what_was_deleted_stops_nobody() -> None:
    cluster = Cluster(history=1)
    for number in range(5):
        body = {"metadata": {"name": f"pod-{number}"}, "spec": template()["spec"]}
        for _ in range(3):
            cluster.registry.create(
                BY_PLURAL["pods"], "shop", body | {"metadata": {"generateName": "a-"}}
            )
    cluster.create("jobs", "train", template=template(restartPolicy="Never"))
    assert len(cluster.phases()) == 16


@pytest.mark.parametrize(
    ("command", "policy", "end"),
    [
        (["sleep", "3"], "Never", PodEnding(3.0, 0)),
        (["sleep", "3"], "Always", None),
        (["sleep", "inf"], "Never", None),
        (["true"], "OnFailure", PodEnding(0.0, 0)),
        (["false"], "Never", PodEnding(0.0, 1)),
        (["false"], "OnFailure", None),
        (["nginx"], "Never", None),
        ([], "Never", None),
    ],
)
def test_a_pod_ends_as_its_command_says(
    command: list[str], policy: str, end: PodEnding | None
) -> None:
    spec = {"containers": [{"command": command}], "restartPolicy": policy}
    assert ending({"spec": spec}) == end
