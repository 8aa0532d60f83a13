"""RemovePodsViolatingTopologySpreadConstraint: state in, evictions out, for each option."""

from collections import Counter
from typing import Any

import pytest

from reserver.cluster.labels import equals
from reserver.rebalance.arguments.base import Choice
from reserver.rebalance.arguments.placement import RemovePodsViolatingTopologySpreadConstraint
from tests.unit.rebalance.build import Objects, counted, evicted, node, pod, pods, taint

ZONES = [node(f"n{zone}", labels={"zone": str(zone), "pool": "x"}) for zone in range(3)]
SPREAD = RemovePodsViolatingTopologySpreadConstraint()


def _spread(**rule: Any) -> dict[str, Any]:
    """Return the parts of a pod that must be spread over zones."""
    written = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
        **rule,
    }
    return {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"topologySpreadConstraints": [written]},
    }


def _also(parts: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {**parts, "spec": {**parts["spec"], **spec}}


def _over(*counts: int, parts: dict[str, Any] | None = None) -> Objects:
    """Return so many pods in each zone."""
    spread = _spread() if parts is None else parts
    return [
        each
        for zone, count in enumerate(counts)
        for each in pods(count, f"n{zone}", "abc"[zone], **spread)
    ]


SOFT = _spread(whenUnsatisfiable="ScheduleAnyway")
PLAIN = {"metadata": {"labels": {"app": "web"}}}
HONORS = _also(_spread(nodeTaintsPolicy="Honor"))
KEYED = {
    **_spread(labelSelector={}, matchLabelKeys=["hash"]),
    "metadata": {"labels": {"hash": "1"}},
}
TAINTED_ZONES = [*ZONES[:2], node("n2", labels={"zone": "2"}, taints=[taint("k")])]

SPREADING: dict[str, tuple[Objects, dict[str, Any], dict[str, int]]] = {
    # The number of pods that leave each zone.
    "even": ([*ZONES, *_over(2, 2, 2)], {}, {}),
    "within the skew": ([*ZONES, *_over(2, 1, 1)], {}, {}),
    "two too many": ([*ZONES, *_over(4, 1, 1)], {}, {"a": 2}),
    "an empty zone": ([*ZONES, *_over(3, 3, 0)], {}, {"a": 1, "b": 1}),
    "a larger skew is allowed": ([*ZONES, *_over(4, 2, 2, parts=_spread(maxSkew=2))], {}, {}),
    "soft constraints do not count": ([*ZONES, *_over(4, 1, 1, parts=SOFT)], {}, {}),
    "unless asked for": (
        [*ZONES, *_over(4, 1, 1, parts=SOFT)],
        {"constraints": frozenset({"ScheduleAnyway"})},
        {"a": 2},
    ),
    "pods without the constraint count, and leave": (
        [*ZONES, pod("x", "n0", **_spread()), *_over(3, 1, 1, parts=PLAIN)],
        {},
        {"x": 1, "a": 1},
    ),
    "other labels do not count": (
        [*ZONES, *_over(2, 2, 2), *pods(5, "n0", "x", metadata={"labels": {"app": "x"}})],
        {},
        {},
    ),
    "other namespaces do not": (
        [*ZONES, *_over(2, 2, 2), *pods(5, "n0", "x", namespace="other", **PLAIN)],
        {},
        {},
    ),
    "protected pods are not counted": (
        [*ZONES, *_over(1, 1, 1), *pods(4, "n0", "x", **_also(_spread(), priority=2 * 10**9))],
        {},
        {},
    ),
    "pods that are being deleted are not": (
        [
            *ZONES,
            *_over(1, 1, 1),
            *pods(
                4,
                "n0",
                "x",
                **_also(
                    {
                        **_spread(),
                        "metadata": {
                            "labels": {"app": "web"},
                            "deletionTimestamp": "2030-01-31T09:00:00Z",
                        },
                    }
                ),
            ),
        ],
        {},
        {},
    ),
    "a zone that the node selector rules out": (
        [
            *ZONES[:2],
            node("n2", labels={"zone": "2"}),
            *_over(2, 2, 0, parts=_also(_spread(), nodeSelector={"pool": "x"})),
        ],
        {},
        {},
    ),
    "it counts if affinity is ignored, but nothing fits there": (
        [
            *ZONES[:2],
            node("n2", labels={"zone": "2"}),
            *_over(
                3,
                3,
                0,
                parts=_also(_spread(nodeAffinityPolicy="Ignore"), nodeSelector={"pool": "x"}),
            ),
        ],
        {},
        {},
    ),
    "they leave all the same without topologyBalanceNodeFit": (
        [
            *ZONES[:2],
            node("n2", labels={"zone": "2"}),
            *_over(
                3,
                3,
                0,
                parts=_also(_spread(nodeAffinityPolicy="Ignore"), nodeSelector={"pool": "x"}),
            ),
        ],
        {"topology_balance_node_fit": False},
        {"a": 1, "b": 1},
    ),
    "a tainted zone counts": (
        [*TAINTED_ZONES, *_over(3, 3, 0)],
        {"topology_balance_node_fit": False},
        {"a": 1, "b": 1},
    ),
    "unless taints are honored": ([*TAINTED_ZONES, *_over(3, 3, 0, parts=HONORS)], {}, {}),
    "only pods with equal values of matchLabelKeys count": (
        [
            *ZONES,
            *_over(1, 1, 1, parts=KEYED),
            *pods(5, "n0", "x", metadata={"labels": {"hash": "2"}}),
        ],
        {},
        {},
    ),
    "a full zone takes nobody": (
        [*ZONES[:2], node("n2", labels={"zone": "2"}, offer={"pods": "0"}), *_over(3, 3, 0)],
        {},
        {},
    ),
    "namespaces that are looked at": (
        [*ZONES, *_over(4, 1, 1)],
        {"namespaces": Choice(exclude=frozenset({"shop"}))},
        {},
    ),
    "labels that are looked at": (
        [*ZONES, *_over(4, 1, 1)],
        {"label_selector": equals({"app": "x"})},
        {},
    ),
    "a single zone": (
        [node("a", labels={"zone": "0"}), node("b"), *pods(4, "a", **_spread())],
        {},
        {},
    ),
}


@pytest.mark.parametrize("name", SPREADING)
def test_topology_spread(name: str) -> None:
    objects, args, leaves = SPREADING[name]

    names = evicted(objects, RemovePodsViolatingTopologySpreadConstraint(**args))

    assert counted(names) == Counter(leaves)


def test_of_a_zone_those_of_the_highest_priority_leave_before_those_with_node_rules() -> None:
    parts = [
        _also(_spread(), priority=1),
        _also(_spread(), priority=9),
        _also(_spread(), priority=9, nodeSelector={"pool": "x"}),
        _spread(),
    ]
    pods = [pod(f"a{index}", "n0", **each) for index, each in enumerate(parts)]

    assert evicted([*ZONES[:2], *pods], SPREAD) == ["a0", "a1"]


def test_of_a_zone_those_leave_that_fit_where_there_are_fewer() -> None:
    small = [node("n0", labels={"zone": "0"}), node("n1", labels={"zone": "1"}, offer={"cpu": "1"})]
    pods = [
        pod(f"a{index}", "n0", requests={"cpu": cpu}, **_spread())
        for index, cpu in enumerate(["1", "2", "1", "2"])
    ]

    assert evicted([*small, *pods], SPREAD) == ["a0", "a2"]
