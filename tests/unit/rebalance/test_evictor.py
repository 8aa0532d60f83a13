"""The pods that DefaultEvictor evicts: each argument, protection and annotation."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from reserver.cluster.labels import equals
from reserver.rebalance.arguments.evictor import (
    UNCONFIGURED,
    DefaultEvictor,
    NoEviction,
    PodProtections,
    PodsWithPVC,
    Protection,
    ProtectionsConfig,
    StorageClassName,
)
from reserver.rebalance.arguments.recycling import PodLifeTime
from reserver.rebalance.cluster_state import (
    EVICT,
    EVICTION_IN_PROGRESS,
    PREFER_NO_EVICTION,
    SOURCE,
    ClusterState,
)
from reserver.rebalance.evictor import Protections
from tests.unit.rebalance.build import NOW, cluster_of, evicted, node, pod
from tests.unit.rebalance.evicting import ALL_PODS, BARE, spec

GOES, STAYS = True, False


def _goes(
    it: dict[str, Any],
    evictor: DefaultEvictor | None = None,
    *others: dict[str, Any],
) -> bool:
    nodes = [node("a"), node("b")]
    names = evicted([*nodes, it, *others], ALL_PODS, evictor=evictor)
    return it["metadata"]["name"] in names


@dataclass(frozen=True)
class Case:
    goes: bool
    pod: dict[str, Any] = field(default_factory=dict)
    evictor: DefaultEvictor = UNCONFIGURED
    others: tuple[dict[str, Any], ...] = ()


def _annotated(key: str, value: str = "") -> dict[str, Any]:
    return {"metadata": {"annotations": {key: value}}}


def _with(*protections: Protection, classes: tuple[str, ...] = ()) -> DefaultEvictor:
    claims = PodsWithPVC(protected_storage_classes=tuple(StorageClassName(name=n) for n in classes))
    config = ProtectionsConfig(pods_with_pvc=claims)
    return DefaultEvictor(pod_protections=PodProtections(extra_enabled=protections, config=config))


def _without(*protections: Protection, **args: Any) -> DefaultEvictor:
    return DefaultEvictor(pod_protections=PodProtections(default_disabled=protections), **args)


FAILED_BARE: dict[str, Any] = {**BARE, "status": {"phase": "Failed"}}
DAEMON: dict[str, Any] = {
    "metadata": {"ownerReferences": [{"kind": "DaemonSet", "name": "d", "uid": "d"}]}
}
CLAIM = spec(volumes=[{"persistentVolumeClaim": {"claimName": "data"}}])
EMPTY_DIR = spec(volumes=[{"emptyDir": {}}])
CRITICAL = spec(priority=2_000_000_000)
DELETED: dict[str, Any] = {"metadata": {"deletionTimestamp": "2030-01-31T09:59:00Z"}}


def _claim(storage_class: str | None) -> dict[str, Any]:
    return {
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "shop"},
        "spec": {"storageClassName": storage_class},
    }


def _budget(labels: dict[str, str], namespace: str = "shop") -> dict[str, Any]:
    return {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": namespace},
        "spec": {"selector": {"matchLabels": labels}},
    }


def _namespace(**labels: str) -> dict[str, Any]:
    return {"kind": "Namespace", "metadata": {"name": "shop", "labels": labels}}


PREFER_NOT = _annotated(PREFER_NO_EVICTION)
FAST = {"classes": ("fast",)}
LABELLED: dict[str, Any] = {"metadata": {"labels": {"app": "web"}}}
TEAM_A = DefaultEvictor(namespace_label_selector=equals({"team": "a"}))
OLD = {"status": {"startTime": "2030-01-31T09:00:00Z"}}
SIBLING = pod("sibling")

CASES = {
    "a plain pod": Case(goes=GOES),
    "a mirror pod": Case(goes=STAYS, pod=_annotated("kubernetes.io/config.mirror")),
    "a static pod": Case(goes=STAYS, pod=_annotated(SOURCE, "file")),
    "a pod from the API server": Case(goes=GOES, pod=_annotated(SOURCE, "api")),
    "a pod that moves in the background": Case(goes=STAYS, pod=_annotated(EVICTION_IN_PROGRESS)),
    "a pod that is being deleted": Case(goes=STAYS, pod=DELETED),
    "a bare pod": Case(goes=STAYS, pod=BARE),
    "a failed bare pod": Case(goes=STAYS, pod=FAILED_BARE),
    "a bare pod, failed ones free": Case(STAYS, BARE, _without(Protection.FAILED_BARE)),
    "a failed bare pod, free": Case(GOES, FAILED_BARE, _without(Protection.FAILED_BARE)),
    "local storage": Case(goes=STAYS, pod=EMPTY_DIR),
    "local storage, free": Case(GOES, EMPTY_DIR, _without(Protection.LOCAL_STORAGE)),
    "a daemon": Case(goes=STAYS, pod=DAEMON),
    "a daemon, free": Case(GOES, DAEMON, _without(Protection.DAEMON_SET)),
    "critical": Case(goes=STAYS, pod=CRITICAL),
    "critical, free": Case(GOES, CRITICAL, _without(Protection.SYSTEM_CRITICAL)),
    "at the threshold": Case(STAYS, spec(priority=10), DefaultEvictor(priority_threshold=10)),
    "below the threshold": Case(GOES, spec(priority=9), DefaultEvictor(priority_threshold=10)),
    "priority 0, threshold 0": Case(STAYS, spec(priority=0), DefaultEvictor(priority_threshold=0)),
    "no priority, threshold 0": Case(GOES, {}, DefaultEvictor(priority_threshold=0)),
    "the threshold vanishes with the protection": Case(
        GOES,
        spec(priority=10),
        _without(Protection.SYSTEM_CRITICAL, priority_threshold=10),
    ),
    "a claim": Case(goes=GOES, pod=CLAIM),
    "a claim, protected": Case(STAYS, CLAIM, _with(Protection.PVC)),
    "no claim, claims protected": Case(GOES, {}, _with(Protection.PVC)),
    "a claim of a protected class": Case(
        STAYS, CLAIM, _with(Protection.PVC, **FAST), (_claim("fast"),)
    ),
    "a claim of another class": Case(GOES, CLAIM, _with(Protection.PVC, **FAST), (_claim("slow"),)),
    "a claim without class": Case(STAYS, CLAIM, _with(Protection.PVC, **FAST), (_claim(None),)),
    "a claim that nobody knows": Case(STAYS, CLAIM, _with(Protection.PVC, **FAST)),
    "resource claims": Case(
        STAYS, spec(resourceClaims=[{"name": "gpu"}]), _with(Protection.RESOURCE_CLAIMS)
    ),
    "labels that match": Case(
        GOES, LABELLED, DefaultEvictor(label_selector=equals({"app": "web"}))
    ),
    "labels that do not": Case(
        STAYS, LABELLED, DefaultEvictor(label_selector=equals({"app": "x"}))
    ),
    "a namespace that matches": Case(GOES, {}, TEAM_A, (_namespace(team="a"),)),
    "a namespace that does not": Case(STAYS, {}, TEAM_A, (_namespace(team="b"),)),
    "a namespace that nobody knows": Case(STAYS, {}, TEAM_A),
    "too few replicas": Case(STAYS, {}, DefaultEvictor(min_replicas=2)),
    "enough replicas, one pending": Case(GOES, {}, DefaultEvictor(min_replicas=2), (SIBLING,)),
    "a bound of one is none": Case(GOES, {}, DefaultEvictor(min_replicas=1)),
    "no start": Case(STAYS, {}, DefaultEvictor(min_pod_age_s=60)),
    "too young": Case(STAYS, OLD, DefaultEvictor(min_pod_age_s=3601)),
    "old enough": Case(GOES, OLD, DefaultEvictor(min_pod_age_s=3600)),
    "prefers no eviction": Case(goes=GOES, pod=PREFER_NOT),
    "prefers no eviction, preferred": Case(
        GOES, PREFER_NOT, DefaultEvictor(no_eviction_policy=NoEviction.PREFERRED)
    ),
    "prefers no eviction, mandatory": Case(
        STAYS, PREFER_NOT, DefaultEvictor(no_eviction_policy=NoEviction.MANDATORY)
    ),
    "the annotation beats all, whatever its value": Case(
        GOES,
        {**EMPTY_DIR, **_annotated(EVICT, "false")},
        DefaultEvictor(min_replicas=5, no_eviction_policy=NoEviction.MANDATORY),
    ),
    "the annotation does not beat the namespace": Case(STAYS, _annotated(EVICT), TEAM_A),
}


@pytest.mark.parametrize("name", CASES)
def test_what_protects_a_pod(name: str) -> None:
    case = CASES[name]

    assert _goes(pod("it", "a", **case.pod), case.evictor, *case.others) is case.goes


@pytest.mark.parametrize(
    ("budgets", "is_covered"),
    [
        ((), False),
        ((_budget({"app": "web"}),), True),
        ((_budget({}),), True),
        ((_budget({"app": "x"}),), False),
        ((_budget({"app": "web"}, "other"),), False),
    ],
)
def test_a_budget_that_selects_a_pod_covers_it_but_not_in_a_cycle_of_upstream(
    budgets: tuple[dict[str, Any], ...],
    is_covered: bool,  # noqa: FBT001 - a column of the table
) -> None:
    evictor = _with(Protection.WITHOUT_PDB)
    found = cluster_of(pod("it", "a", **LABELLED), *budgets)
    why = Protections(evictor, found, NOW).why(found.pods[0])
    assert (why == "") is is_covered
    assert not _goes(pod("it", "a", **LABELLED), evictor, *budgets)  # Its issue 1882.


def test_an_owner_keeps_its_least_replicas_when_several_pods_would_go() -> None:
    pods = [pod(f"p{i}", "a", metadata={"labels": {"i": str(i)}}) for i in range(4)]
    one_by_one = [
        PodLifeTime(states=frozenset({"Running"}), label_selector=equals({"i": str(i)}))
        for i in range(4)
    ]

    names = evicted(
        [node("a"), node("b"), *pods], *one_by_one, evictor=DefaultEvictor(min_replicas=3)
    )

    assert names == ["p0", "p1"]


def test_a_pod_of_several_owners_has_no_bound_on_replicas() -> None:
    owners = [{"kind": "A", "name": "a", "uid": "1"}, {"kind": "B", "name": "b", "uid": "2"}]
    both = pod("it", "a", metadata={"ownerReferences": owners})

    assert _goes(both, DefaultEvictor(min_replicas=9))


@pytest.mark.parametrize(
    ("window", "why"),
    [
        ("0 9 * * * 2h", ""),
        ("0 22 * * * 6h", "move window opens at 2030-01-31T22:00:00Z"),
        ("at night", "move window cannot be read: 'at night' is no window"),
    ],
)
def test_annotations_keep_pods_outside_of_their_windows(window: str, why: str) -> None:
    annotated = _annotated("reserver.io/move-window", window)
    namespace = {"kind": "Namespace", **_annotated("reserver.io/move-window", window)}
    namespace["metadata"]["name"] = "shop"
    own = cluster_of(node("a"), pod("p0", "a", **annotated))
    assert _why(own) == (why and f"its {why}")
    shared = cluster_of(node("a"), pod("p0", "a"), namespace)
    assert _why(shared) == (why and f"its namespace's {why}")


def _why(cluster: ClusterState) -> str:
    (only,) = cluster.pods
    return Protections(UNCONFIGURED, cluster, NOW).why(only)
