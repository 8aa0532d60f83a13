"""The ceiling: the holds of all tenants are as a naive reading of the rule gives them."""

from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from reserver.cluster.snapshot import Snapshot
from reserver.reservations.ceiling import CeilingLimits
from reserver.reservations.ledger import Ledger
from reserver.reservations.placement import Part
from reserver.reservations.quotas import Quotas
from reserver.reservations.reservation import Ref, Reservation
from tests.builders import node, pod, reservation

NODES = ("worker-1", "worker-2")
NAMESPACES = ("shop", "blog", "home")
"""With reservations of the same names; the last one is Reserver's own."""

KEYS = ("a", "b")


class CeilingAgainstTheRule(RuleBasedStateMachine):
    """Reservations of three namespaces come and go, and the limits change."""

    def __init__(self) -> None:
        super().__init__()
        snapshot = Snapshot()
        for name in NODES:
            snapshot.set_node(node(name, cpu="64"))
        self.unsettled: list[str] = []
        quotas = Quotas(trusted={"home"}, changed=self.unsettled.append)
        self.ledger = Ledger(snapshot, quotas=quotas)
        self.written: dict[Ref, Reservation] = {}
        self.inside: set[Ref] = set()
        self.placed: dict[Ref, str] = {}
        self.claimed: dict[Ref, str] = {}  # Nodes of claimed entries that are still written.
        self.second = 0.0
        self.limits: tuple[int | None, int | None]
        self.limit(6, 4)

    def _settle(self) -> None:
        for _ in range(1000):
            if not self.unsettled:
                break
            namespace = self.unsettled.pop(0)
            for _ in self.ledger.admit(namespace):
                pass
        assert not self.unsettled
        self.inside = {ref for ref, each in self.written.items() if self._is_in(each)}

    def _is_in(self, each: Reservation) -> bool:
        return self.ledger.quotas.admits(each)

    @rule(
        namespace=st.sampled_from(NAMESPACES),
        key=st.sampled_from(KEYS),
        cpu=st.integers(2, 4),
        where=st.sampled_from(("", *NODES)),
    )
    def write(self, namespace: str, key: str, cpu: int, where: str) -> None:
        self.second += 1
        self.ledger.advance(self.second)
        made = reservation(key, node=where, cpu=str(cpu))
        ref = made.ref._replace(namespace=namespace)
        if ref in self.written:
            return
        origin = f"{namespace}/{key}#{self.second}"
        self.written[ref] = replace(made, ref=ref, origin=origin, created_at=self.second)
        former = self.claimed.pop(ref, "")
        if former and not where:
            self.placed[ref] = former  # It begins at the place of the entry that it replaces.
        before = set(self.inside)
        self.ledger.put(self.written[ref])
        self._settle()
        assert before <= self.inside

    @precondition(lambda self: self.written)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        ref = data.draw(st.sampled_from(sorted(self.written)))
        before = self.inside - {ref}
        del self.written[ref]
        self.placed.pop(ref, None)
        self.ledger.drop(ref)
        self._settle()
        assert before <= self.inside

    @rule(cluster=st.none() | st.integers(2, 8), of_node=st.none() | st.integers(2, 5))
    def limit(self, cluster: int | None, of_node: int | None) -> None:
        self.limits = cluster, of_node
        before = set(self.inside)
        totals = {} if cluster is None else {"cpu": cluster * 1000}
        one = None if of_node is None else of_node * 1000
        self.ledger.quotas.ceiling.limit(CeilingLimits(totals, lambda *_: one))
        self._settle()
        assert before <= self.inside  # What was admitted stays admitted.

    @precondition(lambda self: self.inside)
    @rule(data=st.data(), where=st.sampled_from((*NODES, "")))
    def place(self, data: st.DataObject, where: str) -> None:
        """Place a reservation, or withdraw its place; admitted ones stay admitted."""
        ref = data.draw(st.sampled_from(sorted(self.inside)))
        if self.written[ref].node:
            return
        before = set(self.inside)
        parts = (Part(where, 1),) if where else ()
        self.ledger.place(ref, parts)
        self.placed[ref] = where
        self._settle()
        assert before <= self.inside

    @precondition(lambda self: self.placed)
    @rule(data=st.data())
    def claim(self, data: st.DataObject) -> None:
        """A slot that is claimed is not held any more."""
        ref = data.draw(st.sampled_from(sorted(self.placed)))
        if not self.placed[ref] or ref not in self.inside:
            return
        (owner,) = self.written[ref].owners
        self.second += 1
        uid, on = f"uid-{self.second}", self.placed[ref]
        claimant = pod(owner.name, namespace=owner.namespace, uid=uid, node=on)
        self.ledger.claim(self.written[ref].identity, claimant)
        before = self.inside - {ref}
        self.claimed[ref] = self.placed.pop(ref)
        del self.written[ref]
        self._settle()
        assert before <= self.inside

    def _held(self, where: str) -> int:
        return sum(
            each.resources["cpu"]
            for ref, each in self.written.items()
            if ref in self.inside
            and ref.namespace != "home"
            and where in ("", each.node, self.placed.get(ref, ""))
        )

    def _has_room(self, each: Reservation) -> bool:
        asked = each.resources["cpu"]
        of_cluster, of_node = self.limits
        is_over = of_cluster is not None and self._held("") + asked > of_cluster * 1000
        if each.node and of_node is not None:
            is_over = is_over or self._held(each.node) + asked > of_node * 1000
        return not is_over

    @invariant()
    def who_waits_has_no_room_or_waits_behind_another_of_its_namespace(self) -> None:
        for namespace in NAMESPACES:
            waiting = [
                each
                for ref, each in self.written.items()
                if ref.namespace == namespace and ref not in self.inside
            ]
            assert not waiting or namespace != "home"
            if waiting:
                assert not self._has_room(waiting[0])
                why = self.ledger.quotas.why(waiting[0])
                assert "tenantCeiling of " in why, why

    @invariant()
    def what_is_counted_is_what_is_admitted(self) -> None:
        counted = self.ledger.quotas.ceiling.used.get("held.cpu", 0)
        assert counted == self._held("")
        on_nodes = self.ledger.quotas.ceiling.on_nodes
        assert {node: held["cpu"] for node, held in on_nodes.items()} == {
            node: held for node in NODES if (held := self._held(node))
        }


TestCeilingAgainstTheRule = CeilingAgainstTheRule.TestCase
