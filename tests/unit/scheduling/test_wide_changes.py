"""Events on many nodes change one of them: work is counted, not timed."""

from dataclasses import replace

import pytest

from reserver.cluster.pod import Pod
from reserver.reservations.node_holds import NodeHolds
from reserver.scheduling.bind import judge_bind
from reserver.scheduling.verdicts import Nominate
from tests.builders import NOW, held, pod, rule, wake
from tests.unit.scheduling.wide import NODES, WEB, counting, crowd, everywhere


@pytest.fixture
def owners() -> list[Pod]:
    r = everywhere([rule(controller=WEB)])
    return [
        replace(pod(f"w-{n}", controller=WEB, cpu="1", node=f"n{n}", claims=[r]), revision=9 + n)
        for n in range(100)
    ]


def test_an_event_that_changes_no_claim_settles_nothing(
    monkeypatch: pytest.MonkeyPatch, owners: list[Pod]
) -> None:
    state = crowd(everywhere([rule(controller=WEB)]))
    for one in owners:
        state.pod_seen(one)
    before = [held(state, name) for name in NODES]
    settled = counting(monkeypatch, type(state.ledger), "_settle")
    for one in owners:
        state.pod_seen(replace(one, revision=one.revision + 1000))
    assert settled.calls == 0
    assert [held(state, name) for name in NODES] == before


@pytest.mark.parametrize("listed", [True, False])
def test_a_claim_changes_what_is_held_on_its_node_and_nowhere_else(
    monkeypatch: pytest.MonkeyPatch,
    owners: list[Pod],
    listed: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    state = crowd(everywhere([rule(controller=WEB)]))
    changed = counting(monkeypatch, NodeHolds, "hold")
    for one in owners:
        state.pod_seen(one, listed=listed)
    assert changed.calls == len(owners)
    assert [held(state, name) for name in NODES] == [0] * 100 + [3000] * 200


def test_a_binding_under_way_and_its_failure_change_one_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state = crowd(everywhere([rule(controller=WEB)]))
    own = pod("w", controller=WEB, cpu="1")
    state.pod_seen(own)
    changed = counting(monkeypatch, NodeHolds, "hold")
    verdict = judge_bind(own, "n5", state, NOW)
    state.assume(own, "n5", verdict.claims)
    assert held(state, "n5") == 0
    state.forget(own.uid)
    assert held(state, "n5") == 3000
    assert changed.calls == 2


def test_a_slot_that_comes_back_changes_one_node(
    monkeypatch: pytest.MonkeyPatch, owners: list[Pod]
) -> None:
    wide = everywhere([rule(controller=WEB)], reusable=True)
    state = crowd(wide)
    owners = [replace(one, claims=frozenset({wide.identity})) for one in owners]
    for one in owners:
        state.pod_seen(one)
    changed = counting(monkeypatch, NodeHolds, "hold")
    for one in owners[:10]:
        state.pod_gone(one.name)
    assert changed.calls == 10
    assert [held(state, name) for name in NODES[:11]] == [3000] * 10 + [0]


def test_who_waits_is_sent_to_its_seat_on_what_became_free() -> None:
    state = crowd(everywhere([rule(controller=WEB)], require=True))
    for number in range(20):
        one = pod(f"w-{number}", controller=WEB, cpu="1")
        state.pod_seen(one)
        state.judged(one, NODES[:5], waits=True)
    assert {effect.node for effect in wake(["n9"], state, NOW) if isinstance(effect, Nominate)} == {
        "n9"
    }
