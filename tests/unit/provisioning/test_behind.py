"""Room for a ProvisioningRequest is searched once watches have caught up."""

from __future__ import annotations

from functools import partial

import pytest

from reserver.base.pacer import Pacer
from reserver.process import readiness
from reserver.provisioning import controller
from tests.unit.moves.api_server import PODS, SEATS
from tests.unit.provisioning.shop import POD_SETS, asked
from tests.unit.provisioning.test_strikes import PROVISIONED

ALL_PODS = "/api/v1/pods"


async def test_nothing_is_held_on_a_view_that_is_about_to_show_that_room_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(controller, "Pacer", partial(Pacer, timer=lambda: 0.0))
    monkeypatch.setattr(readiness, "STALE_AFTER_S", 0.01)
    shop = await asked(noRetry="true")
    watch = next(each for each in shop.reserver.reflectors if each.path == ALL_PODS)
    watch._lag.begin(watch._now())
    for _ in range(5):
        await shop.round()
        shop.time.now += 1.0
    assert not shop.api.of(SEATS)
    shop.make_pod("worker-2")
    shop.is_over = lambda: shop.holds("Failed")
    shop.mend_watch(ALL_PODS)
    await shop.settle()
    assert shop.said["Failed"] == ("True", "CapacityIsNotFound")
    assert not shop.api.of(SEATS)


async def test_a_booking_is_not_revoked_because_its_reservations_are_shown_after_it() -> None:
    shop = await asked()
    await shop.settle()
    seats = {path: shop.api.objects.pop(path) for path in list(shop.api.objects) if SEATS in path}
    assert len(seats) == len(POD_SETS)
    await shop.start()  # Next to the Reserver that wrote the seats a moment ago.
    shop.api.objects.update(seats)
    for _ in range(3):
        await shop.round()
        shop.api.now += 1.0
        shop.time.now += 1.0
    for seat in seats.values():
        shop.api.put(SEATS, seat)
    await shop.settle()
    assert shop.said == PROVISIONED
    assert len(shop.api.of(SEATS)) == len(POD_SETS)


async def test_a_request_that_waits_is_tried_again_though_the_clock_was_set_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The request once waited for as long as the clock was set back."""
    monkeypatch.setattr(controller, "Pacer", partial(Pacer, timer=lambda: 0.0))
    taken = []
    shop = await asked(lambda shop: taken.append(shop.make_pod("worker-2")), validFor="2h")
    shop.is_over = lambda: "False" in shop.said.get("Provisioned", ())
    await shop.settle()
    shop.api.now -= 3600
    shop.api.remove(f"{PODS}/{taken[0]['metadata']['name']}")
    shop.is_over = lambda: shop.holds("Provisioned")
    await shop.settle()


async def test_a_booking_is_revoked_once_a_reservation_of_it_is_missed_for_good() -> None:
    shop = await asked()
    await shop.settle()
    seat, *_ = shop.api.of(SEATS)
    shop.api.remove(f"{SEATS}/{seat['metadata']['name']}")
    shop.is_over = lambda: shop.holds("CapacityRevoked") and not shop.api.of(SEATS)
    began = shop.api.now
    await shop.settle()
    assert shop.said["CapacityRevoked"] == ("True", "ReservationDeleted")
    assert 5 <= shop.api.now - began < 10
