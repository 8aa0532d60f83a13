"""The accounts: their bounds, and how a restart finds them."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reserver.base.pacer import outcome
from reserver.reservations.accounts import (
    MOST_NAMESPACES,
    MOST_OWNERS,
    MOST_RESOURCES,
    MOST_WEEKS,
    OTHERS,
    AccountKey,
    Accounts,
    HoldUse,
    measured,
    week_of,
)
from reserver.scheduling.state import State
from reserver.stores.codec import account_codec
from reserver.stores.hold_accounts import NAME, AccountWriter, HoldAccounts
from tests.builders import NOW, node, pod, reservation, state_of
from tests.cpu import MOST_S, longest_step_s
from tests.unit.k8s.fakes import ScriptedClient, refused

WEEK = 7 * 86_400
ABSENT = refused(404, "NotFound")


def total(accounts: Accounts, resource: str = "cpu") -> HoldUse:
    whole = HoldUse()
    for _, uses in accounts:
        whole = whole.plus(uses.get(resource, HoldUse()))
    return whole


def test_weeks_begin_on_mondays_at_midnight_utc() -> None:
    monday = week_of(NOW)
    assert account_codec.week_name(monday) == "2030-03-11"
    assert (week_of(monday), week_of(monday - 1), week_of(monday + WEEK)) == (
        monday,
        monday - WEEK,
        monday + WEEK,
    )


def test_what_is_held_over_midnight_counts_in_both_weeks() -> None:
    accounts, monday = Accounts(), week_of(NOW)
    accounts.add("shop", "web", monday - 7200, monday + 3600, {"cpu": HoldUse(1, 2, 3)})
    assert [(key.week, uses["cpu"]) for key, uses in accounts] == [
        (monday - WEEK, HoldUse(2, 4, 6)),
        (monday, HoldUse(1, 2, 3)),
    ]


def test_too_many_of_anything_go_to_the_others() -> None:
    accounts = Accounts()
    for number in range(MOST_NAMESPACES + 5):
        accounts.put(AccountKey(week_of(NOW), f"n{number}", "o"), {"cpu": HoldUse(1)})
    for number in range(MOST_OWNERS + 5):
        accounts.put(AccountKey(week_of(NOW), "n0", f"o{number}"), {"cpu": HoldUse(1)})
    many = {f"r{number}": HoldUse(1) for number in range(MOST_RESOURCES + 5)}
    accounts.put(AccountKey(week_of(NOW), "n1", "o"), many)
    found = dict(accounts)
    assert found[AccountKey(week_of(NOW), OTHERS, OTHERS)] == {"cpu": HoldUse(5)}
    assert found[AccountKey(week_of(NOW), "n0", OTHERS)] == {"cpu": HoldUse(6)}
    assert len(found[AccountKey(week_of(NOW), "n1", "o")]) == MOST_RESOURCES
    for week in range(MOST_WEEKS + 3):
        accounts.put(AccountKey(week_of(NOW) + week * WEEK, "n0", "o"), {"cpu": HoldUse(1)})
    assert len({key.week for key, _ in accounts}) == MOST_WEEKS


def test_names_that_somebody_invents_hide_nothing_that_is_held() -> None:
    """An account has eight resources: eight unused names once kept a claimed hold out."""
    accounts, invented = Accounts(), {f"a{n}.example.com/x": 1 for n in range(MOST_RESOURCES)}
    state = state_of(node("worker-1", cpu="8", memory="8Gi", gpu="4"))
    hold = reservation("r", owners=("a",), reusable=True, cpu="2", gpu="1")
    hold = replace(hold, resources={**invented, **hold.resources})
    state.ledger.put(hold)
    assert measured(hold, state.ledger)["nvidia.com/gpu"] == HoldUse(1)
    state.pod_seen(pod("a", node="worker-1", claims=(hold,), cpu="1"))
    found = measured(hold, state.ledger)
    assert found == {
        "pods": HoldUse(0, 0, 1),
        "cpu": HoldUse(0, 1000, 1000),
        "nvidia.com/gpu": HoldUse(0, 1, 0),
    }
    key = AccountKey(week_of(NOW), "shop", "o")
    accounts.put(key, dict.fromkeys(invented, HoldUse(1)))
    accounts.put(key, {"memory": HoldUse(1), "cpu": HoldUse(1), "more": HoldUse(1)})
    assert dict(accounts)[key].keys() == {*invented, "cpu", "memory"}


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["shop", "data"]),
            st.sampled_from(["a", "b", "c"]),
            st.integers(0, 3 * WEEK),
            st.integers(0, 2 * WEEK),
            st.tuples(*[st.integers(0, 64_000)] * 3),
        ),
        max_size=20,
    )
)
def test_the_sum_of_the_parts_is_the_whole_of_each_namespace(
    held: list[tuple[str, str, int, int, tuple[int, int, int]]],
) -> None:
    accounts = Accounts()
    expected = {name: [0.0, 0.0, 0.0] for name in ("shop", "data")}
    for namespace, owner, begin, seconds, parts in held:
        end = NOW + begin + seconds
        accounts.add(namespace, owner, NOW + begin, end, {"cpu": HoldUse(*parts)})
        for index, part in enumerate(parts):
            expected[namespace][index] += part * seconds / 3600
    for _ in range(3):
        sums = {name: HoldUse() for name in expected}
        for key, uses in accounts:
            sums[key.namespace] = sums[key.namespace].plus(uses["cpu"])
        for name, parts_ in expected.items():
            assert sums[name] == pytest.approx(parts_)
            assert sums[name].held == pytest.approx(sums[name].claimed + sums[name].free)
        data = outcome(account_codec.write(accounts, NOW))
        accounts, until = outcome(account_codec.read(data))
        assert until == NOW


def test_what_takes_too_much_is_summed_the_oldest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    accounts = Accounts()
    for week in range(3):
        for number in range(60):
            key = AccountKey(week_of(NOW) + week * WEEK, f"n{number % 6}", f"owner-{number // 6}")
            accounts.put(key, {"cpu": HoldUse(1, 2, 3)})
    before = total(accounts)
    monkeypatch.setattr(account_codec, "MOST_BYTES", 5000)
    data = outcome(account_codec.write(accounts, NOW))
    assert sum(map(len, data.values())) <= 5100
    assert total(accounts) == before
    weeks = sorted(name for name in data if name != "until")
    assert json.loads(data[weeks[0]]).keys() <= {OTHERS, *(f"n{n}" for n in range(6))}
    assert "owner-1" not in data[weeks[0]]
    assert "owner-1" in data[weeks[-1]]
    monkeypatch.setattr(account_codec, "MOST_BYTES", 10)
    assert outcome(account_codec.write(accounts, NOW)) == {"until": f"{NOW:.0f}"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "7",
        "null",
        '{"n": 1}',
        '{"n": {"o": {"cpu": [1, 2]}}}',
        '{"n":{"o":{"cpu":"x"}}}',
    ],
)
def test_a_week_that_cannot_be_read_costs_no_other(text: str) -> None:
    accounts = Accounts()
    accounts.put(AccountKey(week_of(NOW), "shop", "web"), {"cpu": HoldUse(1)})
    data = outcome(account_codec.write(accounts, NOW))
    broken = {"2030-01-07": text, "2030-01-08": text, "x": text, "until": "soon"}
    found, until = outcome(account_codec.read({**broken, **data, "until": "soon"}))
    assert dict(found) == dict(accounts)
    assert until == 0.0


class Desk:
    def __init__(self, *script: Any) -> None:
        self.now = NOW
        self.client = ScriptedClient(*script)
        self.state: State = state_of()
        self.held = HoldAccounts(lambda: self.now, 0.2, lambda *_: None)
        self.writer = AccountWriter(self.client, "home", self.held, lambda: self.now)

    def count(self, cores: float) -> None:
        key = AccountKey(week_of(NOW), "shop", "web")
        self.held.accounts.put(key, {"cpu": HoldUse(cores)})

    @property
    def verbs(self) -> list[str]:
        return [each.verb for each in self.client.requests]


async def test_only_weeks_that_changed_are_written_and_a_restart_goes_on_from_there() -> None:
    first = Desk(ABSENT, ABSENT, {}, {}, {})
    await first.writer.read()
    first.count(2)
    await first.writer.write()
    created = first.client.requests[-1]
    assert created.path == "/api/v1/namespaces/home/configmaps"
    assert created.body["metadata"] == {"name": NAME, "labels": {"reserver.io/accounts": "true"}}
    first.now += 300
    await first.writer.write()
    assert first.client.requests[-1].body["data"].keys() == {"until"}
    second = Desk({"data": created.body["data"] | {"stray": "x"}}, {})
    await second.writer.read()
    second.count(3)
    assert total(second.held.accounts) == HoldUse(5)
    assert second.held.counted_until == NOW
    await second.writer.write()
    assert second.client.requests[-1].body["data"]["stray"] is None


async def test_nothing_is_written_before_it_is_known_what_was_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def soon(_: float) -> None:
        pass

    monkeypatch.setattr(asyncio, "sleep", soon)
    desk = Desk(refused(500), refused(403), {"data": {"until": f"{NOW - 60:.0f}"}})
    desk.count(1)
    await desk.writer.read()
    assert desk.verbs == ["get"] * 3
    assert desk.held.counted_until == NOW - 60
    assert total(desk.held.accounts) == HoldUse(1)


async def test_what_cannot_be_written_is_written_with_the_next() -> None:
    desk = Desk(ABSENT, refused(500), ABSENT, {}, ABSENT, {})
    await desk.writer.read()
    desk.count(1)
    await desk.writer.write()
    assert desk.writer.writes == 0
    await desk.writer.write()
    assert len(desk.client.requests[-1].body["data"]) == 2
    desk.now += 60
    await desk.writer.write()  # The account was deleted: all of it is written again.
    assert len(desk.client.requests[-1].body["data"]) == 2
    assert desk.writer.writes == 2


def test_no_step_is_long_with_as_much_as_is_kept() -> None:
    """A step for each week once took 0.1 s."""
    accounts, uses = Accounts(), {f"gpu-{n}": HoldUse(1, 2, 3) for n in range(MOST_RESOURCES)}
    for namespace in range(MOST_NAMESPACES):
        for owner in range(MOST_OWNERS):
            accounts.put(AccountKey(week_of(NOW), f"n-{namespace}", f"web-{owner}"), uses)
    assert longest_step_s(lambda: account_codec.write(accounts, NOW)) < MOST_S / 2
    data = outcome(account_codec.write(accounts, NOW))
    assert longest_step_s(lambda: account_codec.read(data)) < MOST_S
