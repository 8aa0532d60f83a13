"""Reservations that are released once no pod has had a slot for so long."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reserver.base.clock import Moment
from reserver.base.schedule import Schedule
from reserver.reservations.entry import identified
from reserver.reservations.enums import Outcome, Phase
from reserver.reservations.outcome import Ending
from reserver.reservations.recurrence import Recurrence
from reserver.reservations.reservation import Reservation
from reserver.reservations.status import IDLE, ShortNodes
from reserver.scheduling.state import State
from tests.builders import NOW, held, node, pod, reservation, rule, state_of

WAIT = 600.0
OWNERS = [rule(app="web")]


def kept(**changes: object) -> Reservation:
    """Return a reservation of two slots that is released after ten idle minutes."""
    fields = {"owners": [], "rules": OWNERS, "slots": 2, "cpu": "1", "release_if_idle": WAIT}
    return reservation("r", **(fields | changes))  # type: ignore[arg-type]


class World:
    """A state that has read the whole past before the start."""

    def __init__(self, written: Reservation, since: float = NOW) -> None:
        self.written = written
        self.state: State = state_of(node("worker-1", cpu="8"), written, now=since)
        self.ledger = self.state.ledger
        self.ledger.past.end()
        self.at(since)

    def at(self, now: float) -> Phase | None:
        self.ledger.advance(now)
        return self.ledger.phase(self.written.ref)

    def claim(self, name: str) -> None:
        owner = pod(name, labels={"app": "web"}, cpu="1", claims=[self.written])
        self.state.pod_seen(replace(owner, node="worker-1"))

    def finish(self, name: str) -> None:
        owner = pod(name, labels={"app": "web"}, cpu="1", claims=[self.written])
        self.state.pod_seen(replace(owner, node="worker-1", finished=True))

    @property
    def outcome(self) -> Outcome:
        return Ending.of(self.written, self.ledger, NOW).outcome

    @property
    def reason(self) -> str:
        short = ShortNodes.of(self.state.snapshot)
        return short.status(self.written, self.ledger).reason


def test_what_nobody_claims_is_released_exactly_then() -> None:
    world = World(kept())
    assert world.at(NOW + WAIT - 1) is Phase.ACTIVE
    assert held(world.state, "worker-1") == 2000
    assert world.at(NOW + WAIT) is Phase.EXPIRED
    assert held(world.state, "worker-1") == 0
    assert (world.outcome, world.reason) == (Outcome.IDLE, IDLE)
    assert not world.ledger.seats(pod("a", labels={"app": "web"}))


def test_others_are_never_released() -> None:
    world = World(kept(release_if_idle=0.0))
    assert world.at(NOW + 1e6) is Phase.ACTIVE


@pytest.mark.parametrize("ends", ["gone", "finished"])
@pytest.mark.parametrize("kind", [{}, {"reusable": True}, {"refill_up_to": 3, "node": ""}])
def test_it_counts_from_when_the_last_of_its_pods_went(kind: dict[str, object], ends: str) -> None:
    world = World(kept(**kind, placed={"worker-1": 2} if "node" in kind else None))
    world.at(NOW + 300)
    world.claim("a")
    assert world.at(NOW + 3000) is Phase.ACTIVE
    if ends == "gone":
        world.state.pod_gone(pod("a").name)
    else:
        world.finish("a")
    assert world.ledger.idle_since(world.written.ref) == NOW + 3000
    assert world.at(NOW + 3000 + WAIT - 1) is Phase.ACTIVE
    assert world.at(NOW + 3000 + WAIT) is Phase.EXPIRED
    assert world.outcome is Outcome.IDLE


def test_a_pod_that_is_being_bound_uses_it_and_one_that_fails_does_not() -> None:
    world = World(kept())
    owner = pod("a", labels={"app": "web"}, cpu="1")
    world.at(NOW + WAIT - 1)
    world.state.assume(owner, "worker-1", (world.written.identity,))
    assert world.at(NOW + WAIT) is Phase.ACTIVE
    world.state.forget(owner.uid)
    assert world.at(NOW + 2 * WAIT - 1) is Phase.ACTIVE
    assert world.at(NOW + 2 * WAIT) is Phase.EXPIRED


@pytest.mark.parametrize(
    ("changes", "since"),
    [
        pytest.param({"starts": NOW + 100}, NOW + 100, id="before its start"),
        pytest.param({"node": ""}, 0.0, id="while it has no place"),
        pytest.param({"expires": NOW + 5}, 0.0, id="once it has expired"),
    ],
)
def test_what_nobody_can_claim_is_not_idle(changes: dict[str, object], since: float) -> None:
    world = World(kept(**changes))
    world.at(NOW + 100)
    world.at(NOW + 200)
    assert world.ledger.idle_since(world.written.ref) == since


def test_the_earlier_end_counts() -> None:
    world = World(kept(expires=NOW + WAIT - 1))
    assert world.at(NOW + WAIT) is Phase.EXPIRED
    assert (world.outcome, world.reason) == (Outcome.EXPIRED, "Expired")
    world = World(kept(expires=NOW + WAIT + 1))
    assert world.at(NOW + WAIT + 5) is Phase.EXPIRED
    assert (world.outcome, world.reason) == (Outcome.IDLE, IDLE)


def test_what_is_claimed_for_good_is_claimed_whatever_becomes_of_its_pods() -> None:
    world = World(kept(slots=1))
    world.claim("a")
    world.state.pod_gone(pod("a").name)
    assert world.at(NOW + 2 * WAIT) is Phase.CLAIMED
    assert world.outcome is Outcome.CLAIMED


def restarted(written: Reservation, idle_since: float, *, first: bool = True) -> World:
    """Return a restarted world that has read the idle time from a status."""
    world = World.__new__(World)
    world.written = written
    world.state = state_of(node("worker-1", cpu="8"), now=NOW)
    world.ledger = world.state.ledger
    if not first:
        world.claim("a")
    world.ledger.put(written)
    world.ledger.was_idle(written.ref, written.digest, idle_since)
    return world


def test_a_restart_goes_on_counting() -> None:
    world = restarted(kept(), NOW - 500)
    world.ledger.past.end()
    assert world.at(NOW + 99) is Phase.ACTIVE
    assert world.at(NOW + 100) is Phase.EXPIRED


@pytest.mark.parametrize("first", [True, False])
def test_what_a_pod_uses_outlives_a_restart_whatever_was_recorded(*, first: bool) -> None:
    world = restarted(kept(), NOW - 2 * WAIT, first=first)
    assert world.at(NOW) is Phase.ACTIVE  # Until all claims are known it holds.
    assert world.ledger.idle_since(world.written.ref) == 0
    if first:
        world.claim("a")
    world.ledger.past.end()
    assert world.at(NOW + 1) is Phase.ACTIVE
    assert held(world.state, "worker-1") == 1000


def test_a_restart_after_the_end_releases_at_once() -> None:
    world = restarted(kept(), NOW - 2 * WAIT)
    world.ledger.past.end()
    assert world.at(NOW) is Phase.EXPIRED
    assert world.outcome is Outcome.IDLE


def test_what_was_recorded_of_another_one_does_not_count() -> None:
    world = restarted(kept(), 0.0)
    world.ledger.was_idle(world.written.ref, "another", NOW - 2 * WAIT)
    world.ledger.past.end()
    assert world.at(NOW + WAIT - 1) is Phase.ACTIVE


def test_the_reserver_that_saw_the_last_pod_is_right() -> None:
    world = World(kept())
    world.ledger.was_idle(world.written.ref, world.written.digest, NOW - 60)
    assert world.ledger.idle_since(world.written.ref) == NOW
    world.ledger.was_idle(world.written.ref, world.written.digest, NOW + 60)
    assert world.at(NOW + WAIT + 59) is Phase.ACTIVE
    assert world.at(NOW + WAIT + 60) is Phase.EXPIRED


def test_an_edit_begins_anew() -> None:
    world = World(kept())
    world.at(NOW + 500)
    world.written = kept(slots=3)
    world.ledger.put(world.written)
    assert world.at(NOW + 500 + WAIT - 1) is Phase.ACTIVE
    assert world.at(NOW + 500 + WAIT) is Phase.EXPIRED


def test_what_another_reserver_wrote_out_of_the_same_ttl_goes_on() -> None:
    world = World(replace(kept(expires=NOW + 5000), drift=2))
    world.at(NOW + 500)
    world.ledger.put(identified(replace(world.written, expires_at=NOW + 5001)))
    assert world.ledger.idle_since(world.written.ref) == NOW
    assert world.at(NOW + WAIT) is Phase.EXPIRED


def test_a_clock_that_was_ahead_postpones_nothing() -> None:
    world = World(kept(), since=NOW + 86_400)
    assert world.at(Moment(NOW, 1)) is Phase.ACTIVE
    assert world.ledger.idle_since(world.written.ref) == NOW
    assert world.at(Moment(NOW + WAIT, 1)) is Phase.EXPIRED


def test_of_what_recurs_only_the_idle_occurrence_ends() -> None:
    nightly = Recurrence(schedule=Schedule("0 22 * * *", 28_800))
    written = identified(replace(kept(), recurrence=nightly))
    begin = NOW - NOW % 86_400 + 22 * 3600
    world = World(written, since=begin - 3600)
    assert world.ledger.idle_since(written.ref) == 0
    assert world.at(begin) is Phase.ACTIVE
    assert world.ledger.idle_since(written.ref) == begin
    assert world.at(begin + WAIT) is Phase.EXPIRED
    assert world.ledger.is_released(written.ref)
    assert not world.ledger.is_over(written.ref)  # The cleaner leaves it.
    assert world.at(begin + 28_800) is Phase.PENDING
    assert world.at(begin + 86_400) is Phase.ACTIVE
    assert world.ledger.idle_since(written.ref) == begin + 86_400


def test_it_is_idle_once_a_pod_that_another_scheduler_bound_has_finished() -> None:
    world = World(kept(rules=[], owners=("a", "b")))
    bound = pod("a", node="worker-1", cpu="1")
    for revision, finished in enumerate((False, True), start=5):
        world.state.pod_seen(replace(bound, revision=revision, finished=finished))
    assert world.ledger.idle_since(world.written.ref) == NOW
