"""Claims of more pods than a status names: a restart forgets none, and counts none twice."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeAlias

import pytest

from reserver.base.schedule import Schedule
from reserver.cluster.pod import Pod
from reserver.k8s.objects.limits import MOST_CLAIMS_RECORDED
from reserver.reservations.digest import is_mark, mark
from reserver.reservations.entry import identified
from reserver.reservations.recurrence import Recurrence
from reserver.reservations.reservation import Ref, Reservation, Written
from reserver.reservations.status import ShortNodes
from reserver.scheduling.state import State
from reserver.stores.configmap.status_codec import recorded_claims, show
from reserver.stores.entries import Entries
from reserver.stores.object import status_codec as object_status
from reserver.stores.object.codec import ReservationStatus, StatusClaim
from tests.builders import NOW, node, parts, pod, reservation, rule, state_of

pytestmark = pytest.mark.long

MORE = 60
COUNT = MOST_CLAIMS_RECORDED + MORE
SLOTS = COUNT + 40
NODES = ("worker-1", "worker-2", "worker-3")

Record: TypeAlias = tuple[dict[str, int], dict[str, str]]


def jobs(*nodes: str) -> Reservation:
    """Return a slot for each of many pods, on one node or on several."""
    common: dict[str, Any] = {"owners": (), "rules": (rule(app="a"),), "cpu": "1", "slots": SLOTS}
    if len(nodes) == 1:
        return reservation("jobs", node=nodes[0], **common)
    share, rest = divmod(SLOTS, len(nodes))
    placed = {each: share + (index < rest) for index, each in enumerate(nodes)}
    return reservation("jobs", node="", placed=placed, **common)


def owner(number: int, claimed: Reservation, nodes: tuple[str, ...]) -> Pod:
    made = pod(f"job-{number}", cpu="1", labels={"app": "a"}, node=nodes[number % len(nodes)])
    return replace(made, claims=frozenset({claimed.identity}), revision=10 + number)


def began(written: Reservation, when: Written, pods: Iterable[Pod] = ()) -> State:
    state = state_of(*(node(name, cpu="4000", pods="9999") for name in NODES), *pods)
    state.ledger.put(written, when)
    return state


def in_configmap(state: State, written: Reservation) -> Record:
    """Return the record of a reservation in a companion."""
    status = ShortNodes.of(state.snapshot)
    text = show(Entries((written,)), lambda each: status.status(each, state.ledger))
    ((_, entry),) = recorded_claims(text)
    return entry.recorded()


def in_object(state: State, written: Reservation) -> Record:
    """Return the record of a reservation in the status of an object."""
    ledger, ref = state.ledger, written.ref
    reported = ShortNodes.of(state.snapshot).status(written, ledger)
    landed = ledger.landed(ref)
    claims = [StatusClaim("", uid, landed.get(uid, ""), "") for uid in ledger.claimants(ref)]
    said: ReservationStatus = object_status.valid(written, reported, claims, None, 1, NOW)
    assert said.claimed == len(claims)
    nodes = object_status.recorded(said)
    return dict.fromkeys(nodes, SLOTS + 100), {uid: on for uid, on in nodes.items() if on}


def restarted(written: Reservation, record: Record, pods: Iterable[Pod] = ()) -> State:
    """Return a state that has read a record, and the pods that are left."""
    state = began(written, Written(0, 5), pods)
    claims, landed = record
    state.ledger.past.recall(written.ref, written.digest, claims, landed, SLOTS + 100)
    state.ledger.past.end()
    return state


def held(state: State) -> dict[str, int]:
    return {name: state.ledger.held_on(name).get("cpu", 0) // 1000 for name in NODES}


Recorded = Callable[[State, Reservation], Record]
forms = pytest.mark.parametrize("recorded", [in_configmap, in_object])
places = pytest.mark.parametrize("nodes", [NODES[:1], NODES], ids=["one node", "several"])


@forms
@places
@pytest.mark.parametrize("gone", [COUNT, COUNT // 2, 0], ids=["all gone", "half of them", "none"])
def test_a_restart_forgets_no_claim_and_counts_none_twice(
    recorded: Recorded, nodes: tuple[str, ...], gone: int
) -> None:
    written = jobs(*nodes)
    before = began(written, Written(5, 5))
    pods = [owner(number, written, nodes) for number in range(COUNT)]
    for each in pods:
        before.pod_seen(each)
    for each in pods[:gone]:
        before.pod_gone(each.name)
    record = recorded(before, written)
    for left in (pods[gone:], (), pods[gone + 10 :]):
        after = restarted(written, record, left)
        assert after.ledger.claimed(written.ref) == COUNT
        assert held(after) == held(before)
        # Another Reserver recorded these claims before the watch showed the pods.
        for each in pods[gone:]:
            after.pod_seen(each)
        assert after.ledger.claimed(written.ref) == COUNT
        for each in pods[gone:]:
            after.pod_gone(each.name)
        assert after.ledger.claimed(written.ref) == COUNT
        assert held(after) == held(before)


@forms
def test_what_is_recorded_is_the_same_whoever_records_it(recorded: Recorded) -> None:
    """Otherwise two Reservers would overwrite the record in turn for ever."""
    written = jobs(*NODES)
    first = began(written, Written(5, 5))
    for number in range(COUNT):
        first.pod_seen(owner(number, written, NODES))
    record = recorded(first, written)
    second = restarted(written, record, [owner(n, written, NODES) for n in range(0, COUNT, 2)])
    assert recorded(second, written) == record
    for state in (first, second):
        for number in range(COUNT, COUNT + 20):
            state.pod_seen(owner(number, written, NODES))
    assert recorded(first, written) == recorded(second, written)
    assert recorded(first, written) != record


def test_a_slot_that_is_known_by_its_mark_is_not_claimed_again() -> None:
    written = jobs("worker-1")
    mine, other = owner(1, written, NODES[:1]), owner(2, written, NODES[:1])
    after = restarted(written, ({mark(mine.uid): 0}, {}))
    assert after.ledger.claimed(written.ref) == 1
    after.ledger.past.recall_binding(mine, exact=True)
    assert after.ledger.claimed(written.ref) == 1
    after.pod_seen(mine)
    assert list(after.ledger.claiming(written.ref)) == [mine.uid]
    after.pod_seen(other)
    assert after.ledger.claimed(written.ref) == 2


def test_a_pod_that_has_a_slot_by_its_mark_takes_none_of_another_reservation() -> None:
    """A pod that a rule matches has one slot, and forges no second one after a restart."""
    written = jobs("worker-1")
    second = replace(written, ref=Ref(written.ref.namespace, "store", "second"))
    mine = owner(1, written, NODES[:1])
    after = restarted(written, ({mark(mine.uid): 0}, {}))
    after.ledger.put(second, Written(5, 5))
    after.pod_seen(replace(mine, claims=mine.claims | {second.identity}))
    assert [after.ledger.claimed(ref) for ref in (written.ref, second.ref)] == [1, 0]


def test_marks_are_no_uids_and_their_own() -> None:
    uids = [f"uid-{number}" for number in range(10_000)]
    marks = {mark(uid) for uid in uids}
    assert len(marks) == len(uids)
    assert all(map(is_mark, marks))
    assert not any(map(is_mark, uids))
    assert {mark(each) for each in marks} == marks


DAILY = Recurrence(schedule=Schedule("0 0 * * *", 86_400.0))


@forms
def test_an_occurrence_keeps_each_of_its_claims_and_none_of_the_last(recorded: Recorded) -> None:
    written = identified(replace(jobs(*NODES), recurrence=DAILY))
    before = began(written, Written(5, 5))
    shown = before.ledger.get(written.ref)
    assert shown is not None
    pods = [owner(number, shown, NODES) for number in range(COUNT)]
    for each in pods:
        before.pod_seen(each)
    for each in pods[: COUNT // 2]:
        before.pod_gone(each.name)
    claims, landed = recorded(before, shown)
    after = began(written, Written(0, 5), pods[COUNT // 2 :])
    after.ledger.past.recall(written.ref, shown.digest, claims, landed, SLOTS + 100)
    after.ledger.past.end()
    assert after.ledger.claimed(written.ref) == before.ledger.claimed(written.ref) == COUNT
    assert held(after) == held(before)
    for state in (before, after):
        state.ledger.advance(NOW + 86_400)
        assert state.ledger.claimed(written.ref) == 0
        assert sum(held(state).values()) == SLOTS


def test_whole_nodes_know_each_of_a_thousand_owners_and_stay_held() -> None:
    whole = replace(jobs(*NODES), resources={"nodes": 1}, reusable=True, slots=len(NODES))
    written = identified(replace(whole, placed=parts(dict.fromkeys(NODES, 1))))
    before = began(written, Written(5, 5))
    pods = [owner(number, written, NODES) for number in range(COUNT)]
    for each in pods:
        before.pod_seen(each)
    assert len(before.ledger.claiming(written.ref)) == COUNT
    left = pods[::3]  # All of one node.
    after = restarted(written, ({}, {}), left)
    assert (before.ledger.claimed(written.ref), after.ledger.claimed(written.ref)) == (3, 1)
    for each in left:
        after.pod_gone(each.name)
    assert after.ledger.claimed(written.ref) == 0
    assert all(after.ledger.held_on(name).get("nodes") == 1 for name in NODES)


def test_slots_that_are_replaced_are_as_many_as_before_a_restart() -> None:
    free, most = 20, COUNT + 10
    refill = replace(jobs(*NODES), slots=free, refill_up_to=most, reusable=True)
    written = identified(replace(refill, placed=parts(dict.fromkeys(NODES, 400))))
    before = began(written, Written(5, 5))
    pods = [owner(number, written, NODES) for number in range(COUNT)]
    for each in pods:
        before.pod_seen(each)
    assert sum(held(before).values()) == most - COUNT
    after = restarted(written, ({}, {}), pods)
    assert after.ledger.claimed(written.ref) == COUNT
    assert held(after) == held(before)
    for each in pods[:15]:
        after.pod_gone(each.name)
    assert after.ledger.claimed(written.ref) == COUNT - 15
    assert sum(held(after).values()) == free
