"""The pods with buffers: pods of one namespace keep no buffer from pods of another."""

from __future__ import annotations

import dataclasses
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from reserver.scheduling.buffers import MOST_BUFFERS, Simulation, deceptive
from tests.builders import node, pod, reservation, state_of

_NODES = st.lists(st.tuples(st.integers(1, 8), st.integers(1, 8)), min_size=1, max_size=4)
_PODS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 9)), max_size=12)


@given(_NODES, _PODS)
def test_each_namespace_has_one_if_any_of_its_pods_seems_to_fit_and_no_more_than_wait(
    nodes: list[tuple[int, int]], pods: list[tuple[str, int]]
) -> None:
    state = state_of(
        *(node(f"n{i}", cpu=str(cpu)) for i, (cpu, _) in enumerate(nodes)),
        *(reservation(f"r{i}", node=f"n{i}", cpu=str(held)) for i, (_, held) in enumerate(nodes)),
    )
    simulation = Simulation(state, Counter())
    seems, names = Counter[str](), Counter[str]()
    for i, (namespace, cpu) in enumerate(pods):
        names[namespace] += 1
        equal = f"p{names[namespace]}"  # In each namespace.
        made = pod(equal, uid=f"uid-{i}", namespace=namespace, cpu=str(cpu))
        state.pod_seen(dataclasses.replace(made, is_refused=True))
        simulation.consider(made.uid)
        seems[namespace] += bool(len(deceptive(made, state.snapshot)))
    found = [each for each in map(simulation.buffer, simulation.in_order()) if each is not None]
    numbers = Counter(each.pod.name.namespace for each in found)
    looks_free = sum(cpu for cpu, _ in nodes)
    for namespace in "abc":
        assert (numbers[namespace] > 0) == (seems[namespace] > 0)
        # A pod that fits by itself may not fit beside another one that seems to.
        assert numbers[namespace] <= min(names[namespace], MOST_BUFFERS)
        own = [each.pod for each in found if each.pod.name.namespace == namespace]
        assert sum(each.requests["cpu"] for each in own) <= looks_free * 1000
