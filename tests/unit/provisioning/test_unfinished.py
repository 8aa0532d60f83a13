"""A set of which the last write has not been made is no booking: whoever starts takes it back."""

from __future__ import annotations

from functools import partial

import pytest

from reserver.base.pacer import Pacer
from reserver.errors import ApiError
from reserver.k8s.client import JSON_PATCH, MERGE_PATCH
from reserver.provisioning import controller
from reserver.stores.object.codec import UNFINISHED_ANNOTATION
from tests.unit.moves.api_server import SEATS
from tests.unit.provisioning.shop import SetApi, Shop, asked
from tests.unit.provisioning.test_strikes import PROVISIONED, judge_held


class Late(SetApi):
    """An API server that does not answer the last write of a set until a test allows it."""

    is_late = True

    async def patch(self, path: str, body: object, content_type: str = MERGE_PATCH) -> bytes:
        if content_type == JSON_PATCH and self.is_late:
            raise ApiError(0, "Timeout", "no answer")
        return await super().patch(path, body, content_type)


def unfinished(shop: Shop) -> bool:
    seats = [seat["metadata"] for seat in shop.api.of(SEATS)]
    return any(UNFINISHED_ANNOTATION in seat.get("annotations", {}) for seat in seats)


@pytest.mark.parametrize("ends", [False, True], ids=["goes on", "is killed and started again"])
async def test_a_set_is_a_booking_once_its_last_write_is_made(
    monkeypatch: pytest.MonkeyPatch, *, ends: bool
) -> None:
    monkeypatch.setattr(controller, "Pacer", partial(Pacer, timer=lambda: 0.0))

    def prepare(shop: Shop) -> None:
        late = Late()
        late.objects = shop.api.objects
        shop.api = late

    shop = await asked(prepare)
    for _ in range(8):
        await shop.round()
        shop.api.now += 1.0
        shop.time.now += 1.0
    assert {seat["status"]["phase"] for seat in shop.api.of(SEATS)} == {"Active"}
    assert unfinished(shop)
    assert "Provisioned" not in shop.said
    shop.api.is_late = False  # type: ignore[attr-defined]
    if ends:
        await shop.start()
    await shop.settle()
    assert shop.said == PROVISIONED
    assert not unfinished(shop)
    judge_held(shop)
