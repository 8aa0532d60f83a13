"""Room for a ProvisioningRequest is looked for once watches have shown what they missed."""

from __future__ import annotations

from functools import partial

import pytest

from reserver.kube.provisioning import provisioner
from reserver.pacer import Pacer
from tests.unit.kube.migration.world import SEATS
from tests.unit.kube.provisioning.shop import asked

ALL_PODS = "/api/v1/pods"


async def test_nothing_is_held_on_a_view_that_is_about_to_show_that_room_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(provisioner, "Pacer", partial(Pacer, timer=lambda: 0.0))
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
