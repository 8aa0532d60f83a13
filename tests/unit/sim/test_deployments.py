"""ReplicaSets, Deployments and budgets of the embedded cluster, without its network."""

from __future__ import annotations

from typing import Any

import pytest

from reserver_demo.apiserver.status import StatusError
from tests.unit.sim.controlled import BY_PLURAL, LABELS, Cluster, conditions, template


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
