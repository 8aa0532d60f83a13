"""A drain selects pods as `kubectl drain` does."""

import json
from typing import Any

import pytest

from reserver.moves.drain import Drain, DrainOptions, judge

ALL = DrainOptions(ignores_daemon_sets=True, deletes_empty_dirs=True, evicts_unmanaged=True)


def pod(name: str, kind: str = "ReplicaSet", **metadata: Any) -> dict[str, Any]:
    owners = [{"kind": kind, "name": "web", "uid": "u", "controller": True}] if kind else []
    known = {"name": name, "namespace": "shop", "uid": f"uid-{name}", "ownerReferences": owners}
    return {"metadata": known | metadata, "spec": {}, "status": {"phase": "Running"}}


def with_data(name: str) -> dict[str, Any]:
    volumes = [{"name": "a", "emptyDir": {}}, {"name": "b", "configMap": {"name": "c"}}]
    return pod(name) | {"spec": {"volumes": volumes}}


def judged(*pods: dict[str, Any], allowed: DrainOptions = DrainOptions()) -> Drain:  # noqa: B008 - frozen
    return judge(json.dumps({"items": pods}).encode(), allowed)


def test_pods_that_a_controller_makes_again_are_moved_in_the_order_of_their_names() -> None:
    found = judged(pod("b"), pod("a", "StatefulSet"))
    assert [(each.name, each.uid) for each in found.leaving] == [("a", "uid-a"), ("b", "uid-b")]
    assert (found.staying, found.refused) == ((), ())


@pytest.mark.parametrize(
    ("item", "why"),
    [
        (pod("a", "Node", annotations={"kubernetes.io/config.mirror": "x"}), "from a file"),
        (pod("a", deletionTimestamp="2026-01-01T00:00:00Z"), "being deleted"),
        (pod("a") | {"status": {"phase": "Succeeded"}}, "finished"),
    ],
    ids=["mirror", "leaving", "finished"],
)
def test_where_there_is_nothing_to_move_a_pod_stays(item: dict[str, Any], why: str) -> None:
    (stays,) = judged(item).staying
    assert why in stays.why


@pytest.mark.parametrize(
    ("item", "flag"),
    [
        (pod("a", "DaemonSet"), "--ignore-daemonsets"),
        (pod("a", ""), "--force"),
        (with_data("a"), "--delete-emptydir-data"),
    ],
    ids=["daemon", "unmanaged", "data"],
)
def test_what_is_lost_by_a_drain_is_refused_with_the_flag_that_allows_it(
    item: dict[str, Any], flag: str
) -> None:
    (refused,) = judged(item).refused
    assert flag in refused.why
    assert judged(item, allowed=ALL).refused == ()


def test_a_pod_of_a_daemon_set_stays_even_if_that_is_allowed() -> None:
    found = judged(pod("a", "DaemonSet"), allowed=ALL)
    assert (len(found.staying), found.leaving) == (1, ())


def test_a_pod_that_nobody_makes_again_leaves_without_a_seat() -> None:
    (leaves,) = judged(pod("a", ""), allowed=ALL).leaving
    assert not leaves.is_managed
