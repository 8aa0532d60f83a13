from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from reserver.cluster.headroom import Headroom
from reserver.cluster.node import Node
from reserver.cluster.pod import Pod, PodName
from reserver.cluster.snapshot import Snapshot

CLAMP = 2**60
nodes = st.sampled_from([f"worker-{number}" for number in range(80)])
uids = st.sampled_from([f"uid-{number}" for number in range(12)])
resources = st.sampled_from(["cpu", "memory", "pods", *(f"x.io/r{i}" for i in range(9))])
values = st.integers(0, 2000) | st.just(2**62)
amounts = st.dictionaries(resources, values, max_size=4)

Amounts = dict[str, int]


class SnapshotAgainstDicts(RuleBasedStateMachine):
    """The snapshot, and what plain dicts say of the same history."""

    def __init__(self) -> None:
        super().__init__()
        self.snapshot = Snapshot()
        self.offers: dict[str, Amounts] = {}
        self.pods: dict[str, tuple[str, Amounts]] = {}
        self.holds: dict[str, Amounts] = {}
        self.returning: dict[str, Amounts] = {}

    @rule(node=nodes, allocatable=amounts)
    def set_node(self, node: str, allocatable: Amounts) -> None:
        self.snapshot.set_node(Node(name=node, allocatable=allocatable))
        self.offers[node] = allocatable

    @rule(node=nodes)
    def remove_node(self, node: str) -> None:
        self.snapshot.remove_node(node)
        self.offers.pop(node, None)

    @rule(uid=uids, node=nodes, requests=amounts)
    def place(self, uid: str, node: str, requests: Amounts) -> None:
        self.snapshot.count(Pod(name=PodName("shop", uid), uid=uid, requests=requests), node)
        self.pods[uid] = (node, requests)

    @rule(uid=uids)
    def displace(self, uid: str) -> None:
        self.snapshot.uncount(uid)
        self.pods.pop(uid, None)

    @rule(node=nodes, totals=amounts)
    def set_held(self, node: str, totals: Amounts) -> None:
        self.snapshot.set_held(node, totals)
        if totals:
            self.holds[node] = totals
        else:
            self.holds.pop(node, None)

    @rule(node=nodes, totals=amounts)
    def set_returning(self, node: str, totals: Amounts) -> None:
        self.snapshot.set_returning(node, totals, {}.keys())
        if totals:
            self.returning[node] = totals
        else:
            self.returning.pop(node, None)

    @invariant()
    def shows_the_same(self) -> None:
        snapshot = self.snapshot
        guarded = self.holds.keys() | self.returning.keys()
        known = self.offers.keys() | guarded | {node for node, _ in self.pods.values()}
        for name in [f"worker-{number}" for number in range(80)]:
            assert (snapshot.row(name) is not None) == (name in known)
        for node in known:
            row = snapshot.row(node)
            assert row is not None
            assert snapshot.name_of(row) == node
            assert snapshot.has_node(node) == (node in self.offers)
            assert snapshot.has_holds[row] == (node in self.holds)
            assert snapshot.guarded[row] == (node in guarded) == (node in snapshot.holding)
            assert (node in snapshot.without_holds) != (node in snapshot.holding)
            for resource, column in snapshot.columns.items():
                taken = sum(r.get(resource, 0) for at, r in self.pods.values() if at == node)
                held = self.holds.get(node, {}).get(resource, 0)
                offered = self.offers.get(node, {}).get(resource, 0)
                assert snapshot.allocatable[row, column] == min(offered, CLAMP)
                assert snapshot.requested[row, column] == min(taken, CLAMP)
                assert snapshot.held[row, column] == min(held, CLAMP)
                beside = min(offered, CLAMP) - min(taken, CLAMP) - min(held, CLAMP)
                is_guarded = held or self.returning.get(node, {}).get(resource, 0)
                assert snapshot.headroom.of(column)[row] == (beside if is_guarded else CLAMP)
        assert snapshot.node_count == len(self.offers)

    @invariant()
    def compares_only_what_has_changed(self) -> None:
        snapshot = self.snapshot
        anew = Headroom(
            snapshot.columns,
            snapshot._cells,
            snapshot.exists | ~snapshot.guarded,
        )
        for requests in ({}, {"cpu": 700}, {"cpu": 0, "memory": 1500}, {"x.io/r1": 1, "x.io/?": 9}):
            assert (snapshot.headroom.fits(requests) == anew.fits(requests)).all()

    @invariant()
    def offers_a_column_for_all_that_was_ever_offered(self) -> None:
        offered = {resource for offer in self.offers.values() for resource in offer}
        assert offered <= self.snapshot.columns.keys()


TestSnapshotAgainstDicts = SnapshotAgainstDicts.TestCase
