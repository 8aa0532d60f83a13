"""Jobs, ReplicaSets, Deployments and budgets of the embedded cluster, without its network."""

from __future__ import annotations

from typing import Any

import pytest

from reserver_demo.apiserver.deletion import DeleteOptions, delete
from reserver_demo.apiserver.eviction import evict
from reserver_demo.apiserver.registry import Registry
from reserver_demo.apiserver.resources import NAMESPACE_RESOURCE, RESOURCES
from reserver_demo.apiserver.status import StatusError
from reserver_demo.apiserver.store import Key, Store
from reserver_demo.clock import rfc3339
from reserver_demo.controllers.loop import Controllers
from reserver_demo.kubelet import PodEnding, ended_status, ending, running_status
from tests.unit.sim.clocks import ManualClock

BY_PLURAL = {resource.plural: resource for resource in RESOURCES}
LABELS = {"app": "web"}


class Cluster:
    """A store with controllers, in which a test plays scheduler and kubelet."""

    def __init__(self, history: int = 1000) -> None:
        self.clock = ManualClock()
        self.registry = Registry(Store(history), self.clock)
        self.controllers = Controllers(self.registry)
        self.registry.create(NAMESPACE_RESOURCE, "", {"metadata": {"name": "shop"}})

    def create(self, plural: str, name: str, **spec: Any) -> None:
        body = {"metadata": {"name": name}, "spec": spec}
        resource = BY_PLURAL[plural]
        self.registry.create(resource, "shop", resource.decode(body).value)
        self.controllers.settle()

    def get(self, plural: str, name: str) -> dict[str, Any]:
        return self.registry.get(BY_PLURAL[plural], Key("shop", name)).copy()

    def all(self, plural: str) -> list[dict[str, Any]]:
        return [each.copy() for each in self.registry.store.collection(plural).items()]

    def change(self, plural: str, name: str, **fields: Any) -> None:
        self.registry.update(BY_PLURAL[plural], Key("shop", name), lambda old: old | fields)
        self.controllers.settle()

    def remove(self, plural: str, name: str) -> None:
        delete(self.registry, BY_PLURAL[plural], Key("shop", name), DeleteOptions(grace=0))
        self.controllers.settle()

    def run(self, most: int = 100) -> None:
        """Let so many pods that wait be bound and run."""
        waiting = [pod for pod in self.all("pods") if pod["status"]["phase"] == "Pending"]
        for pod in waiting[:most]:
            pod["spec"]["nodeName"] = "worker-1"
            pod["status"] |= running_status(pod, rfc3339(self.clock.now()))
            self.registry.write(BY_PLURAL["pods"], pod, dry_run=False)
        self.controllers.settle()

    def finish(self, exit_status: int = 0, most: int = 100) -> None:
        """Let so many pods that run end."""
        running = [pod for pod in self.all("pods") if pod["status"]["phase"] == "Running"]
        for pod in running[:most]:
            end = PodEnding(0.0, exit_status)
            pod["status"] |= ended_status(pod, end, rfc3339(self.clock.now()))
            self.registry.write(BY_PLURAL["pods"], pod, dry_run=False)
        self.controllers.settle()

    def phases(self) -> list[str]:
        """Return the phases of the pods that stay."""
        return sorted(pod["status"]["phase"] for pod in self.staying())

    def staying(self) -> list[dict[str, Any]]:
        return [pod for pod in self.all("pods") if "deletionTimestamp" not in pod["metadata"]]

    def evict(self, name: str) -> None:
        eviction = {"metadata": {"name": name}}
        evict(self.registry, Key("shop", name), eviction, DeleteOptions(grace=0))


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def template(image: str = "web:1", **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": image}
    return {"metadata": {"labels": LABELS}, "spec": {"containers": [container], **spec}}


def conditions(found: dict[str, Any]) -> set[str]:
    return {each["type"] for each in found["status"].get("conditions", ())}


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


def web(**more: Any) -> dict[str, Any]:
    return {"replicas": 4, "selector": {"matchLabels": LABELS}, "template": template(), **more}


def test_a_replica_set_replaces_what_goes_and_takes_the_youngest(cluster: Cluster) -> None:
    cluster.create("replicasets", "web", **web())
    cluster.run(most=3)
    cluster.change(
        "replicasets", "web", spec=cluster.get("replicasets", "web")["spec"] | {"replicas": 3}
    )
    assert cluster.phases() == ["Running"] * 3
    cluster.evict(cluster.all("pods")[0]["metadata"]["name"])
    cluster.controllers.settle()
    assert cluster.phases() == ["Pending", "Running", "Running"]
    status = cluster.get("replicasets", "web")["status"]
    assert (status["replicas"], status["readyReplicas"]) == (3, 2)
    cluster.remove("replicasets", "web")
    assert cluster.phases() == []


def test_a_rollout_keeps_within_its_surge_and_what_may_be_unavailable(cluster: Cluster) -> None:
    cluster.create("deployments", "web", **web())
    cluster.run()
    assert "Available" in conditions(cluster.get("deployments", "web"))
    new = cluster.get("deployments", "web")["spec"] | {"template": template("web:2")}
    cluster.change("deployments", "web", spec=new)
    for _ in range(8):  # 25 % of 4: five pods at most, three ready ones at least
        assert len(cluster.phases()) <= 5
        assert cluster.phases().count("Running") >= 3
        cluster.run(most=1)
    images = {pod["spec"]["containers"][0]["image"] for pod in cluster.staying()}
    status = cluster.get("deployments", "web")["status"]
    assert images == {"web:2"}
    assert status["updatedReplicas"] == status["availableReplicas"] == status["replicas"] == 4
    assert sorted(each["spec"]["replicas"] for each in cluster.all("replicasets")) == [0, 4]


def test_a_rollback_takes_the_former_replica_set_again(cluster: Cluster) -> None:
    cluster.create("deployments", "web", **web())
    first = cluster.get("deployments", "web")["spec"]
    cluster.change("deployments", "web", spec=first | {"template": template("web:2")})
    cluster.change("deployments", "web", spec=first)
    assert len(cluster.all("replicasets")) == 2
    noted = cluster.get("deployments", "web")["metadata"]["annotations"]
    assert noted["deployment.kubernetes.io/revision"] == "3"


def test_recreating_waits_until_the_old_pods_are_gone(cluster: Cluster) -> None:
    cluster.create("deployments", "web", **web(strategy={"type": "Recreate"}))
    cluster.run()
    new = cluster.get("deployments", "web")["spec"] | {"template": template("web:2")}
    cluster.change("deployments", "web", spec=new)
    going = [pod for pod in cluster.all("pods") if "deletionTimestamp" in pod["metadata"]]
    assert len(going) == len(cluster.all("pods")) == 4
    for pod in going:
        cluster.remove("pods", pod["metadata"]["name"])
    images = [pod["spec"]["containers"][0]["image"] for pod in cluster.all("pods")]
    assert images == ["web:2"] * 4


def test_a_deployment_goes_with_all_that_is_its(cluster: Cluster) -> None:
    cluster.create("deployments", "web", **web())
    cluster.remove("deployments", "web")
    assert cluster.all("replicasets") == cluster.all("pods") == []


@pytest.mark.parametrize(
    ("budget", "allowed"),
    [
        ({"minAvailable": 3}, 1),
        ({"minAvailable": "50%"}, 2),
        ({"maxUnavailable": "25%"}, 1),
        ({"maxUnavailable": 0}, 0),
        ({}, 4),
    ],
)
def test_a_budget_allows_so_many_evictions(
    cluster: Cluster, budget: dict[str, Any], allowed: int
) -> None:
    cluster.create("replicasets", "web", **web())
    cluster.run()
    cluster.create("poddisruptionbudgets", "web", selector={"matchLabels": LABELS}, **budget)
    names = [pod["metadata"]["name"] for pod in cluster.all("pods")]
    for name in names[:allowed]:
        cluster.evict(name)
    if allowed < len(names):
        with pytest.raises(StatusError, match="violate the pod's disruption budget") as refused:
            cluster.evict(names[allowed])
        assert refused.value.status()["details"]["causes"][0]["reason"] == "DisruptionBudget"
    assert cluster.get("poddisruptionbudgets", "web")["status"]["disruptionsAllowed"] == 0


def test_a_budget_that_nobody_has_counted_allows_none(cluster: Cluster) -> None:
    cluster.create("replicasets", "web", **web())
    cluster.run()
    body = {"metadata": {"name": "web"}, "spec": {"selector": {}, "minAvailable": 0}}
    cluster.registry.create(BY_PLURAL["poddisruptionbudgets"], "shop", body)
    with pytest.raises(StatusError) as refused:
        cluster.evict(cluster.all("pods")[0]["metadata"]["name"])
    assert "still being processed" in refused.value.status()["details"]["causes"][0]["message"]


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
