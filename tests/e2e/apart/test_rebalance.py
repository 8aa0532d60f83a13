"""`reserver rebalance run` with the shipped rights; a controller replaces the evicted pods."""

from __future__ import annotations

import subprocess
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from kubernetes.client import CoordinationV1Api

from hack.reserver_process import ReserverProcess, wait_for
from hack.rounds_process import rounds
from tests.e2e.apart.crowding import Shop, crowd
from tests.e2e.forms import FORMS

pytestmark = pytest.mark.controlplane

ACCOUNT = "reserver-rebalance"

EVICTED = "descheduler_pods_evicted_total"

COMPATIBILITY = ["plan", pytest.param("upstream", marks=pytest.mark.release)]


@pytest.mark.parametrize("compat", COMPATIBILITY)
def test_rounds_end_in_rest_and_no_pod_moves_twice(shop: Shop, compat: str) -> None:
    crowd(shop)
    rounds = []
    for _ in range(3):
        before = shop.pods()
        said = shop.run("--compat", compat, RemoveDuplicates={})
        shop.wait_ready("web", 6)
        rounds.append(len(before.keys() - shop.pods().keys()))
        assert f"{rounds[-1]} pods evicted, 0 could not be" in said
        if not rounds[-1]:
            break
    assert rounds == [4, 0]
    assert sorted(shop.count("web").values()) == [2, 2, 2]


def test_a_plan_of_the_live_cluster_names_all_moves_and_makes_none(shop: Shop) -> None:
    crowd(shop)
    before = shop.pods()
    status, plan = shop.plan(RemoveDuplicates={})
    assert (status, Counter(move["to"] for move in plan["moves"])) == (
        2,
        dict.fromkeys(shop.nodes[1:], 2),
    )
    assert {move["from"] for move in plan["moves"]} == {shop.nodes[0]}
    assert {
        move["to"] for move in shop.plan("--compat=upstream", RemoveDuplicates={})[1]["moves"]
    } == {None}
    assert shop.plan(PodLifeTime={"maxPodLifeTimeSeconds": 9999})[0] == 0
    assert shop.pods() == before


def test_each_eviction_is_an_event_on_its_pod(shop: Shop) -> None:
    crowd(shop)
    pods = shop.pods()
    said = shop.run(RemoveDuplicates={})
    events = told(shop)
    found = {(event.reason, event.action, event.type) for event in events}
    assert found == {("RemoveDuplicates", "Descheduled", "Normal")}, said
    assert len({event.involved_object.uid for event in events} & pods.keys()) == 4


def test_a_dry_run_evicts_nothing(shop: Shop) -> None:
    crowd(shop)
    before = shop.pods()
    assert "4 pods would be evicted" in shop.run("--dry-run", RemoveDuplicates={})
    assert shop.pods() == before


@pytest.mark.parametrize("compat", COMPATIBILITY)
def test_a_disruption_budget_is_kept_at_every_moment(shop: Shop, compat: str) -> None:
    """Upstream's way wants all four at once; each waits until the one before it is replaced."""
    crowd(shop)
    shop.keep("web", available=5)
    least = 6

    def watched() -> bool:
        nonlocal least
        least = min(least, shop.ready("web"))
        return False

    assert not watched()
    said = shop.run("--compat", compat, RemoveDuplicates={})
    shop.wait_ready("web", 6)
    watched()
    assert least >= 5
    evicted = {"plan": "1 pods evicted, 0 could not be", "upstream": "4 pods evicted, 0 could"}
    assert evicted[compat] in said


def test_a_policy_that_cannot_be_read_evicts_nothing(shop: Shop, tmp_path: Path) -> None:
    policy = tmp_path / "broken.yaml"
    policy.write_text("apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\nprofiles: 7\n")
    command = shop.command(policy)
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, "profiles" in done.stderr) == (2, True), done.stderr


def test_a_metrics_api_that_is_not_there_is_an_error_that_says_so(shop: Shop) -> None:
    crowd(shop)
    before = shop.pods()
    with pytest.raises(AssertionError, match="is metrics-server installed"):
        shop.run(LowNodeLoad={"lowThresholds": {"cpu": 20}, "highThresholds": {"cpu": 80}})
    assert shop.pods() == before


def test_with_an_interval_a_policy_that_changes_is_read_anew_and_a_broken_one_is_told(
    shop: Shop, tmp_path: Path
) -> None:
    crowd(shop)
    policy = tmp_path / "changing.yaml"
    policy.write_text("apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\nprofiles: []\n")
    with rounds(*shop.command(policy), "--leader-elect") as url:
        done = 'reserver_rebalance_rounds_total{outcome="done"}'
        wait_for(lambda: metrics(url).get(done, 0) > 0, "there was a round")
        shop.write(policy, RemoveDuplicates={})
        wait_for(lambda: sorted(shop.count("web").values()) == [2, 2, 2], "the pods are spread")
        # A round begins each second, whether or not controllers have replaced the evicted pods.
        wait_for(lambda: sum(evictions(url).values()) == len(told(shop)) >= 4, "all are counted")
        assert all('result="success",strategy="RemoveDuplicates"' in one for one in evictions(url))
        policy.write_text("kind: Nonsense")
        broken = "reserver_rebalance_policy_broken"
        wait_for(lambda: metrics(url)[broken] == 1, "the broken policy is told")
    api: Any = CoordinationV1Api(shop.corner.api.api_client)
    assert not api.read_namespaced_lease(ACCOUNT, "reserver-system").spec.holder_identity


def told(shop: Shop) -> list[Any]:
    """Return the events of evictions."""
    found = shop.corner.api.list_namespaced_event(shop.corner.name).items
    return [each for each in found if each.reporting_component == "sigs.k8s.io.descheduler"]


def evictions(url: str) -> dict[str, float]:
    """Return how many evictions rounds have counted, by the name of the series."""
    counted = metrics(url)
    return {name: counted[name] for name in counted if name.startswith(EVICTED)}


def metrics(url: str) -> dict[str, float]:
    """Return what rounds expose."""
    with urllib.request.urlopen(f"{url}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    found = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in found}


def test_rounds_beside_serve_keep_from_what_is_held(
    shop: Shop, reserver: ReserverProcess, tmp_path: Path
) -> None:
    crowd(shop)
    shop.corner.reserve(FORMS[0], shop.nodes[2], "someone", cpu="4")
    shop.corner.wait_held(shop.nodes[2])
    policy = tmp_path / "policy.yaml"
    shop.write(policy, RemoveDuplicates={})
    command = [word for word in shop.command(policy) if word != "--without-holds"]
    with rounds(*command, "--address", reserver.grpc_address, interval="1h") as url:
        evicted = 'result="success",strategy="RemoveDuplicates"} 2.0'

        def counted() -> bool:
            with urllib.request.urlopen(f"{url}/metrics") as answer:
                return evicted in answer.read().decode()

        wait_for(lambda: sorted(shop.count("web").values()) == [2, 4], "pods went elsewhere")
        wait_for(counted, "the metrics count both evictions")
    assert shop.nodes[2] not in shop.count("web")
