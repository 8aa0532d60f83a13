"""`fits` against a recomputation from scratch, after any history of pods, nodes and holds."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from reserver.cluster.constraints import (
    ANY_IP,
    Constraints,
    HostPort,
    NodeTerm,
    PodTerm,
    Spread,
    Taint,
    Toleration,
)
from reserver.cluster.labels import EVERYTHING, NOTHING, Requirement, Selector
from reserver.cluster.node import Node
from reserver.cluster.pod import Pod, PodName
from reserver.cluster.snapshot import Snapshot
from reserver.scheduling.fit import fit, fits
from tests.property.naive_fit import NaiveCluster

NAMES = [f"n{number}" for number in range(6)]
KEYS = ["zone", "rack", "app"]
VALUES = ["a", "b", "7"]

node_names = st.sampled_from(NAMES)
namespaces = st.sampled_from(["red", "green"])
labels = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES))
some_values = st.frozensets(st.sampled_from(VALUES), min_size=1)
requirements = st.one_of(
    st.builds(Requirement, st.sampled_from(KEYS), st.sampled_from(["In", "NotIn"]), some_values),
    st.builds(Requirement, st.sampled_from(KEYS), st.sampled_from(["Exists", "DoesNotExist"])),
    st.builds(
        Requirement,
        st.sampled_from(KEYS),
        st.sampled_from(["Gt", "Lt"]),
        st.sampled_from([frozenset({"3"}), frozenset({"9"})]),
    ),
)
selectors = st.one_of(
    st.sampled_from([EVERYTHING, NOTHING]),
    st.lists(requirements, min_size=1, max_size=2).map(lambda found: Selector(tuple(found))),
)
fields = st.one_of(
    st.just(EVERYTHING),
    st.builds(
        lambda operator, name: Selector((Requirement("metadata.name", operator, name),)),
        st.sampled_from(["In", "NotIn"]),
        node_names.map(lambda name: frozenset({name})),
    ),
)
effects = st.sampled_from(["NoSchedule", "NoExecute"])
taints = st.builds(Taint, st.sampled_from(["x", "y"]), st.sampled_from(["", "1"]), effects)
tolerations = st.builds(
    Toleration,
    st.sampled_from(["", "x", "y", "node.kubernetes.io/unschedulable"]),
    st.sampled_from(["Equal", "Exists", "Lt"]),
    st.sampled_from(["", "1"]),
    st.sampled_from(["", "NoSchedule", "NoExecute"]),
)
topology_keys = st.sampled_from(["zone", "rack"])
pod_terms = st.builds(
    PodTerm,
    selectors,
    topology_keys,
    st.frozensets(namespaces, max_size=2),
    selectors,
)
spreads = st.builds(
    Spread,
    topology_key=topology_keys,
    selector=selectors,
    match_label_keys=st.lists(st.sampled_from(KEYS), max_size=1).map(tuple),
    max_skew=st.integers(1, 2),
    min_domains=st.integers(1, 3),
    honors_affinity=st.booleans(),
    honors_taints=st.booleans(),
)
ports = st.builds(
    HostPort,
    st.sampled_from([ANY_IP, "10.0.0.1", "10.0.0.2"]),
    st.sampled_from(["TCP", "UDP"]),
    st.integers(1, 2),
)


def few(each: st.SearchStrategy[object]) -> st.SearchStrategy[tuple[object, ...]]:
    return st.lists(each, max_size=2).map(tuple)


constraints = st.builds(
    Constraints,
    tolerations=few(tolerations),
    node_selector=selectors,
    node_terms=st.none() | few(st.builds(NodeTerm, selectors, fields)),
    affinity=few(pod_terms),
    anti_affinity=few(pod_terms),
    spread=few(spreads),
    host_ports=few(ports),
)
# All kinds at once seldom fit anywhere.
one_kind = st.one_of(
    st.just(Constraints()),
    st.builds(Constraints, affinity=few(pod_terms)),
    st.builds(Constraints, anti_affinity=few(pod_terms)),
    st.builds(Constraints, spread=few(spreads)),
    st.builds(Constraints, host_ports=few(ports)),
    st.builds(Constraints, node_selector=selectors, tolerations=few(tolerations)),
)
amounts = st.dictionaries(st.sampled_from(["cpu", "gpu"]), st.integers(0, 3))
pods = st.builds(
    Pod,
    name=st.builds(PodName, namespaces, st.just("p")),
    uid=st.sampled_from([f"uid-{number}" for number in range(8)]),
    requests=amounts,
    labels=labels,
    constraints=one_kind | constraints,
    terminating=st.booleans(),
)
nodes = st.builds(
    Node,
    name=node_names,
    allocatable=st.fixed_dictionaries({"cpu": st.integers(0, 9)}, optional={"gpu": st.just(2)}),
    labels=labels,
    taints=few(taints),
    unschedulable=st.booleans(),
)


class FitsAgainstScratch(RuleBasedStateMachine):
    """A snapshot, and the same cluster without any index."""

    def __init__(self) -> None:
        super().__init__()
        self.snapshot = Snapshot()
        self.naive = NaiveCluster()
        self.asked: dict[int, Pod] = {}

    @rule(node=nodes)
    def set_node(self, node: Node) -> None:
        self.snapshot.set_node(node)
        self.naive.nodes[node.name] = node

    @rule(name=node_names)
    def remove_node(self, name: str) -> None:
        self.snapshot.remove_node(name)
        self.naive.nodes.pop(name, None)

    @rule(pod=pods, node=node_names)
    def place(self, pod: Pod, node: str) -> None:
        self.snapshot.count(pod, node)
        self.naive.pods[pod.uid] = (pod, node)

    @rule(pod=pods)
    def displace(self, pod: Pod) -> None:
        self.snapshot.uncount(pod.uid)
        self.naive.pods.pop(pod.uid, None)

    @rule(name=namespaces, labelled=labels)
    def set_namespace(self, name: str, labelled: dict[str, str]) -> None:
        self.snapshot.namespaces[name] = labelled
        self.naive.namespaces[name] = labelled

    @rule(name=node_names, totals=amounts)
    def hold(self, name: str, totals: dict[str, int]) -> None:
        self.snapshot.set_held(name, totals)
        self.naive.holds[name] = totals

    @rule(pod=pods, number=st.integers(0, 2))
    def ask(self, pod: Pod, number: int) -> None:
        """Ask about a pod now and after each later change: columns were made for its keys."""
        self.asked[number] = pod
        possible = fits(pod, self.snapshot)
        for name in NAMES:
            row = self.snapshot.row(name)
            does_fit = row is not None and bool(possible[row])
            assert does_fit == (not fit(pod, name, self.snapshot))

    @invariant()
    def says_the_same(self) -> None:
        for pod in self.asked.values():
            possible = fits(pod, self.snapshot)
            for name in NAMES:
                row = self.snapshot.row(name)
                node = self.naive.nodes.get(name)
                expected = node is not None and self.naive.fits(pod, node)
                assert (row is not None and bool(possible[row])) == expected


TestFitsAgainstScratch = FitsAgainstScratch.TestCase
