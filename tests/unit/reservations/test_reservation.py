import pytest

from reserver.reservations.enums import Phase
from tests.builders import ref, reservation


@pytest.mark.parametrize(
    ("claims", "now", "phase"),
    [
        pytest.param(0, 99.0, Phase.PENDING, id="before its start"),
        pytest.param(0, 100.0, Phase.ACTIVE, id="from its start on"),
        pytest.param(1, 150.0, Phase.ACTIVE, id="with a slot left"),
        pytest.param(0, 199.999, Phase.ACTIVE, id="until just before its expiry"),
        pytest.param(0, 200.0, Phase.EXPIRED, id="at its expiry"),
        pytest.param(2, 150.0, Phase.CLAIMED, id="with every slot claimed"),
        pytest.param(3, 150.0, Phase.CLAIMED, id="with more claims than slots"),
        pytest.param(2, 300.0, Phase.CLAIMED, id="claimed stays claimed"),
        pytest.param(2, 50.0, Phase.CLAIMED, id="claimed before its start"),
    ],
)
def test_the_phase_follows_from_claims_and_time(claims: int, now: float, phase: Phase) -> None:
    window = reservation("r", slots=2, starts=100.0, expires=200.0, cpu="1")
    assert window.phase(claims, now) is phase


def test_a_reservation_without_limits_holds_at_once_and_for_ever() -> None:
    assert reservation("r", cpu="1").phase(0, 0.0) is Phase.ACTIVE
    assert reservation("r", cpu="1").phase(0, 1e12) is Phase.ACTIVE


def test_messages_name_a_reservation_by_where_it_is_written() -> None:
    assert str(ref("web")) == "shop/store/web"
    assert str(ref("worker-1", "shop/web-0")) == "shop/store/worker-1[shop/web-0]"


@pytest.mark.parametrize(
    ("refill_up_to", "claims", "expected"),
    [
        pytest.param(0, 2, 3, id="none is replaced"),
        pytest.param(20, 5, 8, id="three stay free"),
        pytest.param(6, 5, 6, id="the limit leaves one"),
        pytest.param(6, 7, 7, id="more claimed than the limit, which was lowered"),
    ],
)
def test_its_slots_are_those_claimed_and_those_that_it_keeps_free(
    refill_up_to: int, claims: int, expected: int
) -> None:
    kept = reservation("r", node="", slots=3, refill_up_to=refill_up_to)
    assert kept.slots_beside(claims) == expected
    left, placeless = kept.unclaimed(["a"] * claims)
    assert sum(left.values()) + placeless == expected - claims
