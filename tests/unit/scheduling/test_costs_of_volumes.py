"""The cost of one pod's volumes for others; looks at claims are counted, not timed."""

from dataclasses import replace
from typing import Any

import pytest

from reserver.base.pacer import outcome
from reserver.cluster.pod import ClaimUse, PodName
from reserver.cluster.storage import Volume, VolumeClaim
from reserver.reservations.placement import Part
from reserver.reservations.reservation import Reservation
from reserver.scheduling.node_limits import too_many
from reserver.scheduling.placement import placing
from reserver.scheduling.state import State
from reserver.scheduling.suitability import suits
from tests.builders import NAMESPACE, node, pod, reservation, state_of

NODES = [f"n{number}" for number in range(350)]


class Claims(dict[PodName, VolumeClaim]):
    """The volume claims of a cluster, which count how often one is looked up."""

    looks = 0

    def get(self, *asked: Any) -> Any:
        self.looks += 1
        return super().get(*asked)


@pytest.fixture
def claims() -> Claims:
    return Claims()


@pytest.fixture
def full(claims: Claims) -> State:
    """Return a cluster whose nodes have each attached the one volume that they can."""
    state = state_of(*(node(name, cpu="4") for name in NODES))
    storage = state.snapshot.storage
    storage.claims = claims
    for name in ("own", *NODES):
        claim = PodName(NAMESPACE, name)
        claims[claim] = VolumeClaim(name=claim, volume=name, is_bound=True)
        storage.volumes[name] = Volume(name=name, driver="disks", handle=name)
    for name in NODES:
        storage.attachable[name] = {"disks": 1}
        state.pod_seen(replace(pod(f"p{name}", node=name), volume_claims=(ClaimUse(name),)))
    claims.looks = 0
    return state


def seat(**fields: Any) -> Reservation:
    return replace(reservation("seat", node="", cpu="1"), volume_claims=("own",), **fields)


def test_the_volumes_of_a_cluster_are_counted_few_nodes_at_a_time(
    full: State, claims: Claims
) -> None:
    """On 5,000 nodes with 50,000 volumes one step once took 200 ms."""
    looks, before = [], 0
    search = placing(seat(), 1, full)
    for _ in search:
        looks.append(claims.looks - before)
        before = claims.looks
    assert sum(looks) >= len(NODES)
    assert max(looks) <= 102


def test_a_seat_hears_that_no_node_can_attach_its_volumes(full: State) -> None:
    assert outcome(placing(seat(), 1, full)).why.endswith("350 node(s) exceed max volume count.")


def test_the_volumes_of_one_node_are_counted_alone(full: State, claims: Claims) -> None:
    assert too_many(seat(), full, ["n7"]) == {"n7"}
    assert not suits(seat(placed=(Part("n7", 1),)), full).is_allowed
    assert claims.looks <= 6


def test_volumes_of_one_handle_count_once_as_in_kube_scheduler(full: State) -> None:
    storage = full.snapshot.storage
    storage.volumes["own"] = replace(storage.volumes["own"], handle="n7")
    assert too_many(seat(), full, NODES) == {*NODES} - {"n7"}


def test_a_pod_that_went_has_its_volumes_no_longer(full: State) -> None:
    full.pod_gone(PodName(NAMESPACE, "pn7"))
    assert too_many(seat(), full, ["n7", "n8"]) == {"n8"}
