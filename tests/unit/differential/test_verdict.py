"""The agreement between kube-scheduler and `fit`."""

from collections import Counter

import pytest

from hack.differential.verdict import Verdict, judge, nodes_agree, read_message, reasons_agree
from tests.builders import node, pod, state_of

TAINTED = "node(s) had untolerated taint(s)"
LEFT_OUT = "node(s) didn't satisfy plugin(s) [NodeAffinity]"
SNAPSHOT = state_of(node("a", cpu="1"), node("b", cpu="2"), node("c", cpu="1")).snapshot
NONE = "0/3 nodes are available: "
PREEMPTION = "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."


@pytest.mark.parametrize(
    ("message", "reasons", "everywhere"),
    [
        ("2 Insufficient cpu, 1 Too many pods.", {"Insufficient cpu": 2, "Too many pods": 1}, ""),
        (f"3 Insufficient cpu. {PREEMPTION}", {"Insufficient cpu": 3}, ""),
        (f"1 {TAINTED}, 2 {LEFT_OUT}.", {TAINTED: 1, LEFT_OUT: 2}, ""),
        ('persistentvolumeclaim "a" not found.', {}, 'persistentvolumeclaim "a" not found'),
    ],
)
def test_a_message_is_read(message: str, reasons: dict[str, int], everywhere: str) -> None:
    assert read_message(NONE + message) == Verdict(reasons=Counter(reasons), everywhere=everywhere)


def test_a_message_about_something_else_is_no_verdict() -> None:
    with pytest.raises(ValueError, match="running PreBind"):
        read_message("running PreBind plugin: timed out")


@pytest.mark.parametrize(
    ("cpu", "nodes", "agree"),
    [("2", {"b"}, True), ("2", {"a", "b"}, False), ("2", set(), False), ("3", set(), True)],
)
def test_both_have_to_name_the_same_nodes(cpu: str, nodes: set[str], *, agree: bool) -> None:
    ours = judge(pod("asking", cpu=cpu), SNAPSHOT)
    assert nodes_agree(Verdict(nodes=frozenset(nodes)), ours) == agree


@pytest.mark.parametrize(
    ("message", "agree"),
    [
        ("3 Insufficient cpu.", True),
        ("2 Insufficient cpu.", False),
        ("2 Insufficient cpu, 1 Insufficient memory.", False),
        ("1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [NodeAffinity].", False),
        ('persistentvolumeclaim "a" not found.', False),
        ("Insufficient cpu. not found", True),
    ],
)
def test_both_have_to_give_the_same_reasons(message: str, *, agree: bool) -> None:
    asking = pod("asking", cpu="3")
    assert reasons_agree(read_message(NONE + message), asking, SNAPSHOT) == agree
