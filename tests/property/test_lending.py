"""Returned room, lent or claimed, costs no owner its seat, in any order of watch events."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reserver.cluster.pod import Pod, PodName
from reserver.reservations.enums import Phase
from reserver.reservations.reservation import Reservation
from reserver.scheduling.bind import judge_bind
from reserver.scheduling.filter import filter_nodes
from reserver.scheduling.recall import RECALL_S
from reserver.scheduling.state import State
from tests.builders import BORROWER, NAMESPACE, NOW, node, pod, reservation

NODE, CPUS = "worker-1", 12
ACTIONS = ["reserve", "ask", "ask", "ask", "end", "read", "owner", "drop"]
PRIORITIES = st.sampled_from([-5, 0, 5, 10])


@st.composite
def holds(draw: st.DrawFn) -> Reservation:
    """Draw a reservation for one owner; most of them lend."""
    number = draw(st.integers(0, 3))
    return reservation(
        f"r{number}",
        node=NODE,
        owners=(f"owner-{number}",),
        reusable=draw(st.booleans()),
        lends_below=draw(st.sampled_from([None, 0, 1, 8, 8, 100])),
        cpu=str(draw(st.integers(1, 6))),
    )


@st.composite
def strangers(draw: st.DrawFn) -> Pod:
    """Draw a pod that owns nothing, and perhaps may borrow; some are called as owners elsewhere."""
    namespace = draw(st.sampled_from([NAMESPACE, "other"]))
    owners = ["owner-0", "owner-1"] if namespace != NAMESPACE else []
    name = draw(st.sampled_from([*owners, *(f"p{number}" for number in range(8))]))
    return pod(
        name,
        namespace=namespace,
        uid=f"{namespace}-{name}",
        priority=draw(PRIORITIES),
        constraints=BORROWER
        if draw(st.integers(0, 2))
        else replace(BORROWER, tolerates_recall=False),
        cpu=str(draw(st.integers(1, 6))),
    )


class Cluster:
    """One node, whose pods kube-scheduler binds where Filter and Bind let it.

    Attributes:
        unread: the pods that kube-scheduler knows are gone, and Reserver has yet to read of.
    """

    def __init__(self) -> None:
        self.state = State()
        self.state.snapshot.lending.is_on = True
        self.state.ledger.advance(NOW)
        self.state.node_seen(node(NODE, cpu=str(CPUS)))
        self.state.is_complete = True
        self.now = NOW
        self.unread: list[PodName] = []

    @property
    def spare(self) -> int:
        """Millicores that neither pods nor holds have."""
        offered, requested, held, _ = self.state.snapshot.amounts(NODE, "cpu")
        return offered - requested - held

    @property
    def shown(self) -> int:
        """Millicores that are free by what kube-scheduler has read."""
        pods = (each for name, each in self.state.pods.items() if name not in self.unread)
        return CPUS * 1000 - sum(each.requests["cpu"] for each in pods)

    def end(self, name: PodName) -> None:
        """Delete a pod; kube-scheduler is the first to read of it."""
        if name not in self.unread:
            self.unread.append(name)

    def read(self, most: int | None = None) -> None:
        """Let Reserver read of the end of so many pods, or of all."""
        for name in self.unread[:most]:
            self.state.pod_gone(name)
        del self.unread[:most]

    def reserve(self, made: Reservation) -> None:
        """Write a reservation if there is room, as managers do."""
        known = self.state.ledger.get(made.ref)
        if known is None and made.resources["cpu"] <= self.spare:
            self.state.ledger.put(made)

    def ask(self, asked: Pod) -> bool:
        """Have kube-scheduler ask for a pod; return whether it is bound then."""
        names = [NODE] if self.shown >= asked.requests["cpu"] else []
        verdict = filter_nodes(asked, names, self.state, self.now)
        if verdict.recalled:
            self.state.ledger.recall(verdict.recalled, self.now + RECALL_S)
        for effect in verdict.effects:
            for borrower in getattr(effect, "borrowers", ()):
                assert borrower.constraints.tolerates_recall
                self.end(borrower.name)
        if not verdict.nodes:
            return False
        bound = judge_bind(asked, NODE, self.state, self.now)
        assert bound.refusal is None
        self.state.pod_seen(replace(asked, node=NODE, claims=frozenset(bound.claims)))
        return True

    def owner_of(self, made: Reservation) -> Pod:
        """Return a pod that takes all of a slot; its priority does not matter."""
        cpu = f"{made.resources['cpu']}m"
        return pod(made.owners[0].name, priority=-1000, cpu=cpu)


@given(data=st.data(), turns=st.integers(1, 25))
def test_every_owner_gets_its_seat_whoever_has_borrowed(data: st.DataObject, turns: int) -> None:
    cluster = Cluster()
    for _ in range(turns):
        cluster.now += data.draw(st.sampled_from([1.0, RECALL_S]))
        known = [each for each, _ in cluster.state.ledger]
        match data.draw(st.sampled_from(ACTIONS)):
            case "reserve":
                cluster.reserve(data.draw(holds()))
            case "ask":
                made = data.draw(strangers())
                if made.name not in cluster.state.pods:
                    cluster.ask(made)
            case "end" if cluster.state.pods:
                cluster.end(data.draw(st.sampled_from(sorted(cluster.state.pods))))
            case "read":
                cluster.read(1)
            case "owner" if known:
                seated(cluster, data.draw(st.sampled_from(known)))
            case "drop" if known:
                ending = data.draw(st.sampled_from(known))
                cluster.state.ledger.drop(ending.ref)
        assert cluster.unread or cluster.spare >= 0
    cluster.read()
    for each in [each for each, _ in cluster.state.ledger]:
        assert cluster.spare >= 0
        seated(cluster, each)
    assert cluster.spare >= 0


def seated(cluster: Cluster, made: Reservation) -> None:
    owner = cluster.owner_of(made)
    if cluster.state.ledger.phase(made.ref) is not Phase.ACTIVE:
        return
    if owner.name in cluster.state.pods:  # Its slot has come back, or another reservation has it.
        cluster.end(owner.name)
    # Borrowers go at once here, so that once Reserver has read all the second attempt is the last.
    for _ in range(2):
        cluster.read()
        if cluster.ask(owner):
            return
    pytest.fail(f"{owner.name} has no seat")
