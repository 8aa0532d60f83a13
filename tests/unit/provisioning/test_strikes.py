"""ProvisioningRequests, whenever Reserver is killed, or refused or not answered a write.

At the end all podSets are held or none, nothing is left that nobody owns, and conditions say so.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pytest

from reserver.base.pacer import Pacer
from reserver.errors import ApiError
from reserver.provisioning import controller
from reserver.stores.object.codec import SET_LABEL, UNFINISHED_ANNOTATION
from tests.unit.k8s.crashes import Crash, crash_at_each_write
from tests.unit.moves.api_server import PODS, SEATS
from tests.unit.provisioning.shop import POD_SETS, REQUESTS, Shop, asked

pytestmark = pytest.mark.long

NODE = "/api/v1/nodes/worker-2"
ACCEPTED = {"Accepted": ("True", "Accepted")}
PROVISIONED = ACCEPTED | {"Provisioned": ("True", "CapacityIsFound")}

KILLED = [
    pytest.param(Crash, False, id="killed before it is carried out"),
    pytest.param(Crash, True, id="killed after it"),
    pytest.param(ApiError(0, "", "timed out"), True, id="its answer is lost"),
]
REFUSED = [
    pytest.param(ApiError(0, "", "timed out"), False, id="it did not arrive"),
    pytest.param(ApiError(403, "Forbidden", "no"), False, id="it is forbidden"),
    pytest.param(ApiError(503, "ServiceUnavailable", "no"), False, id="nobody is there"),
]
strikes = pytest.mark.parametrize(("fault", "is_done"), KILLED)
all_strikes = pytest.mark.parametrize(("fault", "is_done"), [*KILLED, *REFUSED])


@pytest.fixture(autouse=True)
def without_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop the clock of the search for room, which would rest three times its duration."""
    monkeypatch.setattr(controller, "Pacer", partial(Pacer, timer=lambda: 0.0))


def judge_held(shop: Shop) -> None:
    """Assert that all podSets are held, as one complete set."""
    assert shop.said == PROVISIONED
    (request,) = shop.api.of(REQUESTS)
    seats = shop.api.of(SEATS)
    assert sorted(seat["spec"]["slots"] for seat in seats) == sorted(POD_SETS.values())
    for seat in seats:
        (owner,) = seat["metadata"]["ownerReferences"]
        assert owner["uid"] == request["metadata"]["uid"]
        assert UNFINISHED_ANNOTATION not in seat["metadata"].get("annotations", {})
        assert seat["status"]["phase"] == "Active"
    assert len({seat["metadata"]["labels"][SET_LABEL] for seat in seats}) == 1
    assert len(shop.reserver.ledger) == len(POD_SETS)


def judge_gone(shop: Shop, said: Mapping[str, tuple[str, str]]) -> None:
    """Assert that nothing is held any more, and that the conditions are these."""
    assert shop.said == said
    assert not shop.api.of(SEATS)
    assert not len(shop.reserver.ledger)


def is_gone(shop: Shop, kind: str) -> bool:
    return shop.holds(kind) and not shop.api.of(SEATS)


@all_strikes
async def test_all_pod_sets_of_a_request_are_held(
    *, fault: BaseException | type[Crash], is_done: bool
) -> None:
    assert await crash_at_each_write(asked, judge_held, is_done=is_done, fault=fault) >= 9


@strikes
async def test_a_request_that_waits_is_held_once_there_is_room(
    *, fault: BaseException | type[Crash], is_done: bool
) -> None:
    def prepare(shop: Shop) -> None:
        pod = f"{PODS}/{shop.make_pod('worker-2')['metadata']['name']}"

        def leave() -> None:
            if "False" in shop.said.get("Provisioned", ()) and pod in shop.api.objects:
                shop.api.remove(pod)

        shop.happens = leave

    begin = partial(asked, prepare)
    assert await crash_at_each_write(begin, judge_held, is_done=is_done, fault=fault) >= 10


@strikes
async def test_no_pod_set_is_held_where_one_is_refused(
    *, fault: BaseException | type[Crash], is_done: bool
) -> None:
    def prepare(shop: Shop) -> None:
        shop.api.refused = "-01"
        shop.is_over = partial(is_gone, shop, "Failed")

    begin = partial(asked, prepare, noRetry="true")
    end = partial(judge_gone, said=ACCEPTED | {"Failed": ("True", "ReservationsRefused")})
    assert await crash_at_each_write(begin, end, is_done=is_done, fault=fault) >= 6


@strikes
async def test_a_booking_that_expires_is_released(
    *, fault: BaseException | type[Crash], is_done: bool
) -> None:
    def prepare(shop: Shop) -> None:
        shop.is_over = partial(is_gone, shop, "BookingExpired")

    begin = partial(asked, prepare, validFor="8s")
    end = partial(judge_gone, said=PROVISIONED | {"BookingExpired": ("True", "BookingExpired")})
    assert await crash_at_each_write(begin, end, is_done=is_done, fault=fault) >= 13


@strikes
async def test_a_booking_whose_node_goes_is_revoked(
    *, fault: BaseException | type[Crash], is_done: bool
) -> None:
    def prepare(shop: Shop) -> None:
        def lose_node() -> None:
            if shop.holds("Provisioned") and NODE in shop.api.objects:
                shop.api.remove(NODE)

        shop.happens = lose_node
        shop.is_over = partial(is_gone, shop, "CapacityRevoked")

    end = partial(judge_gone, said=PROVISIONED | {"CapacityRevoked": ("True", "NodeLost")})
    begin = partial(asked, prepare)
    assert await crash_at_each_write(begin, end, is_done=is_done, fault=fault) >= 13


@all_strikes
async def test_what_was_held_for_a_request_that_is_deleted_goes(
    *, fault: BaseException | type[Crash], is_done: bool
) -> None:
    def prepare(shop: Shop) -> None:
        def delete() -> None:
            if shop.holds("Provisioned"):
                shop.api.remove(f"{REQUESTS}/job")

        shop.happens = delete
        shop.is_over = lambda: not shop.api.of(REQUESTS) and not shop.api.of(SEATS)

    begin, end = partial(asked, prepare), partial(judge_gone, said={})
    assert await crash_at_each_write(begin, end, is_done=is_done, fault=fault) >= 12
