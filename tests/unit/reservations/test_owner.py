"""Pods that claim a slot without being named: by their controller, by their labels."""

import dataclasses
from collections.abc import Sequence

import pytest

from reserver.cluster.labels import Requirement, Selector
from reserver.cluster.pod import NO_CONTROLLER, Controller, Pod, PodName
from reserver.cluster.snapshot import Snapshot
from reserver.reservations import owner
from reserver.reservations.enums import Phase
from reserver.reservations.ledger import Ledger
from reserver.reservations.owner import OwnerRule, Replaced
from tests.builders import name, node, pod, ref, reservation, rule

WEB = Controller("ReplicaSet", "web-5d8f")
APP = {"app": "web", "tier": "front"}


@pytest.fixture
def ledger() -> Ledger:
    snapshot = Snapshot()
    for worker in ("worker-1", "worker-2"):
        snapshot.set_node(node(worker, cpu="64"))
    return Ledger(snapshot)


def keys(ledger: Ledger, asking: Pod) -> list[str]:
    return [seat.ref.key for seat in ledger.seats(asking)]


@pytest.mark.parametrize(
    ("rules", "owns"),
    [
        ([rule(controller=WEB)], True),
        ([rule(controller=Controller("ReplicaSet", "db"))], False),
        ([rule(controller=Controller("Job", "web-5d8f"))], False),
        ([rule(app="web")], True),
        ([rule(app="web", tier="back")], False),
        ([rule(pod="web-1", app="web")], True),
        ([rule(pod="web-2", app="web")], False),
        ([rule(controller=WEB, app="web")], True),
        ([rule(controller=WEB, app="db")], False),
        ([rule(app="db"), rule(controller=WEB)], True),
        ([OwnerRule(namespace="elsewhere", controller=WEB)], False),
    ],
)
def test_a_pod_owns_what_a_rule_matches(
    ledger: Ledger, rules: Sequence[OwnerRule], *, owns: bool
) -> None:
    ledger.put(reservation("r", owners=[], rules=rules, cpu="1"))
    asking = pod("web-1", labels=APP, controller=WEB)
    assert keys(ledger, asking) == (["r"] if owns else [])
    assert keys(ledger, pod("other")) == []


def test_pods_of_a_provisioning_request_are_those_that_name_it_in_their_namespace(
    ledger: Ledger,
) -> None:
    of_request = rule(controller=Controller("ProvisioningRequest", "job"))
    ledger.put(reservation("r", owners=[], rules=[of_request], cpu="1"))
    asking = dataclasses.replace(pod("web-1"), request="job")
    assert keys(ledger, asking) == ["r"]
    assert keys(ledger, dataclasses.replace(asking, request="other")) == []
    elsewhere = dataclasses.replace(asking, name=PodName("elsewhere", "web-1"))
    assert keys(ledger, elsewhere) == []
    assert keys(ledger, pod("job")) == []


@pytest.mark.parametrize(
    ("made_by", "labels", "owner", "owns"),
    [
        (Controller("ReplicaSet", "web-5d8f"), {"pod-template-hash": "5d8f"}, "web", True),
        (Controller("ReplicaSet", "web-api-5d8f"), {"pod-template-hash": "5d8f"}, "web", False),
        (Controller("ReplicaSet", "web-api-5d8f"), {"pod-template-hash": "5d8f"}, "web-api", True),
        (Controller("ReplicaSet", "web-5d8f"), {"pod-template-hash": "8f"}, "web", False),
        (Controller("ReplicaSet", "web-5d8f"), {"pod-template-hash": ""}, "web-5d8f", False),
        (Controller("ReplicaSet", "-5d8f"), {"pod-template-hash": "5d8f"}, "", False),
        (Controller("ReplicaSet", "web-5d8f"), {}, "web", False),
        (Controller("StatefulSet", "web-5d8f"), {"pod-template-hash": "5d8f"}, "web", False),
        (Controller("Deployment", "web"), {}, "web", True),
        (NO_CONTROLLER, {"pod-template-hash": "5d8f"}, "web", False),
    ],
)
def test_pods_of_a_deployment_are_those_of_its_replicasets(
    ledger: Ledger, made_by: Controller, labels: dict[str, str], owner: str, *, owns: bool
) -> None:
    of_deployment = rule(controller=Controller("Deployment", owner), app="web")
    ledger.put(reservation("r", owners=[], rules=[of_deployment], cpu="1"))
    asking = pod("web-1", labels=labels | {"app": "web"}, controller=made_by)
    assert keys(ledger, asking) == (["r"] if owns else [])


@pytest.mark.parametrize(
    ("job", "owns"),
    [
        ("backup-29000000", True),
        ("backup-by-hand", False),
        ("backup-1", False),
        ("backup-29000000-29000001", False),
        ("backup", False),
    ],
)
def test_pods_of_a_cron_job_are_those_of_the_jobs_that_it_makes(
    ledger: Ledger, job: str, *, owns: bool
) -> None:
    of_cron_job = rule(controller=Controller("CronJob", "backup"))
    ledger.put(reservation("r", owners=[], rules=[of_cron_job], cpu="1"))
    asking = pod("backup-x", controller=Controller("Job", job))
    assert keys(ledger, asking) == (["r"] if owns else [])


@pytest.mark.parametrize(("group", "owns"), [("training", True), ("other", False), ("", False)])
@pytest.mark.parametrize("made_by", [NO_CONTROLLER, Controller("Job", "workers")])
def test_pods_of_a_pod_group_are_those_that_name_it(
    ledger: Ledger, made_by: Controller, group: str, *, owns: bool
) -> None:
    of_group = rule(controller=Controller("PodGroup", "training"))
    ledger.put(reservation("r", owners=[], rules=[of_group], slots=8, cpu="1"))
    asking = dataclasses.replace(pod("workers-1", controller=made_by), group=group)
    assert keys(ledger, asking) == (["r"] if owns else [])
    elsewhere = PodName("elsewhere", "workers-1")
    assert keys(ledger, dataclasses.replace(asking, name=elsewhere)) == []


def test_of_those_that_match_one_counts_on_each_node_the_oldest_that_covers_the_pod(
    ledger: Ledger,
) -> None:
    for key, worker, cpu in (
        ("small", "worker-1", "1"),
        ("fits", "worker-1", "2"),
        ("later", "worker-1", "2"),
        ("elsewhere", "worker-2", "1"),
    ):
        ledger.put(reservation(key, owners=[], rules=[rule(app="web")], node=worker, cpu=cpu))
    assert keys(ledger, pod("a", labels=APP, cpu="2")) == ["fits", "elsewhere"]
    assert keys(ledger, pod("a", labels=APP, cpu="1")) == ["small", "elsewhere"]


def test_one_that_names_the_pod_comes_before_those_that_match_it(ledger: Ledger) -> None:
    ledger.put(reservation("any", owners=[], rules=[rule(app="web")], cpu="1"))
    ledger.put(reservation("named", owners=["a"], cpu="1"))
    assert keys(ledger, pod("a", labels=APP)) == ["named"]
    assert keys(ledger, pod("b", labels=APP)) == ["any"]


def test_each_pod_takes_one_slot_and_the_last_one_ends_the_hold(ledger: Ledger) -> None:
    shared = reservation("r", owners=[], rules=[rule(app="web")], slots=2, cpu="2")
    ledger.put(shared)
    for number, left in ((1, 2000), (2, 0)):
        ledger.claim(shared.identity, pod(f"web-{number}", labels=APP))
        assert ledger.held_on("worker-1").get("cpu", 0) == left
    assert ledger.phase(ref("r")) is Phase.CLAIMED
    assert ledger.is_over(ref("r"))
    assert keys(ledger, pod("web-3", labels=APP)) == []


def test_a_claim_of_a_pod_that_no_rule_matches_does_not_count(ledger: Ledger) -> None:
    shared = reservation("r", owners=[], rules=[rule(app="web")], cpu="2")
    ledger.claim(shared.identity, pod("early"))
    ledger.put(shared)
    ledger.claim(shared.identity, pod("late"))
    assert ledger.held_on("worker-1")["cpu"] == 2000


def test_a_binding_elsewhere_ends_nothing_that_only_matches_the_pod(ledger: Ledger) -> None:
    ledger.put(reservation("r", owners=[], rules=[rule(app="web")], cpu="2"))
    bound = dataclasses.replace(pod("web-1", labels=APP, node="worker-2"), revision=7)
    ledger.bound(bound, exact=True)
    assert ledger.held_on("worker-1")["cpu"] == 2000
    assert ledger.naming(PodName("shop", "web-1")) == ()


def test_a_slot_of_a_reusable_one_comes_back_when_its_pod_goes(ledger: Ledger) -> None:
    mine = reservation("r", owners=["a", "b"], reusable=True, cpu="2")
    ledger.put(mine)
    ledger.claim(mine.identity, pod("a"))
    assert ledger.phase(ref("r")) is Phase.CLAIMED
    assert not ledger.is_over(ref("r"))
    ledger.pod_gone(pod("a"))
    assert ledger.held_on("worker-1")["cpu"] == 2000
    assert keys(ledger, pod("b")) == ["r"]


def test_a_pod_that_has_finished_gives_its_reusable_slot_back(ledger: Ledger) -> None:
    mine = reservation("r", owners=["a"], reusable=True, cpu="2")
    ledger.put(mine)
    ledger.claim(mine.identity, pod("a"))
    ledger.claim(mine.identity, pod("a", finished=True))
    assert ledger.held_on("worker-1")["cpu"] == 2000
    ledger.drop(mine.ref)
    ledger.put(mine)
    assert ledger.held_on("worker-1")["cpu"] == 2000


def test_what_is_dropped_is_found_by_nobody(ledger: Ledger) -> None:
    mine = reservation("r", owners=["a"], rules=[rule(controller=WEB), rule(app="web")], cpu="1")
    ledger.put(mine)
    ledger.drop(mine.ref)
    assert keys(ledger, pod("a", labels=APP, controller=WEB)) == []
    assert ledger.naming(name("a")) == ()


@pytest.mark.parametrize(
    ("asked", "is_its_key"),
    [
        (rule(), True),
        (rule(pod="web-1"), True),
        (rule(controller=WEB), True),
        (rule(app="web"), True),
        (rule(pod="web-1", app="web"), False),
        (rule(pod="web-1", controller=WEB), False),
        (rule(controller=WEB, app="web"), False),
        (rule(app="web", tier="back"), False),
        (dataclasses.replace(rule(app="web"), replaces=Replaced("uid")), False),
        (
            dataclasses.replace(
                rule(), selector=Selector((Requirement("app", "In", frozenset(("web", "db"))),))
            ),
            False,
        ),
        (dataclasses.replace(rule(), selector=Selector((Requirement("app", "Exists"),))), False),
    ],
)
def test_a_rule_with_one_condition_that_its_key_states_is_not_asked_again(
    asked: OwnerRule, *, is_its_key: bool
) -> None:
    assert asked.is_its_key is is_its_key
    others = (pod("web-1", labels=APP, controller=WEB), pod("web-1"), pod("x", labels=APP))
    found = [each for each in others if asked.key() in owner.keys(each)]
    assert found
    assert not is_its_key or all(asked.matches(each) for each in found)
