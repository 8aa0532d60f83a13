"""Quotas whose limits change, and reservations that are edited above a limit."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from reserver.reservations.quota import Quota
from tests.builders import NAMESPACE, ref, reservation
from tests.unit.reservations.quota.limited import drain, holding, ledger_of, limit, quota, write


@pytest.mark.parametrize(
    ("after", "in_"),
    [
        ([quota(cpu="100")], "abcd"),
        ([], "abcd"),
        ([quota(cpu="5")], "ab"),
        ([quota(cpu="2")], "ab"),
        ([quota(reservations="1")], "ab"),
        ([quota(memory="0")], "abcd"),
    ],
    ids=["raised", "gone", "lowered", "lowered below the first", "by number", "of nothing held"],
)
def test_other_limits_count_at_once_for_what_is_new_and_what_is_in_stays_in(
    after: Iterable[Quota], in_: str
) -> None:
    ledger = ledger_of(quota(cpu="8"))
    write(ledger, ("a", 3), ("b", 3), ("c", 5), ("d", 2))
    assert holding(ledger) == {"a", "b"}
    limit(ledger, *after)
    assert holding(ledger) == set(in_)
    limit(ledger, quota(cpu="8"))
    assert len(holding(ledger)) >= 1


def test_another_default_counts_where_there_is_no_quota_and_takes_no_hold_away() -> None:
    ledger = ledger_of(default=quota("default", cpu="1"))
    write(ledger, ("a", 1), ("b", 2))
    assert holding(ledger) == {"a"}
    for default, in_ in ((quota("default", cpu="3"), "ab"), (quota("default", cpu="2"), "ab")):
        assert len(list(ledger.quotas.default_to(default))) == 1
        drain(ledger)
        assert holding(ledger) == set(in_)
    assert "exceeded quota: default" in ledger.exceeds(ref("a"))
    limit(ledger, quota(cpu="4"))
    list(ledger.quotas.default_to(None))
    assert ledger.quotas.of(NAMESPACE) == (quota(cpu="4"),)


_LATER = 30 * 86400.0


@pytest.mark.parametrize(
    "lowered",
    [
        quota(cpu="7"),
        quota(reservations="0"),
        replace(quota("default"), hard={"held.nvidia.com/gpu": 0}),
        replace(quota(), max_ttl=3600.0),
        replace(quota(), allows_node_names=False),
        replace(quota(), allows_firm_holds=False),
    ],
    ids=["cpu", "number", "a device", "a life", "names", "firm holds"],
)
@pytest.mark.parametrize("by", ["a limit", "a start"])
def test_what_held_before_a_limit_holds_on_and_says_what_it_exceeds(
    lowered: Quota, by: str
) -> None:
    kept = reservation("a", cpu="8")
    resources = {**kept.resources, "nvidia.com/gpu": 1}
    kept = replace(kept, resources=resources, expires_at=None, created_at=1.0)
    ledger = ledger_of(lowered, is_open=False) if by == "a start" else ledger_of()
    ledger.put(kept)
    ledger.put(new := replace(kept, ref=ref("new"), origin="new", digest="new"))
    if by == "a start":
        ledger.was_admitted(ref("a"), kept.digest)
        for _ in ledger.open():
            pass
        assert holding(ledger) == {"a"}
        assert ledger.excess(ref("new"))
    else:
        limit(ledger, lowered)
        assert holding(ledger) == {"a", "new"}
        ledger.drop(new.ref)
    assert ledger.exceeds(ref("a")).startswith(f"exceeded quota: {lowered.name}")
    assert ledger.exceeds(ref("a")).endswith("it was admitted before that, and holds")
    limit(ledger)
    assert not ledger.exceeds(ref("a"))


def test_an_edit_from_before_it_was_admitted_costs_nothing() -> None:
    ledger = ledger_of(quota(cpu="4"))
    waits = replace(reservation("a", cpu="8"), expires_at=60.0, created_at=1.0, origin="a")
    ledger.put(waits)
    edited = replace(waits, expires_at=None, resources={"cpu": 7000}, digest="edited")
    ledger.put(edited)
    assert holding(ledger) == set()
    limit(ledger)
    assert holding(ledger) == {"a"}
    limit(ledger, quota(ttl=3600.0))
    assert holding(ledger) == {"a"}


@pytest.mark.parametrize(
    ("change", "stays"),
    [
        pytest.param({"resources": {"cpu": 4000}}, True, id="it asks for less"),
        pytest.param({"expires_at": _LATER}, True, id="it lives shorter, and still too long"),
        pytest.param({"resources": {"cpu": 9000}}, False, id="it asks for more"),
        pytest.param({"yields_above": None}, False, id="what is forbidden, and was not asked for"),
    ],
)
def test_an_edit_of_what_exceeds_a_limit_is_new_where_it_asks_for_more(
    change: dict[str, Any], *, stays: bool
) -> None:
    made = reservation("a", cpu="8")
    kept = replace(made, expires_at=None, created_at=1.0, origin="a", yields_above=0)
    ledger = ledger_of()
    ledger.put(kept)
    limit(ledger, replace(quota(cpu="1"), max_ttl=3600.0, allows_firm_holds=False))
    ledger.put(replace(kept, **change, digest="edited"))
    for _ in ledger.admit(kept.ref.namespace):
        pass
    assert (holding(ledger) == {"a"}) is stays
