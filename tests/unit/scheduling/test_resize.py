"""A running pod does not grow into room that is held for others."""

from dataclasses import replace

import pytest

from reserver.cluster.node import Node
from reserver.cluster.pod import Pod
from reserver.reservations.status import ShortNodes
from reserver.scheduling.bind import judge_bind
from reserver.scheduling.in_flight import PendingResize
from reserver.scheduling.resize import Subject, grow, judge_resize, judge_unseen, seen
from reserver.scheduling.state import State
from tests.builders import NOW, amounts, node, pod, requested, reservation, state_of

WORKER = node("worker-1", cpu="4", memory="8Gi")
HOLD = reservation("r", cpu="2")
WEB = replace(pod("web-0", node="worker-1", cpu="1"), revision=5)


def grown(cpu: str, web: Pod = WEB, **more: str) -> Pod:
    return replace(web, requests={"pods": 1} | amounts({"cpu": cpu} | more))


def subject(web: Pod = WEB) -> Subject:
    return Subject(web.name, web.uid, web.node, web.revision)


def let(cpu: str, state: State, web: Pod = WEB, **more: str) -> PendingResize:
    """Admit a resize."""
    pod = grown(cpu, web, **more)
    assert judge_resize(pod, state, NOW) is None
    return grow(pod, state)


def is_backed(state: State, hold: str = "r") -> bool:
    short, ledger = ShortNodes.of(state.snapshot), state.ledger
    return {r.ref.key: short.status(r, ledger).is_backed for r, _ in ledger}[hold]


@pytest.fixture
def state() -> State:
    state = state_of(WORKER, HOLD)
    state.pod_seen(WEB)
    return state


def test_what_is_free_beside_the_holds_may_be_had(state: State) -> None:
    assert judge_resize(grown("2"), state, NOW) is None
    assert judge_resize(grown("500m"), state, NOW) is None


def test_growth_into_held_room_is_refused_with_the_reservation_and_the_numbers(
    state: State,
) -> None:
    why = judge_resize(grown("3"), state, NOW)
    assert why is not None
    assert why.startswith(f"held by reservation {HOLD.ref}: node worker-1 has 1 of cpu beside")
    assert "the 2 that are held, and pod shop/web-0 needs 2 more" in why


def test_nothing_grows_into_room_that_will_be_held_again() -> None:
    owner, seat = pod("owner", cpu="2"), reservation("r", cpu="2")
    state = state_of(WORKER, seat, owner)
    state.pod_seen(WEB)
    state.assume(owner, "worker-1", (seat.identity,))
    assert judge_resize(grown("2"), state, NOW) is None
    why = judge_resize(grown("3"), state, NOW)  # The binding may fail.
    assert why is not None
    assert "node worker-1 has 1 of cpu beside the 2 that are held" in why
    assert judge_unseen(subject(), state, NOW) is not None
    state.confirm(owner.uid)
    assert judge_resize(grown("3"), state, NOW) is None  # That is the kubelet's business now.
    reusable = reservation("s", owners=("guest",), reusable=True, cpu="2")
    guest = pod("guest", node="worker-1", cpu="2", claims=[reusable])
    state = state_of(WORKER, reusable, guest)
    state.pod_seen(WEB)
    assert judge_resize(grown("2"), state, NOW) is None
    assert judge_resize(grown("3"), state, NOW) is not None  # The guest may end.


def test_what_nobody_holds_is_the_kubelets_business() -> None:
    state = state_of(WORKER)
    state.pod_seen(WEB)
    assert judge_resize(grown("9"), state, NOW) is None
    state = state_of(node("worker-1", cpu="4", memory="4Gi"), reservation("r", memory="4Gi"))
    state.pod_seen(WEB)
    assert judge_resize(grown("9"), state, NOW) is None


def test_a_hold_that_yields_to_the_pods_priority_is_not_in_its_way() -> None:
    state = state_of(WORKER, replace(HOLD, yields_above=5))
    important = replace(WEB, priority=10)
    state.pod_seen(important)
    assert judge_resize(grown("3", important), state, NOW) is None
    assert judge_resize(grown("5", important), state, NOW) is None
    assert judge_resize(grown("3"), state, NOW) is not None


def test_all_holds_that_are_due_are_in_its_way_however_many_begin_at_once() -> None:
    """A Filter call starts a bounded number of due holds; the judgement of a resize starts all."""
    many = (reservation(f"r{i}", node=f"n{i}", cpu="1", starts=NOW + 1) for i in range(600))
    state = state_of(WORKER, *many, reservation("mine", cpu="3", starts=NOW + 1))
    state.pod_seen(WEB)
    assert "held by" in (judge_resize(grown("4"), state, NOW + 2) or "")


@pytest.mark.parametrize("cpu", ["1", "500m"])
def test_where_something_cannot_be_read_a_pod_may_shrink_and_not_grow(
    state: State, cpu: str
) -> None:
    state.unreadable.note(("shop", "unreadable"), "worker-1")
    assert "cannot be read" in (judge_resize(grown("2"), state, NOW) or "")
    assert "cannot be read" in (judge_resize(grown("1", memory="1Gi"), state, NOW) or "")
    assert judge_resize(grown(cpu), state, NOW) is None
    state.ledger.drop(HOLD.ref)
    assert judge_resize(grown("9"), state, NOW) is None


def test_on_a_node_that_is_gone_nothing_grows_beside_a_hold(state: State) -> None:
    state.node_gone("worker-1")
    assert "cannot be read" in (judge_resize(grown("2"), state, NOW) or "")


def test_growth_that_passes_counts_until_the_watch_shows_it(state: State) -> None:
    let("2", state)
    assert requested(state, "worker-1") == 2000
    db = replace(pod("db-0", node="worker-1", cpu="0"), revision=6)
    state.pod_seen(db)
    assert judge_resize(grown("500m", db), state, NOW) is not None
    state.pod_seen(replace(grown("2"), revision=7))
    assert requested(state, "worker-1") == 2000
    state.pod_seen(replace(WEB, revision=8))  # And back.
    assert requested(state, "worker-1") == 1000


def test_what_a_pod_was_let_grow_is_gone_with_its_next_revision(state: State) -> None:
    """Refused by a quota, made up, or overtaken by another write: it is the same."""
    let("2", state)
    state.pod_seen(replace(WEB, labels={"was": "labelled"}, revision=6))
    assert requested(state, "worker-1") == 1000
    assert len(state.pending_resizes) == 0


def test_growth_that_never_came_is_forgotten(state: State) -> None:
    first = let("1500m", state)
    second = let("2", state)
    state.ungrow(first)  # Its time is up; the second one's is not.
    assert requested(state, "worker-1") == 2000
    state.ungrow(second)
    assert requested(state, "worker-1") == 1000


def test_an_equal_growth_that_passed_later_does_not_end_with_the_first(state: State) -> None:
    requests = grown("2").requests  # Equal bytes are read as one and the same value.
    first = grow(replace(WEB, requests=requests), state)
    second = grow(replace(WEB, requests=requests), state)
    state.ungrow(first)
    assert requested(state, "worker-1") == 2000
    state.ungrow(second)
    assert requested(state, "worker-1") == 1000


def test_of_two_that_passed_either_may_be_written(state: State) -> None:
    let("2", state)
    let("1500m", state)
    assert requested(state, "worker-1") == 2000


@pytest.mark.parametrize("made_up", ["evil.io/a", "hugepages-1Gi"])
def test_growth_that_no_node_offers_is_no_claim(state: State, made_up: str) -> None:
    """Each review may name others."""
    assert let("2", state, WEB, **{made_up: "1"}).more == {"cpu": 1000}
    assert let("1", state, WEB, **{f"{made_up}x": "1"}).more == {"cpu": 1000}
    state.node_seen(Node(name="worker-2", allocatable={made_up: 1}))
    assert let("1", state, WEB, **{made_up: "1"}).more == {"cpu": 1000, made_up: 1}


def test_growth_counts_only_as_far_as_there_is_room_that_nobody_holds(state: State) -> None:
    let("1", state, memory="100Ti")  # Of which nobody holds any: the kubelet's to defer.
    assert requested(state, "worker-1", "memory") == 8 * 2**30
    assert is_backed(state)
    state.ledger.put(reservation("late", owners=("b",), memory="1Gi"))
    assert not is_backed(state, "late")  # Perhaps it was written, and the watch shows it next.
    owner = pod("owner", cpu="2")
    state.pod_seen(owner)
    assert judge_bind(owner, "worker-1", state, NOW).refusal is None
    state.pod_seen(replace(WEB, revision=6))
    assert is_backed(state, "late")


def test_growth_that_passed_gives_way_to_what_the_watch_shows(state: State) -> None:
    let("2", state)
    state.pod_seen(pod("of-another-scheduler", node="worker-1", cpu="600m"))
    assert (requested(state, "worker-1"), is_backed(state)) == (2000, True)
    state.node_seen(node("worker-1", cpu="3800m", memory="8Gi"))
    assert (requested(state, "worker-1"), is_backed(state)) == (1800, True)
    owner = pod("owner", cpu="2")
    state.pod_seen(owner)
    assert judge_bind(owner, "worker-1", state, NOW).refusal is None


def test_growth_takes_the_room_that_other_growth_leaves() -> None:
    state = state_of(WORKER)
    db = replace(pod("db-0", node="worker-1", cpu="1"), revision=6)
    for each in (WEB, db):
        state.pod_seen(each)
    first = let("3", state)
    let("3", state, db)  # Nobody holds any, and there is none left: the kubelet's to defer.
    assert requested(state, "worker-1") == 4000
    state.ungrow(first)
    assert requested(state, "worker-1") == 4000
    state.pod_seen(replace(db, revision=7))
    assert requested(state, "worker-1") == 2000


def test_growth_into_room_that_yields_is_promised_once() -> None:
    soft = replace(reservation("soft", owners=("b",), cpu="1"), yields_above=5)
    state = state_of(WORKER, HOLD, soft)
    web, db = (
        replace(pod(each, node="worker-1", cpu="0", priority=10), revision=5)
        for each in ("web-0", "db-0")
    )
    for each in (web, db):
        state.pod_seen(each)
    let("2", state, web)  # One CPU that is free, and the one that yields.
    assert (is_backed(state), is_backed(state, "soft")) == (True, True)
    assert judge_resize(grown("1", db), state, NOW) is not None
    late = pod("late", cpu="1", priority=10)
    state.pod_seen(late)
    assert judge_bind(late, "worker-1", state, NOW).refusal is not None
    state.pod_seen(replace(web, revision=6))
    assert judge_resize(grown("1", db), state, NOW) is None
    assert judge_bind(late, "worker-1", state, NOW).refusal is None


def test_nothing_stays_of_a_pod_that_is_gone_or_has_ended(state: State) -> None:
    growth = let("2", state)
    state.pod_gone(WEB.name)
    state.ungrow(growth)
    assert requested(state, "worker-1") == 0
    state.pod_seen(WEB)  # Only a test has a second pod of this UID.
    assert requested(state, "worker-1") == 1000
    let("2", state)
    state.pod_seen(replace(WEB, finished=True))
    assert (requested(state, "worker-1"), len(state.pending_resizes)) == (0, 0)


def test_no_pod_is_bound_into_room_that_another_grows_into(state: State) -> None:
    let("2", state)
    late = pod("late", cpu="500m")
    state.pod_seen(late)
    assert judge_bind(late, "worker-1", state, NOW).refusal is not None


@pytest.mark.parametrize(
    "change",
    [
        {"uid": "uid-of-before"},
        {"name": pod("another").name},
        {"name": pod("web-0", namespace="bank").name},
        {"node": "worker-2"},
        {"revision": 4},
        {"revision": 6},
    ],
    ids=str,
)
def test_a_resize_is_about_the_pod_that_the_watch_shows_or_about_none(
    state: State, change: dict[str, object]
) -> None:
    assert seen(subject(), state) == WEB
    assert seen(subject()._replace(**change), state) is None  # type: ignore[arg-type]


def test_a_pod_that_is_not_seen_as_it_is_may_be_resized_where_nothing_is_held(
    state: State,
) -> None:
    why = judge_unseen(subject()._replace(revision=9), state, NOW) or ""
    assert "has not seen pod shop/web-0 of node worker-1 as it is now (resourceVersion 9)" in why
    assert "try again" in why
    state.ledger.drop(HOLD.ref)
    assert judge_unseen(subject()._replace(revision=9), state, NOW) is None


def test_an_owner_grows_within_its_own_reusable_slot() -> None:
    """Its growth waits for the room that others use, as for any room that nobody holds."""
    seat = reservation("r", reusable=True, cpu="4")
    owner = pod("owner", node="worker-1", cpu="2", claims=[seat])
    state = state_of(WORKER, seat, owner, pod("other", node="worker-1", cpu="2"))
    assert judge_resize(grown("3", owner), state, NOW) is None
    assert judge_resize(grown("3", pod("other", node="worker-1")), state, NOW) is not None


def test_lent_room_is_named_once() -> None:
    state = state_of(WORKER, reservation("r", lends_below=5, cpu="2"))
    state.pod_seen(WEB)
    assert "the 2 that are held" in (judge_resize(grown("4"), state, NOW) or "")
