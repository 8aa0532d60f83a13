"""Whole nodes, whatever happens: only owners get in, and all that is left is held."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from reserver.cluster.pod import NO_CONTROLLER, Controller, Pod
from reserver.scheduling.bind import judge_bind
from reserver.scheduling.filter import filter_nodes
from tests.builders import NOW, node, pod, ref, reservation, rule, state_of

NODES = ("n0", "n1")
AGENT = Controller("DaemonSet", "agent")
KINDS = ("owner", "agent", "stranger")

events = st.lists(
    st.one_of(
        st.tuples(st.just("bind"), st.sampled_from(KINDS), st.integers(0, 3)),
        st.tuples(st.just("go"), st.integers(0, 20), st.just(0)),
        st.tuples(st.just("resize"), st.integers(1, 8), st.just(0)),
        st.tuples(st.just("hold"), st.booleans(), st.just(0)),
    ),
    max_size=25,
)


def made(kind: str, number: int, cpu: int) -> Pod:
    """Return a pod of a kind that requests so many CPUs."""
    labels = {"app": "train"} if kind == "owner" else {}
    maker = AGENT if kind == "agent" else NO_CONTROLLER
    return pod(f"{kind}-{number}", labels=labels, cpu=str(cpu), controller=maker)


@given(events)
def test_nobody_but_owners_gets_in_and_all_that_is_left_is_held(
    happening: list[tuple[str, str | int, int]],
) -> None:
    whole = reservation("r", node="", owners=(), rules=[rule(app="train")], placed={"n0": 1})
    whole = replace(whole, resources={"nodes": 1}, reusable=True)
    state, size, is_held = state_of(*(node(n, cpu="4") for n in NODES)), 4, False
    bound: list[Pod] = []
    for number, (what, which, cpu) in enumerate(happening):
        if what == "hold":
            is_held = bool(which)
            if is_held:
                state.ledger.put(whole)
            else:
                state.ledger.drop(ref("r"))
        elif what == "resize":
            size = int(which)
            state.node_seen(node("n0", cpu=str(size)))
        elif what == "go" and bound:
            state.pod_gone(bound.pop(int(which) % len(bound)).name)
        elif what == "bind":
            asking = made(str(which), number, cpu)
            verdict = judge_bind(asking, "n0", state, NOW)
            left = size - sum(each.requests["cpu"] for each in bound) // 1000
            allowed = {"owner": cpu == 0 or cpu <= left, "agent": True, "stranger": False}
            assert (verdict.refusal is None) is (not is_held or allowed[str(which)])
            assert bool(filter_nodes(asking, ["n0"], state, NOW).nodes) is (verdict.refusal is None)
            if verdict.refusal is None:
                state.assume(asking, "n0", verdict.claims)
                state.confirm(asking.uid)
                there = replace(asking, node="n0", claims=frozenset(verdict.claims))
                state.pod_seen(there)
                bound.append(there)
        cores = state.snapshot.amounts("n0", "cpu")
        assert cores.held == (max(0, cores.allocatable - cores.requested) if is_held else 0)
        assert state.snapshot.fork().amounts("n0", "cpu") == cores
