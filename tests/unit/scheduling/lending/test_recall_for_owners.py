"""Recalls only where the owner could use the room."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reserver.cluster.constraints import NodeTerm, Taint
from reserver.cluster.labels import equals
from reserver.cluster.node import Node
from reserver.cluster.pod import ClaimUse, Pod, PodName
from reserver.cluster.storage import Volume, VolumeClaim
from reserver.scheduling.recall import RECALL_S, recalls_for_owners, still_wanted
from reserver.scheduling.verdicts import Nominate, Recall
from tests.builders import NOW, node, pod, ref, reservation
from tests.unit.scheduling.lending.loans import (
    ELSEWHERE,
    LENT,
    OWNER,
    W1,
    W2,
    borrower,
    lending,
    owner_asks,
    recalled_by,
    wanted_by,
)


def of_zone(zone: str) -> Volume:
    reach = NodeTerm(labels=equals({"zone": zone}))
    return Volume(name="pv", node_terms=(reach,))


TAINT = Taint("dedicated", "db", "NoSchedule")


@pytest.mark.parametrize(
    ("on", "asking"),
    [
        pytest.param(replace(W1, unschedulable=True), OWNER, id="its node is cordoned"),
        pytest.param(replace(W1, taints=(TAINT,)), OWNER, id="its node has a taint"),
        pytest.param(W1, ELSEWHERE, id="it selects another node"),
        pytest.param(
            W1, replace(OWNER, volume_claims=(ClaimUse("data"),)), id="its volume is elsewhere"
        ),
    ],
)
def test_nobody_goes_for_an_owner_that_could_not_be_there(on: Node, asking: Pod) -> None:
    """Borrowers were deleted again and again, and the node lent nothing meanwhile."""
    state = lending(W1, LENT, borrower("a", "8", on="worker-1"))
    state.snapshot.storage.claims[PodName("shop", "data")] = VolumeClaim(
        name=PodName("shop", "data"), is_bound=True, volume="pv"
    )
    state.snapshot.storage.volumes["pv"] = of_zone("b")
    assert recalled_by(owner_asks(state)) == {"a"}
    state.snapshot.lending.reopen(NOW + RECALL_S)
    state.node_seen(on)
    verdict = owner_asks(state, asking=asking)
    assert (verdict.effects, verdict.recalled) == ((), "")
    assert wanted_by(state, asking) == set()


def test_a_recall_that_was_put_off_is_judged_again() -> None:
    state = lending(W1, LENT, borrower("a", "4", on="worker-1"), borrower("b", "4", on="worker-1"))
    (effect,) = owner_asks(state).effects
    assert isinstance(effect, Recall)
    assert still_wanted(effect, state) == effect
    assert still_wanted(Nominate(OWNER, "worker-1"), state) == Nominate(OWNER, "worker-1")
    state.pod_gone(pod("a").name)
    assert still_wanted(effect, state) is None
    state.pod_seen(borrower("c", "4", on="worker-1"))
    now = still_wanted(effect, state)
    assert isinstance(now, Recall)
    assert len(now.borrowers) == 1
    state.pod_seen(replace(OWNER, uid="another"))
    assert still_wanted(effect, state) is None
    state.pod_seen(OWNER)
    state.ledger.drop(ref("lent"))
    assert still_wanted(effect, state) is None


def test_a_free_seat_where_an_owner_could_not_be_leaves_it_the_borrowed_one() -> None:
    two = reservation("lent", node="", placed={"worker-1": 1, "worker-2": 1}, slots=2, cpu="4")
    full = borrower("a", "8", on="worker-2")
    state = lending(replace(W1, unschedulable=True), W2, replace(two, lends_below=100), full)
    assert wanted_by(state) == {"a"}


def test_borrowers_stay_where_a_stranger_has_what_the_owner_lacks() -> None:
    gpus = node("worker-1", cpu="8", gpu="1")
    stranger = pod("s", node="worker-1", gpu="1")
    seat = reservation("lent", lends_below=100, cpu="4", gpu="1")
    state = lending(gpus, seat, stranger, borrower("a", "8", on="worker-1"))
    assert wanted_by(state, pod("owner", cpu="4", gpu="1")) == set()


def test_an_owner_whom_kube_scheduler_asks_nobody_about_gets_its_seat_back() -> None:
    state = lending(W1, LENT, borrower("a", "8", on="worker-1"))
    state.pod_seen(OWNER)
    assert list(filter(None, recalls_for_owners(state, {}))) == []
    assert wanted_by(state) == {"a"}
    assert wanted_by(lending(W1, LENT, borrower("a", "4", on="worker-1"))) == set()
    assert wanted_by(state, terminating=True) == set()
    assert wanted_by(state, pod("stranger", cpu="4")) == set()


def test_an_owner_with_a_free_seat_needs_nobody_to_go() -> None:
    two = reservation("lent", node="", placed={"worker-1": 1, "worker-2": 1}, slots=2, cpu="4")
    full = borrower("a", "8", on="worker-1")
    state = lending(W1, W2, replace(two, lends_below=100), full)
    assert wanted_by(state) == set()
    state.pod_seen(borrower("b", "8", on="worker-2"))
    assert wanted_by(state) == {"a"}
