"""Borrowers are deleted where a hold lacks their room in two passes."""

from collections.abc import Sequence
from dataclasses import replace

from reserver.base.pacer import Pacer
from reserver.cluster.pod import Pod
from reserver.extender.recaller import OWNERS_S, Recaller
from reserver.scheduling.pod_events import PodEvent
from reserver.scheduling.recall import RECALL_S
from reserver.scheduling.state import State
from tests.builders import BORROWER, NOW, at, node, pod, reservation
from tests.unit.k8s.fakes import NO_ANSWER


async def always() -> bool:
    return True


async def never() -> bool:
    return False


class Deletions:
    """Records the deleted pods; the first request may fail."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.deleted: list[str] = []
        self.events: list[PodEvent] = []

    async def delete(self, borrowers: Sequence[Pod]) -> None:
        if self.failures:
            self.failures -= 1
            raise NO_ANSWER
        self.deleted += [each.name.name for each in borrowers]


def short() -> State:
    state = State()
    state.snapshot.lending.is_on = True
    state.ledger.advance(NOW)
    state.node_seen(node("worker-1", cpu="4"))
    state.pod_seen(pod("b", node="worker-1", constraints=BORROWER, cpu="4"))
    state.ledger.put(reservation("r", cpu="4"))
    return state


async def test_what_is_short_once_may_be_a_watch_that_lags() -> None:
    made, state = Deletions(), short()
    recaller = Recaller(at(NOW), made.delete, made.events.append)
    await recaller.look(state, always, Pacer())
    assert not made.deleted
    state.ledger.drop(reservation("r").ref)
    await recaller.look(state, always, Pacer())
    assert not made.deleted


async def test_what_is_short_twice_is_recalled_until_it_succeeds() -> None:
    made, state = Deletions(failures=1), short()
    recaller = Recaller(at(NOW), made.delete, made.events.append)
    for _ in range(3):
        await recaller.look(state, always, Pacer())
    assert made.deleted == ["b"]
    assert {(event.pod.name.name, event.reason) for event in made.events} == {("b", "Recalled")}


async def test_an_owner_that_no_call_tells_of_has_borrowers_deleted_and_the_node_closed() -> None:
    made, state = Deletions(), short()
    state.ledger.put(reservation("r", owners=("owner",), lends_below=100, cpu="4"))
    state.pod_seen(replace(pod("owner", cpu="4"), is_unschedulable=True))
    await Recaller(at(NOW), made.delete, made.events.append).look(state, always, Pacer())
    assert made.deleted == ["b"]
    assert {(event.pod.name.name, event.reason) for event in made.events} == {("b", "Recalled")}
    state.pod_gone(pod("b").name)
    assert state.snapshot.lending.left(0, ["worker-1"], NOW + RECALL_S - 1) == {}


async def test_what_is_recalled_is_not_lent_again_before_the_hold_starts() -> None:
    made, state = Deletions(), short()
    state.node_seen(node("worker-1", cpu="6"))
    state.ledger.put(reservation("lent", lends_below=100, cpu="2"))
    state.ledger.put(reservation("r", starts=NOW + 40, cpu="4"))
    recaller = Recaller(at(NOW), made.delete, made.events.append)
    for _ in range(2):
        await recaller.look(state, always, Pacer())
    state.pod_gone(pod("b").name)
    lending = state.snapshot.lending
    assert lending.left(0, ["worker-1"], NOW + 39) == {}
    assert lending.left(0, ["worker-1"], NOW + 40)["worker-1"]["cpu"] == 2_000


def borrowed() -> State:
    """Return a state that lends, with three nodes, each with one borrower."""
    state = State()
    state.snapshot.lending.is_on = True
    state.ledger.advance(NOW)
    for number in (1, 2, 3):
        on = f"worker-{number}"
        state.node_seen(node(on, cpu="4"))
        state.pod_seen(pod(f"b{number}", node=on, constraints=BORROWER, cpu="4"))
    return state


async def test_borrowers_of_a_node_stay_that_gets_room_while_others_are_deleted() -> None:
    """Each node is judged when its turn comes: the API server may take long to answer."""
    made, state = Deletions(), borrowed()
    for number in (1, 2, 3):
        state.ledger.put(reservation(f"r{number}", node=f"worker-{number}", cpu="4"))

    async def slow(borrowers: Sequence[Pod]) -> None:
        await made.delete(borrowers)
        for number in (1, 2, 3):
            if f"b{number}" not in made.deleted:
                state.ledger.drop(reservation(f"r{number}").ref)

    recaller = Recaller(at(NOW), slow, made.events.append)
    for _ in range(2):
        await recaller.look(state, always, Pacer())
    assert len(made.deleted) == len(made.events) == 1


async def test_borrowers_stay_whose_owner_is_gone_while_others_are_deleted() -> None:
    made, state = Deletions(), borrowed()
    for number in (1, 2, 3):
        on = f"worker-{number}"
        state.ledger.put(
            reservation(f"r{number}", node=on, owners=(f"o{number}",), lends_below=100, cpu="4")
        )
        state.pod_seen(replace(pod(f"o{number}", cpu="4"), is_unschedulable=True))

    async def slow(borrowers: Sequence[Pod]) -> None:
        await made.delete(borrowers)
        for number in (1, 2, 3):
            if f"b{number}" not in made.deleted:
                state.pod_gone(pod(f"o{number}").name)

    await Recaller(at(NOW), slow, made.events.append).look(state, always, Pacer())
    assert len(made.deleted) == 1


async def test_nothing_more_is_deleted_once_the_state_is_out_of_date() -> None:
    made, state = Deletions(), State()
    state.snapshot.lending.is_on = True
    state.ledger.advance(NOW)
    for number in range(4):
        on = f"worker-{number}"
        state.node_seen(node(on, cpu="4"))
        state.pod_seen(pod(f"b{number}", node=on, constraints=BORROWER, cpu="4"))
        hold = reservation(f"r{number}", node=on, owners=(f"o{number}",), cpu="4")
        state.ledger.put(replace(hold, lends_below=100 if number > 1 else None))
        state.pod_seen(replace(pod(f"o{number}", cpu="4"), is_unschedulable=True))
    recaller = Recaller(at(NOW), made.delete, made.events.append)
    for number in (1, 2):  # First for an owner, then for a node that lacks room in two passes.
        await recaller.look(state, never, Pacer())
        assert len(made.deleted) == number


async def test_a_pass_that_takes_too_long_for_owners_is_gone_on_with_by_the_next() -> None:
    """Owners that fit on none of their thousand seats once kept holds from their room."""
    made, state, worked_s = Deletions(), borrowed(), [0.0]
    for number in (1, 2, 3):
        on = f"worker-{number}"
        hold = reservation(f"r{number}", node=on, owners=(f"o{number}",), cpu="4")
        state.ledger.put(replace(hold, lends_below=100))
        state.pod_seen(replace(pod(f"o{number}", cpu="4"), is_unschedulable=True))

    def slowly(_: PodEvent) -> None:
        worked_s[0] += OWNERS_S + 1

    recaller = Recaller(at(NOW), made.delete, slowly)
    for number in range(1, 4):
        await recaller.look(state, always, Pacer(timer=lambda: worked_s[0]))
        assert len(made.deleted) == number
    assert set(made.deleted) == {"b1", "b2", "b3"}
