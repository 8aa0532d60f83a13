"""The cost of one pod's constraints and labels for others; work is counted, not timed."""

import json
from dataclasses import replace
from typing import Any

import pytest

from reserver.cluster import pod_table
from reserver.cluster.constraints import TOO_MANY, PodTerm
from reserver.cluster.labels import equals
from reserver.cluster.node import HOSTNAME
from reserver.cluster.pod import MOST_UNOFFERED, Pod, PodName
from reserver.cluster.quantity import Container, PodResources, effective_request
from reserver.cluster.snapshot import Snapshot
from reserver.k8s.objects.limits import POD
from reserver.k8s.objects.objects import decode
from reserver.k8s.objects.pods import PodObject
from reserver.scheduling import neighbours
from reserver.scheduling.dry_run import judge_set
from reserver.scheduling.explain import explain
from reserver.scheduling.filter import filter_nodes
from reserver.scheduling.fit import fits
from reserver.scheduling.preempt import judge_preemption
from reserver.scheduling.reasons import NOT_JUDGED
from reserver.scheduling.state import State
from tests.builders import (
    NAMESPACE,
    NOW,
    at,
    demanding,
    node,
    pod,
    reservation,
    rule,
    state_of,
    wake,
)
from tests.unit.scheduling.counted import Work, Written, keys, written_pod

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@pytest.mark.parametrize("terms", [1, 16])
def test_slots_that_mind_their_neighbours_are_judged_few_at_a_time(work: Work, terms: int) -> None:
    """Such a set once took half a second in one step, on 5,000 nodes with 50,000 pods."""
    hosts = [node(f"n{number}", cpu="4", labels={HOSTNAME: f"n{number}"}) for number in range(50)]
    state, here = state_of(*hosts), frozenset({NAMESPACE})
    meant = [PodTerm(equals({"app": f"a{n}"}), HOSTNAME, here) for n in range(terms)]
    wanted = [
        reservation(
            f"r{number}",
            node="",
            owners=(),
            rules=[rule(app="a0")],
            slots=20,
            placement=demanding(anti_affinity=tuple(meant)),
            cpu="1",
        )
        for number in range(2)
    ]
    asked = []
    for _ in judge_set(wanted, state, at(NOW)):
        asked.append(work.asked)
        work.asked = 0
    assert sum(asked) == 2 * 20 * terms
    assert max(asked) == max(8, terms)


# A pod that demands much.


def terms(kind: str, *written: Written) -> Written:
    return {"affinity": {kind: {REQUIRED: list(written)}}}


def near(labels: Written, number: int = 1, kind: str = "podAffinity") -> Written:
    return terms(kind, *[{"topologyKey": "zone", "labelSelector": labels}] * number)


def nodes(*written: Written) -> Written:
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(written)}}}}


def spread(number: int, **fields: Any) -> Written:
    whole = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    selector = {"labelSelector": {"matchLabels": {"app": "web"}}}
    return {"topologySpreadConstraints": [whole | selector | fields] * number}


def ports(number: int) -> Written:
    return {"ports": [{"hostPort": 1 + each} for each in range(number)]}


def volumes(number: int) -> Written:
    claims = [{"persistentVolumeClaim": {"claimName": f"c{each}"}} for each in range(number)]
    return {"volumes": [{"name": f"v{n}"} | claim for n, claim in enumerate(claims)]}


DEMANDING = {
    "1,000 keys of neighbours": near({"matchExpressions": keys(1000)}),
    "just too many keys": near({"matchExpressions": keys(POD.asked + 1)}),
    "1,000 keys of nodes": nodes({"matchExpressions": keys(1000)}),
    "1,000 alternatives": nodes(*[{"matchExpressions": keys(1)}] * 1000),
    "just too many alternatives": nodes(*[{"matchExpressions": keys(1)}] * (POD.terms + 1)),
    "1,000 terms": near({}, 1000, "podAntiAffinity"),
    "just too many terms": near({}, POD.terms + 1, "podAntiAffinity"),
    "a long node selector": {"nodeSelector": {f"k{n}": "v" for n in range(1000)}},
    "1,000 spread constraints": spread(1000),
    "just too many of them": spread(POD.terms + 1),
    "1,000 matchLabelKeys": spread(1, matchLabelKeys=[f"k{n}" for n in range(1000)]),
    "1,000 values": nodes(
        {"matchExpressions": [{"key": "k", "operator": "In", "values": ["v" * 20] * 1000}]}
    ),
    "1,000 tolerations": {"tolerations": [{"key": f"k{n}"} for n in range(1000)]},
    "just too many tolerations": {"tolerations": [{"key": "k"}] * (POD.things + 1)},
    "10,000 host ports": {"containers": [ports(10_000)]},
    "just too many host ports": {"containers": [ports(POD.things + 1)]},
    "host ports of many containers": {"containers": [ports(1)] * (POD.things + 1)},
    "just too many claims": volumes(POD.things + 1),
    "1,000 claims": volumes(1000),
}


@pytest.fixture
def crowd() -> State:
    """Return a cluster with holds on all nodes but one, and with free room only there."""
    held = [f"n{number}" for number in range(150)]
    return state_of(
        *(node(name, cpu="4", labels={"zone": name}) for name in held),
        node("free", cpu="4", labels={"zone": "free"}),
        *(reservation(f"r{name}", node=name, cpu="3") for name in held),
        *(pod(f"p{name}", node=name, labels={"app": "web", "own": name}) for name in held),
    )


HELD = [f"n{number}" for number in range(150)]


@pytest.mark.parametrize("what", DEMANDING)
def test_a_pod_that_demands_too_much_is_not_judged_where_only_kube_scheduler_can(
    crowd: State, work: Work, what: str
) -> None:
    demanding = written_pod(DEMANDING[what])
    assert demanding.constraints is TOO_MANY
    assert demanding.volume_claims == ()
    crowd.pod_seen(demanding)
    verdict = filter_nodes(demanding, HELD, crowd, NOW)
    assert not verdict.nodes
    assert verdict.effects == ()  # The pod is steered nowhere.
    crowd.judged(demanding, HELD, waits=True)
    crowd.ledger.drop(reservation("rn3").ref)
    assert wake(["n3"], crowd, NOW) == ()
    assert not fits(demanding, crowd.snapshot).any()
    assert work.asked == work.columns == 0


def test_a_pod_that_demands_too_much_has_what_is_not_held_and_nothing_else(crowd: State) -> None:
    demanding = written_pod(DEMANDING["1,000 terms"])
    verdict = filter_nodes(demanding, ["n1", "free", "n2"], crowd, NOW)
    assert verdict.nodes == ["free"]
    (reason,) = {r.reason for r in explain(demanding, crowd, NOW).reasons if r.nodes == 151}
    assert reason == NOT_JUDGED.message
    assert judge_preemption(demanding, {"n1": ["x"]}, crowd, NOW).nodes == ()


def test_a_pod_that_demands_as_much_as_is_read_is_judged(crowd: State) -> None:
    for spec in (
        near({"matchExpressions": keys(POD.asked)}, kind="podAntiAffinity"),
        nodes(*[{"matchExpressions": keys(1)}] * POD.terms),
        {"tolerations": [{"key": "k"}] * POD.things},
        {"containers": [ports(POD.things)]},
    ):
        judged = written_pod(spec)
        assert judged.constraints is not TOO_MANY
        free = crowd.snapshot.row("free")
        assert fits(judged, crowd.snapshot)[free]


def test_a_resident_that_demands_too_much_is_in_nobodys_way(crowd: State) -> None:
    spec = near({}, 500, "podAntiAffinity") | {"nodeName": "free"}
    crowd.pod_seen(written_pod(spec))
    assert fits(pod("other", cpu="1"), crowd.snapshot)[crowd.snapshot.row("free")]


def test_neighbours_that_want_nobody_near_are_asked_so_many_times(
    crowd: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(400):
        labels = {"matchExpressions": [{"key": f"k{number}", "operator": "DoesNotExist"}]}
        spec = near(labels, POD.terms, "podAntiAffinity") | {"nodeName": f"n{number % 150}"}
        name = f"big-{number}"
        crowd.pod_seen(written_pod(spec, {"name": name, "uid": name, "namespace": "other"}))
    asked = 0
    rejects = neighbours.rejects

    def counting(term: PodTerm, pod: Pod, snapshot: Snapshot) -> bool:
        nonlocal asked
        asked += 1
        return rejects(term, pod, snapshot)

    monkeypatch.setattr(neighbours, "rejects", counting)
    assert fits(pod("w", cpu="1"), crowd.snapshot)[crowd.snapshot.row("free")]
    assert asked == pod_table.MOST_ASKED


# Requests of a pod.


class Counted(dict[str, int]):
    """Amounts that count their reads."""

    looks = 0

    def items(self) -> Any:
        Counted.looks += 1
        return super().items()


@pytest.mark.parametrize("kind", ["sidecars", "init containers", "both"])
def test_a_request_takes_as_many_steps_as_there_are_containers(kind: str) -> None:
    Counted.looks = 0
    number = 2000
    containers = tuple(
        Container(
            requests=Counted({f"example.com/r{each}": 1, "cpu": 10**9}),
            sidecar=kind == "sidecars" or (kind == "both" and each % 2 == 0),
        )
        for each in range(number)
    )
    total = effective_request(PodResources(init_containers=containers))
    assert Counted.looks <= 2 * number
    assert total["cpu"] == 1000 * {"sidecars": number, "init containers": 1}.get(kind, 1001)


def test_resources_of_which_a_pod_wants_nothing_are_not_remembered() -> None:
    names = {f"example.com/r{number}": "0" for number in range(2000)}
    spec = {"containers": [{"name": "b", "resources": {"requests": names}}]}
    assert written_pod(spec).requests == {"cpu": 2000, "pods": 1}


def test_of_very_many_resources_that_nobody_offers_a_few_are_told(crowd: State) -> None:
    names = {f"example.com/r{number}": "1" for number in range(2000)}
    spec = {"containers": [{"name": "b", "resources": {"requests": names}}]}
    reasons = explain(written_pod(spec), crowd, NOW).reasons
    assert 1 <= sum("example.com" in reason.reason for reason in reasons) <= 20


@pytest.mark.parametrize("is_first", [True, False], ids=["pods first", "nodes first"])
@pytest.mark.parametrize("real", ["cpu", "memory", "nvidia.com/gpu"])
def test_what_a_pod_really_requests_counts_whichever_is_listed_first(
    real: str, *, is_first: bool
) -> None:
    """A pod may request 0 of a hundred unknown resources, and still be bound."""
    odd = {f"a.example/r{number}": 0 for number in range(2 * MOST_UNOFFERED)}
    greedy = replace(pod("greedy", node="n"), requests={**odd, real: 3, "pods": 1})
    state = state_of()
    for _ in range(2):
        if is_first:
            state.pod_seen(greedy)
        else:
            state.node_seen(node("n", cpu="4", memory="8Gi", gpu="8"))
        is_first = not is_first
    assert state.snapshot.amounts("n", real).requested == 3


def test_resources_that_no_node_offers_stay_few_however_many_pods_request_them() -> None:
    """Forty pods of half a megabyte on a node once held the event loop for 50 ms per event."""
    state = state_of(node("n", cpu="32", gpu="8"), node("m", cpu="32"))
    for number in range(3):
        odd = {f"hostile.example/r{number}-{n:05}": "1" for n in range(1_500)}
        written = {
            "metadata": {"name": f"p{number}", "namespace": NAMESPACE, "uid": f"u{number}"},
            "spec": {
                "nodeName": "n",
                "containers": [{"resources": {"requests": {**odd, "nvidia.com/gpu": "2"}}}],
            },
        }
        state.pod_seen(decode(PodObject, json.dumps(written).encode()).value())
    assert state.snapshot.amounts("n", "nvidia.com/gpu").requested == 6
    kept = [len(state.pods[PodName(NAMESPACE, f"p{number}")].requests) for number in range(3)]
    assert max(kept) <= MOST_UNOFFERED + 2
    offers = {"cpu": 32_000, "hostile.example/r0-00000": 1}
    state.snapshot.set_node(replace(node("m"), allocatable=offers))
    assert state.snapshot.amounts("n", "hostile.example/r0-00000").requested == 1


def test_a_list_of_claims_is_read_if_it_is_as_long_as_bindings_write_them() -> None:
    def claims(length: int, number: int) -> frozenset[str]:
        said = json.dumps([f"{n:0{length}}" for n in range(number)])
        metadata = {"name": "p", "annotations": {"reserver.io/claims": said}}
        whole = json.dumps({"metadata": metadata, "spec": {}}).encode()
        return decode(PodObject, whole).value().claims

    assert len(claims(300, 50)) == 50
    assert claims(300, 60) == claims(1_000, 250) == frozenset()
