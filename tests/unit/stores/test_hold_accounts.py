"""Held resources are counted by week, namespace and owner; low use is noticed once a day."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reserver.base.pacer import Pacer
from reserver.cluster.pod import PodName
from reserver.reservations.accounts import Accounts, HoldUse, week_of
from reserver.reservations.enums import Outcome
from reserver.reservations.outcome import Ending
from reserver.reservations.reservation import Ref, Reservation
from reserver.stores.hold_accounts import HoldAccounts
from tests.builders import NOW, node, pod, reservation, rule, state_of

HOUR, DAY = 3600.0, 86_400.0


class Desk:
    """A ledger, its accounts and a clock."""

    def __init__(self, *written: Reservation, least: float = 0.2, since: float = NOW) -> None:
        self.now = since
        self.noticed: list[tuple[float, str, str]] = []
        self.held = HoldAccounts(lambda: self.now, least, self.notice)
        self.state = state_of(node("worker-1", cpu="64"), *written, now=since)
        self.now = NOW

    def notice(self, reservation: Reservation, message: str) -> None:
        self.noticed.append(((self.now - NOW) / HOUR, reservation.ref.key, message))

    async def look(self, *hours: float) -> None:
        for after in hours:
            self.now = NOW + after * HOUR
            self.state.ledger.advance(self.now)
            await self.held.look(self.state.ledger, Pacer())

    def claim(self, claimed: Reservation, name: str, cpu: str, **fields: Any) -> Any:
        labels = {"app": claimed.ref.key}
        made = pod(name, labels=labels, node="worker-1", claims=[claimed], cpu=cpu, **fields)
        self.state.pod_seen(made)
        return made

    def hours(self, resource: str = "cpu") -> dict[tuple[str, str], tuple[float, float, float]]:
        """Return the core hours of each owner over all weeks: free, spare and used."""
        sums: dict[tuple[str, str], HoldUse] = {}
        for key, uses in self.held.accounts:
            who = key.namespace, key.owner
            if resource in uses:
                sums[who] = sums.get(who, HoldUse()).plus(uses[resource])
        return {
            who: (round(s.free / 1000, 6), round(s.spare / 1000, 6), round(s.used / 1000, 6))
            for who, s in sums.items()
        }


def shared(key: str, **fields: Any) -> Reservation:
    return reservation(key, owners=[], rules=[rule(app=key)], **fields)


async def test_slots_are_free_until_pods_claim_them_and_use_what_these_request() -> None:
    held = shared("web", cpu="2", slots=3, reusable=True)
    desk = Desk(held)
    await desk.look(0)
    await desk.look(1)
    desk.claim(held, "web-0", "500m")
    await desk.look(1)
    await desk.look(3)
    assert desk.hours()["shop", "app=web"] == (1 * 6 + 2 * 4, 2 * 1.5, 2 * 0.5)


async def test_who_holds_two_of_them_and_who_waits_or_is_over_counts_nothing() -> None:
    desk = Desk(
        shared("web", cpu="1"),
        replace(shared("db", cpu="2"), owners=(PodName("data", "db-0"),), rules=()),
        reservation("later", owners=["x"], cpu="4", starts=NOW + 2 * HOUR),
        reservation("short", owners=["y"], cpu="8", expires=NOW + HOUR),
    )
    await desk.look(0, 1, 2, 3)
    assert desk.hours() == {
        ("shop", "app=web"): (3, 0, 0),
        ("data", "pod/db-0"): (6, 0, 0),
        ("shop", "pod/x"): (4, 0, 0),
        ("shop", "pod/y"): (8, 0, 0),
    }


async def test_a_clock_that_was_years_ahead_costs_no_week_that_is_kept() -> None:
    desk = Desk(shared("web", cpu="1"))
    await desk.look(0, 1, 20 * 366 * 24)
    assert week_of(NOW) in desk.held.accounts.weeks
    await desk.look(2, 3)
    assert desk.hours() == {("shop", "app=web"): (1 + 24 + 1, 0, 0)}


@pytest.mark.parametrize("ends_at", [30.0, 90.0])
async def test_what_ends_between_two_looks_is_counted_until_then(ends_at: float) -> None:
    one = reservation("move", owners=["w"], cpu="2")
    desk = Desk()
    await desk.look(0)
    desk.now = NOW + ends_at
    desk.held.ended(Ending(one, Outcome.REMOVED, NOW + ends_at, NOW))
    assert desk.hours()["shop", "pod/w"] == (round(2 * ends_at / HOUR, 6), 0, 0)


async def test_an_expiry_between_two_looks_is_exact() -> None:
    one = reservation("short", owners=["y"], cpu="8", expires=NOW + 1.25 * HOUR)
    desk = Desk(one)
    await desk.look(0, 1, 2, 3)
    desk.held.ended(Ending(one, Outcome.EXPIRED, desk.now, NOW))
    assert desk.hours()["shop", "pod/y"] == (10, 0, 0)


async def test_an_ending_of_what_a_look_has_seen_counts_once() -> None:
    one = shared("web", cpu="2")
    desk = Desk(one)
    await desk.look(0)
    desk.now = NOW + 30
    desk.state.ledger.drop(one.ref)
    desk.held.ended(Ending(one, Outcome.REMOVED, desk.now, NOW))
    await desk.look(1)
    assert desk.hours()["shop", "app=web"] == (round(60 / HOUR, 6), 0, 0)


async def test_low_use_is_noticed_after_each_day_and_not_of_what_is_used() -> None:
    idle, busy = shared("idle", cpu="2"), shared("busy", cpu="2", slots=2, reusable=True)
    desk = Desk(idle, busy)
    desk.claim(busy, "busy-0", "2")
    await desk.look(0, 23, 24, 25, 47, 48, 49)
    assert [(at, key) for at, key, _ in desk.noticed] == [(24, "idle"), (48, "idle")]
    assert desk.noticed[0][2].startswith(
        "pods requested 0% of it in the last 24 hours, less than 20%; hold less"
    )
    assert desk.held.low_use() == {"shop": 1}


async def test_a_claimed_slot_of_which_a_pod_requests_little_has_low_use() -> None:
    """One pod takes the whole of its slot's `pods`, however little else it requests."""
    large, alone = shared("large", cpu="2", reusable=True), shared("alone", reusable=True)
    desk = Desk(large, alone)
    desk.claim(large, "large-0", "250m")
    desk.claim(alone, "alone-0", "250m")  # Of a slot that holds nothing else.
    await desk.look(0, 24)
    assert [(key, said.partition(" of it")[0]) for _, key, said in desk.noticed] == [
        ("large", "pods requested 12%")
    ]


async def test_a_restart_neither_repeats_a_notice_nor_forgets_that_nothing_was_used() -> None:
    desk = Desk(shared("idle", cpu="2"), since=NOW - 30 * HOUR)
    desk.held.resume(Accounts(), NOW)
    await desk.look(0, 1, 17, 18, 19)
    assert [(at, key) for at, key, _ in desk.noticed] == [(18, "idle")]


async def test_no_share_no_notices() -> None:
    desk = Desk(shared("idle", cpu="2"), least=0.0)
    await desk.look(0, 24, 48)
    assert not desk.noticed
    assert not desk.held.low_use()


async def test_a_clock_that_is_set_back_or_far_ahead_breaks_nothing() -> None:
    desk = Desk(shared("web", cpu="1"))
    await desk.look(0, 2, 1, 3)
    assert desk.hours()["shop", "app=web"] == (4, 0, 0)
    await desk.look(20 * 7 * 24)
    weeks = {key.week for key, _ in desk.held.accounts}
    assert len(weeks) <= 13


async def test_what_was_held_while_no_process_ran_is_counted_up_to_a_day() -> None:
    for away, counted in ((0.5, 1.5), (72.0, 25.0)):
        desk = Desk(shared("web", cpu="1"), since=NOW - 1000 * HOUR)
        desk.held.resume(Accounts(), NOW - away * HOUR)
        await desk.look(0, 1)
        assert desk.hours()["shop", "app=web"] == (counted, 0, 0)


async def test_a_reservation_that_is_written_twice_is_counted_once() -> None:
    one = shared("web", cpu="2", slots=2)
    copy = replace(one, ref=Ref.of_object("shop", "web"), origin=str(one.ref))
    desk = Desk(one, copy)
    desk.claim(one, "web-0", "1")
    await desk.look(0, 1)
    assert desk.hours()["shop", "app=web"] == (2, 1, 1)
