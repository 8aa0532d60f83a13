import dataclasses

import pytest

from reserver.extender.cluster_watches import pod_view
from reserver.reservations.enums import Phase
from reserver.reservations.reservation import Reservation, Written
from reserver.scheduling.bind import judge_bind
from reserver.scheduling.state import State
from tests.builders import NOW, held, name, node, pod, ref, requested, reservation, state_of
from tests.listening import Recorded

WORKER = node("worker-1", cpu="8")
SEAT = reservation("r", cpu="2")
OWNER = pod("owner", cpu="2")
BOUND = dataclasses.replace(OWNER, node="worker-1", claims=frozenset({SEAT.identity}))
STRAY = dataclasses.replace(OWNER, node="worker-1")


@pytest.fixture
def state() -> State:
    return state_of(WORKER, SEAT)


def assume(state: State) -> None:
    state.assume(OWNER, "worker-1", (SEAT.identity,))


def amounts(state: State) -> tuple[int, int]:
    """Return the requested and the held millicores of the node."""
    return requested(state, "worker-1"), held(state, "worker-1")


SEATED = (2000, 0)
WAITING = (0, 2000)
GONE = (0, 0)


@pytest.mark.parametrize("outcome", ["confirmed", "shown", "failed"])
def test_what_a_slot_has_beyond_its_pod_is_free_once_the_binding_is_written(outcome: str) -> None:
    heard = Recorded()
    seat, owner = reservation("r", owners=("owner",), cpu="3"), pod("owner", cpu="1")
    state = State(heard)
    state.node_seen(node("worker-1", cpu="4"))
    state.pod_seen(owner)
    state.ledger.put(seat)
    state.is_complete = True
    state.assume(owner, "worker-1", (seat.identity,))
    assert (requested(state, "worker-1"), held(state, "worker-1")) == (3000, 0)
    heard.freed.clear()
    if outcome == "confirmed":
        state.confirm(owner.uid)
    elif outcome == "shown":
        state.pod_seen(dataclasses.replace(owner, node="worker-1"))
    else:
        state.forget(owner.uid)
    taken = (0, 3000) if outcome == "failed" else (1000, 0)
    assert (requested(state, "worker-1"), held(state, "worker-1")) == taken
    assert heard.freed == ["worker-1"] * (1 if outcome == "failed" else 2)


def test_the_rest_of_a_slot_takes_nothing_that_stands_before_it() -> None:
    first = reservation("first", owners=("a",), cpu="2")
    second, owner = reservation("second", owners=("owner",), cpu="3"), pod("owner", cpu="1")
    state = state_of(node("worker-1", cpu="4"), first, second, owner)
    state.assume(owner, "worker-1", (second.identity,))
    # Of the 3 CPUs it has never had more than the 2 that the first one leaves.
    assert (requested(state, "worker-1"), held(state, "worker-1")) == (2000, 2000)


WAITS, UNDER_WAY, LANDED, ENDED = "waits", "is being bound", "is bound", "is over"
TAKEN = {
    WAITS: (WAITING, Phase.ACTIVE),
    UNDER_WAY: (SEATED, Phase.CLAIMED),
    LANDED: (SEATED, Phase.CLAIMED),
    ENDED: (GONE, Phase.CLAIMED),
}
ORDERS = {
    WAITS: {
        "pending": ("pending",),
        "gone before it was known": ("gone",),
        "refused": ("pending", "assume", "forget"),
        "deleted, then refused": ("pending", "assume", "gone", "forget"),
        "never shown, then refused": ("assume", "forget"),
        "replaced by another pod, then refused": ("pending", "assume", "replaced", "forget"),
    },
    UNDER_WAY: {
        "decided": ("assume",),
        "known, decided": ("pending", "assume"),
        "an older event after it": ("assume", "pending"),
        "confirmed, not shown": ("pending", "assume", "confirm"),
        "confirmed, an older event after it": ("pending", "assume", "confirm", "pending"),
    },
    LANDED: {
        "confirmed, then shown": ("assume", "confirm", "bound"),
        "shown before it was confirmed": ("assume", "bound", "confirm"),
        "an older event after the decision": ("assume", "pending", "confirm", "bound"),
        "an older event after the confirmation": ("assume", "confirm", "pending", "bound"),
        "known before": ("pending", "assume", "confirm", "bound"),
        "shown twice": ("assume", "confirm", "bound", "bound"),
        "shown, then reported as failed": ("assume", "bound", "forget"),
        "never decided here, and reported as failed": ("bound", "forget"),
        "bound by an instance before this one": ("bound",),
    },
    ENDED: {
        "bound, then deleted": ("assume", "confirm", "bound", "gone"),
        "bound and deleted before the answer": ("assume", "bound", "gone", "confirm"),
        "deleted before it was seen as bound": ("pending", "assume", "confirm", "gone"),
        "deleted while the API server was asked": ("pending", "assume", "gone", "confirm"),
        "gone before it was ever shown": ("assume", "confirm"),
        "finished": ("assume", "confirm", "bound", "finished"),
        "finished, then deleted": ("assume", "confirm", "bound", "finished", "gone"),
    },
}


@pytest.mark.parametrize(
    ("pod_is", "order"),
    [
        pytest.param(pod_is, order, id=f"{pod_is}: {name}")
        for pod_is, orders in ORDERS.items()
        for name, order in orders.items()
    ],
)
def test_a_pod_and_its_slot_count_once_in_whatever_order_they_become_known(
    state: State, pod_is: str, order: tuple[str, ...]
) -> None:
    play(state, order)
    assert (amounts(state), state.ledger.phase(SEAT.ref)) == TAKEN[pod_is]
    assert state.ledger.seats(pod("owner")) == ((SEAT,) if pod_is == WAITS else ())
    assert (state.assumption(OWNER.uid) is not None) is (pod_is == UNDER_WAY)


def test_the_slot_of_a_pod_that_is_deleted_is_held_until_its_binding_is_answered(
    state: State,
) -> None:
    """kube-scheduler gives the room to other pods at once, and the binding usually fails."""
    play(state, ("pending", "assume", "gone"))
    assert amounts(state) == WAITING
    stranger = pod("stranger", cpu="7")
    assert judge_bind(stranger, "worker-1", state, NOW).refusal is not None
    play(state, ("forget",))
    assert amounts(state) == WAITING


def play(state: State, order: tuple[str, ...]) -> None:
    steps = {
        "pending": lambda: state.pod_seen(OWNER),
        "assume": lambda: assume(state),
        "confirm": lambda: state.confirm(OWNER.uid),
        "forget": lambda: state.forget(OWNER.uid),
        "bound": lambda: state.pod_seen(BOUND),
        "finished": lambda: state.pod_seen(dataclasses.replace(BOUND, finished=True)),
        "gone": lambda: state.pod_gone(OWNER.name),
        "replaced": lambda: state.pod_seen(dataclasses.replace(OWNER, uid="uid-new")),
    }
    for step in order:
        steps[step]()


def test_a_pod_replaced_by_another_of_its_name_takes_nothing_any_more(state: State) -> None:
    state.pod_seen(pod("a", uid="uid-1", node="worker-1", cpu="3"))
    state.pod_seen(pod("a", uid="uid-2", cpu="1"))
    assert requested(state, "worker-1") == 0
    state.pod_seen(pod("a", uid="uid-2", node="worker-1", cpu="1"))
    assert requested(state, "worker-1") == 1000
    state.pod_gone(name("a"))
    assert requested(state, "worker-1") == 0


def test_a_bound_pod_that_is_resized_takes_what_it_takes_now(state: State) -> None:
    state.pod_seen(pod("a", node="worker-1", cpu="3"))
    state.pod_seen(pod("a", node="worker-1", cpu="1"))
    assert requested(state, "worker-1") == 1000


def test_a_pod_bound_by_another_scheduler_ends_every_reservation_that_names_it() -> None:
    elsewhere = reservation("elsewhere", node="worker-2", cpu="2")
    later = reservation("later", starts=3e9, cpu="2")
    others = reservation("others", owners=("other",), cpu="2")
    state = state_of(WORKER, node("worker-2", cpu="8"), SEAT, elsewhere, later, others, OWNER)
    state.pod_seen(STRAY)
    phases = {r.ref.key: phase.value for r, phase in state.ledger}
    assert phases == {
        "r": "Claimed",
        "elsewhere": "Claimed",
        "later": "Claimed",
        "others": "Active",
    }


def test_a_pod_first_seen_as_bound_ends_what_names_it_too(state: State) -> None:
    state.pod_seen(STRAY)
    assert amounts(state) == SEATED


def test_until_all_is_listed_a_bound_pod_ends_only_what_its_binding_names() -> None:
    later = reservation("later", cpu="1")
    state = State()
    state.node_seen(WORKER)
    state.ledger.put(SEAT)
    state.ledger.put(later)
    state.pod_seen(BOUND, listed=True)
    assert state.ledger.phase(SEAT.ref) is Phase.CLAIMED
    assert state.ledger.phase(later.ref) is Phase.ACTIVE


@pytest.mark.parametrize("written", [8, 12])
@pytest.mark.parametrize("is_own", [True, False])
def test_a_binding_that_a_list_shows_ends_only_what_was_there_before_the_gap(
    state: State, *, is_own: bool, written: int
) -> None:
    """Bound at 10, and changed at 14: at 12 somebody reserved for the next pod of that name."""
    pending = dataclasses.replace(OWNER, revision=5)
    state.pod_seen(pending)
    if is_own:
        state.assume(pending, "worker-2", ())
        state.confirm(pending.uid)
    again = reservation("again", cpu="1")
    state.ledger.put(again, Written(written, written))
    pod_view(state).list_began(9)
    state.pod_seen(dataclasses.replace(pending, node="worker-2", revision=14), listed=True)
    assert state.ledger.phase(again.ref) is (Phase.CLAIMED if written == 8 else Phase.ACTIVE)


def test_a_reservation_written_for_a_pod_that_is_bound_already_is_not_ended_by_its_changes(
    state: State,
) -> None:
    state.pod_seen(STRAY)
    again = reservation("again", cpu="1")
    state.ledger.put(again)
    state.pod_seen(dataclasses.replace(STRAY, priority=5))
    assert state.ledger.phase(ref("again")) is Phase.ACTIVE


def test_what_a_pod_that_is_no_owner_says_it_claimed_does_not_count(state: State) -> None:
    state.pod_seen(pod("intruder", node="worker-1", claims=[SEAT], cpu="1"))
    assert amounts(state) == (1000, 2000)


def test_what_an_unbound_pod_says_it_claimed_does_not_count(state: State) -> None:
    state.pod_seen(pod("owner", claims=[SEAT], cpu="2"))
    assert amounts(state) == WAITING


def test_a_binding_decided_here_but_made_by_another_scheduler_counts_where_it_happened() -> None:
    state = state_of(WORKER, node("worker-2", cpu="8"), SEAT, OWNER)
    assume(state)
    state.pod_seen(dataclasses.replace(OWNER, node="worker-2"))
    state.forget(OWNER.uid)
    assert requested(state, "worker-1") == 0
    assert requested(state, "worker-2") == 2000
    assert state.ledger.phase(SEAT.ref) is Phase.CLAIMED


def test_a_node_that_is_gone_keeps_its_holds_for_when_it_comes_back(state: State) -> None:
    state.node_gone("worker-1")
    assert not state.snapshot.has_node("worker-1")
    state.node_seen(WORKER)
    assert amounts(state) == WAITING


@pytest.mark.parametrize("order", [("pending", "assume", "gone", "confirm"), ("assume", "confirm")])
def test_a_reservation_written_anew_after_its_pod_came_and_went_holds(
    state: State, order: tuple[str, ...]
) -> None:
    play(state, order)
    state.ledger.drop(SEAT.ref)
    state.ledger.put(SEAT)
    assert amounts(state) == WAITING


def test_the_ledger_is_the_same_for_whoever_starts_later(state: State) -> None:
    play(state, ("pending", "assume", "confirm", "bound"))
    fresh = State()
    fresh.pod_seen(BOUND)
    fresh.ledger.put(SEAT)
    fresh.node_seen(WORKER)
    assert amounts(fresh) == amounts(state)
    assert _phases(fresh) == _phases(state)


def _phases(state: State) -> list[tuple[Reservation, Phase]]:
    return list(state.ledger)
