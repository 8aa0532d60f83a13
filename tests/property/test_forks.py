"""A fork of a snapshot, while nodes join, leave and change, and pods of two namespaces land."""

from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from reserver.cluster.constraints import Constraints, NodeTerm, PodTerm
from reserver.cluster.labels import equals
from reserver.cluster.node import HOSTNAME, Node
from reserver.scheduling.fit import allowed
from reserver.scheduling.placement import room_for
from reserver.scheduling.state import State
from tests.builders import NAMESPACE, node, pod, reservation, state_of

names = st.sampled_from([f"worker-{number}" for number in (*range(9), *range(9), *range(90))])
zones = st.sampled_from("ab")
spaces = st.sampled_from([NAMESPACE, "blog"])
ALONE_IN_ZONE_A = Constraints(
    node_terms=(NodeTerm(equals({"zone": "a"})),),
    anti_affinity=(PodTerm(equals({"app": "web"}), HOSTNAME, frozenset({NAMESPACE})),),
)
WANTED = replace(pod("w", cpu="1"), constraints=ALONE_IN_ZONE_A)


class ForkBesideTheLiveOne(RuleBasedStateMachine):
    """A fork has the nodes of its beginning that have not left, as these are now, and no other."""

    def __init__(self) -> None:
        super().__init__()
        self.state: State = state_of()
        self.nodes: dict[str, Node] = {}
        self.landed: set[str] = set()
        self.forks: list[tuple[State, set[str]]] = []

    @rule(name=names, zone=zones, count=st.sampled_from([1, 1, 1, 20]))
    def join(self, name: str, zone: str, count: int) -> None:
        for number in range(count):
            full = f"{name}{'-' * number}"
            self._seen(node(full, cpu="4", labels={"zone": zone, HOSTNAME: full}))

    def _seen(self, node: Node) -> None:
        self.nodes[node.name] = node
        self.state.node_seen(node)

    @rule(name=names)
    def leave(self, name: str) -> None:
        self.state.node_gone(name)
        self.nodes.pop(name, None)
        for _, seen in self.forks:
            seen.discard(name)

    @rule(name=names, space=spaces)
    def hold(self, name: str, space: str) -> None:
        """A hold keeps the row of a node that leaves."""
        held = reservation(f"on-{name}", node=name, cpu="1")
        self.state.ledger.put(replace(held, ref=held.ref._replace(namespace=space)))

    @rule(name=names, space=spaces, comes=st.sampled_from([True, True, False]))
    def land(self, name: str, space: str, *, comes: bool) -> None:
        """Bind a pod, or remove it; pods of the other namespace are no neighbours."""
        web = pod(
            f"on-{name}",
            namespace=space,
            uid=f"{space}-on-{name}",
            node=name,
            labels={"app": "web"},
            cpu="1",
        )
        if comes:
            self.state.pod_seen(web)
        else:
            self.state.pod_gone(web.name)
        if space == NAMESPACE:
            (self.landed.add if comes else self.landed.discard)(name)

    @rule()
    def fork(self) -> None:
        self.forks.append((self.state.fork(), set(self.nodes)))

    @rule()
    def drop(self) -> None:
        del self.forks[:1]

    @invariant()
    def forks_see_their_own_nodes(self) -> None:
        for forked, seen in [*self.forks, (self.state, set(self.nodes))]:
            snapshot = forked.snapshot
            rows = allowed(WANTED, snapshot).nonzero()[0]
            found = {snapshot.name_of(int(row)) for row in rows}
            in_zone = {name for name in seen if self.nodes[name].labels["zone"] == "a"}
            assert found == in_zone - self.landed
            assert len(room_for(WANTED, forked, rows)) == len(rows)


TestForkBesideTheLiveOne = ForkBesideTheLiveOne.TestCase
