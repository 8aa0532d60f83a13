"""Warnings of unclaimed holds before they expire."""

from __future__ import annotations

from dataclasses import replace

from reserver.base.pacer import Pacer
from reserver.base.schedule import Schedule
from reserver.reservations.entry import identified
from reserver.reservations.recurrence import Recurrence
from reserver.reservations.reservation import Reservation
from reserver.stores.expiry_warnings import ExpiryWarnings
from tests.builders import NOW, node, pod, reservation, rule, state_of

BEFORE = 600.0


class Desk:
    def __init__(self, *written: Reservation, since: float = NOW, before: float = BEFORE) -> None:
        self.now = NOW
        self.told: list[tuple[float, str, str]] = []
        self.state = state_of(node("worker-1", cpu="64"), *written, now=since)
        self.reminder = ExpiryWarnings(before, lambda: self.now, self.tell)

    def tell(self, reservation: Reservation, message: str, _: float) -> None:
        self.told.append((self.now - NOW, reservation.ref.key, message))

    async def look(self, *seconds: float) -> list[tuple[float, str]]:
        """Look at these moments; return each warning: reservation and time."""
        for after in seconds:
            self.now = NOW + after
            self.state.ledger.advance(self.now)
            await self.reminder.look(self.state.ledger, Pacer())
        return [each[:2] for each in self.told]


async def test_each_is_warned_of_once_some_time_before_it_expires() -> None:
    desk = Desk(
        reservation("hour", cpu="1", expires=NOW + 3600),
        reservation("other", owners=["b"], cpu="1", expires=NOW + 3700),
        reservation("ever", owners=["c"], cpu="1"),
    )
    assert await desk.look(0, 2999, 3000, 3030, 3100, 3599) == [(3000, "hour"), (3100, "other")]
    assert desk.told[0][2].startswith(
        "expires in 0:10:00, at 2030-03-17T18:46:40Z, and nobody has claimed it; extend it"
    )
    assert len(desk.reminder.expiring) == 2
    await desk.look(3700)
    assert not desk.reminder.expiring


async def test_what_lives_shorter_is_warned_of_in_the_middle_of_its_life() -> None:
    later = reservation("later", owners=["b"], cpu="1", starts=NOW + 200, expires=NOW + 400)
    desk = Desk(reservation("short", cpu="1", expires=NOW + 300), later)
    assert await desk.look(0, 149, 150, 299, 300) == [(150, "short"), (300, "later")]


async def test_what_is_claimed_or_holds_nothing_needs_no_warning() -> None:
    claimed = reservation("claimed", owners=[], rules=[rule(app="web")], cpu="1", expires=NOW + 60)
    elsewhere = reservation("failed", node="nowhere", cpu="1", expires=NOW + 60)
    shared = reservation(
        "shared", owners=[], rules=[rule(app="db")], slots=3, cpu="1", expires=NOW + 60
    )
    desk = Desk(claimed, elsewhere, shared, since=NOW - 600)
    for app, key in (("web", claimed), ("db", shared)):
        labels = {"app": app}
        desk.state.pod_seen(pod(app, labels=labels, node="worker-1", claims=[key], cpu="1"))
    assert await desk.look(1) == [(1, "shared")]
    assert "and 2 slots are unclaimed;" in desk.told[0][2]


async def test_zero_warns_of_nothing_and_may_change_while_it_runs() -> None:
    desk = Desk(reservation("hour", cpu="1", expires=NOW + 3600), before=0.0)
    assert await desk.look(3100) == []
    desk.reminder.before_s = BEFORE
    assert await desk.look(3200) == [(3200, "hour")]
    desk.reminder.before_s = 0.0
    await desk.look(3300)
    assert not desk.reminder.expiring


async def test_what_will_be_released_as_idle_is_warned_of_each_time() -> None:
    idle = reservation(
        "idle", owners=[], rules=[rule(app="web")], slots=2, cpu="1", release_if_idle=600
    )
    desk = Desk(idle)
    desk.state.ledger.past.end()
    assert await desk.look(1, 299, 301, 330) == [(301, "idle")]
    assert desk.told[0][2] == (
        "no pod has had a slot since 2030-03-17T17:46:41Z: Reserver releases it in 0:05:00, at "
        "2030-03-17T17:56:41Z, unless a pod claims it (releaseIfIdle)"
    )
    desk.state.pod_seen(pod("a", labels={"app": "web"}, node="worker-1", claims=[idle], cpu="1"))
    assert await desk.look(400, 500) == [(301, "idle")]
    desk.state.pod_gone(pod("a").name)
    assert await desk.look(600, 799, 801) == [(301, "idle"), (801, "idle")]


async def test_an_occurrence_is_not_warned_of_but_the_last() -> None:
    begin, day = NOW // 86400 * 86400 + 79200, 86400.0  # 22:00 that day, in UTC.
    schedule = Schedule("0 22 * * *", 3600.0, until=begin + day)
    nightly = identified(
        replace(reservation("nightly", cpu="1"), recurrence=Recurrence(schedule=schedule))
    )
    desk = Desk(nightly)
    first = begin + 3100 - NOW
    assert await desk.look(first, first + day) == [(first + day, "nightly")]
