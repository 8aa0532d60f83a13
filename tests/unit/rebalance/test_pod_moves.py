"""PodMoves as rounds of rebalancing write them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from reserver.cluster.pod import PodName
from reserver.moves.model import MoveGroup, MoveSpec
from reserver.moves.phases import MoveMode
from reserver.moves.podmove import MoveObject, read_object
from reserver.rebalance.evictions import Pace
from reserver.rebalance.outcomes import MoveOutcome, OutcomeReporter, Result, Terms
from reserver.rebalance.plan import PlannedMove
from reserver.rebalance.pod_moves import PodMoves
from tests.unit.k8s.fakes import NO_ANSWER, ScriptedClient, refused

MOVE = PlannedMove(
    pod=PodName("shop", "web-0"),
    uid="uid-web-0",
    source="n1",
    target="n2",
    strategy="LowNodeLoad",
    profile="default",
    reason="node is overutilized",
)
OTHER = replace(MOVE, pod=PodName("db", "db-0"), uid="uid-db-0", source="n3", target=None)
BESIDE = replace(OTHER, pod=PodName("shop", "db-0"))
DONE: dict[str, Any] = {}
TAKEN = refused(409, "AlreadyExists")


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the time in Unix seconds, which each sleep advances."""
    now = [1000.0]

    async def sleep(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(asyncio, "sleep", sleep)
    return now


async def carried_out(
    client: ScriptedClient,
    clock: list[float],
    *moves: PlannedMove,
    terms: Terms | None = None,
    mode: MoveMode = MoveMode.RESERVE_FIRST,
) -> list[MoveOutcome]:
    reporter = OutcomeReporter(client, "host-1")
    pod_moves = PodMoves(client, lambda: clock[0], Pace(1000, 1000), reporter, mode)
    return await pod_moves.carry_out(moves, terms or Terms())


def written(client: ScriptedClient) -> list[dict[str, Any]]:
    return [each.body for each in client.requests if each.path.endswith("/podmoves")]


async def test_a_pod_move_says_which_pod_where_to_and_who_asks(clock: list[float]) -> None:
    client = ScriptedClient(DONE, DONE, DONE, DONE)
    terms = Terms(grace_period_s=5)
    outcomes = await carried_out(client, clock, MOVE, OTHER, terms=terms)
    assert [(each.result, each.pod_move) for each in outcomes] == [
        (Result.BACKGROUND, "rebalance-f4240-000"),
        (Result.BACKGROUND, "rebalance-f4240-001"),
    ]
    first, second = written(client)
    assert first["metadata"] == {
        "name": "rebalance-f4240-000",
        "namespace": "shop",
        "labels": {
            "reserver.io/rebalance-profile": "default",
            "reserver.io/rebalance-strategy": "LowNodeLoad",
        },
    }
    assert first["spec"]["ttlSecondsAfterFinished"] == 3600
    first["metadata"]["creationTimestamp"] = "1970-01-01T00:16:40Z"
    assert read_object(_object(first)).spec == MoveSpec(
        pod=MOVE.pod,
        uid="uid-web-0",
        node="n2",
        grace_period_s=5,
        group=MoveGroup("rebalance-f4240-000", 1),
        keep_s=3600,
    )
    assert (second["metadata"]["namespace"], "to" in second["spec"]) == ("db", False)
    assert second["spec"]["group"] == {"name": "rebalance-f4240-001", "size": 1}


@pytest.mark.parametrize("mode", [MoveMode.RESERVE_FIRST, MoveMode.SURGE_FIRST])
async def test_pod_moves_have_the_mode_of_the_round(clock: list[float], mode: MoveMode) -> None:
    client = ScriptedClient(DONE, DONE)
    await carried_out(client, clock, MOVE, mode=mode)
    (body,) = written(client)
    assert body["spec"].get("mode", MoveMode.RESERVE_FIRST) == mode


def _object(body: dict[str, Any]) -> MoveObject:
    return msgspec.json.decode(msgspec.json.encode(body), type=MoveObject)


async def test_it_is_an_event_on_the_pod_as_an_eviction_is(clock: list[float]) -> None:
    client = ScriptedClient(DONE, DONE)
    await carried_out(client, clock, MOVE)
    event = client.requests[1].body
    assert (event["action"], event["reason"], event["type"]) == (
        "Descheduled",
        "LowNodeLoad",
        "Normal",
    )
    assert event["note"] == (
        "pod eviction from n1 node by sigs.k8s.io/descheduler through PodMove "
        "rebalance-f4240-000: node is overutilized"
    )


async def test_one_without_an_answer_is_written_again_and_may_be_there_already(
    clock: list[float],
) -> None:
    client = ScriptedClient(NO_ANSWER, TAKEN, DONE)
    (outcome,) = await carried_out(client, clock, MOVE)
    assert (outcome.result, len(written(client))) == (Result.BACKGROUND, 2)
    client = ScriptedClient(TAKEN)
    (outcome,) = await carried_out(client, clock, MOVE)
    assert outcome.result is Result.ERROR


async def test_without_any_answer_it_is_given_up_when_the_patience_of_the_round_ends(
    clock: list[float],
) -> None:
    client = ScriptedClient(*[NO_ANSWER] * 99)
    (outcome,) = await carried_out(client, clock, MOVE, terms=Terms(patience_s=30))
    assert (outcome.result, clock[0] <= 1030, len(written(client)) > 3) == (
        Result.ERROR,
        True,
        True,
    )


async def test_what_needs_the_room_of_one_that_is_refused_is_not_written(
    clock: list[float],
) -> None:
    follower = replace(BESIDE, target="n1")
    free = replace(BESIDE, pod=PodName("shop", "db-1"), target="n4")
    client = ScriptedClient(refused(403, "Forbidden"), DONE, DONE)
    outcomes = await carried_out(client, clock, MOVE, follower, free)
    assert [each.result for each in outcomes] == [Result.ERROR, Result.ERROR, Result.BACKGROUND]
    assert "the API server said 403" in outcomes[0].why
    assert outcomes[1].why == "the pod whose room it needs is not moved"
    assert [each["spec"]["pod"]["name"] for each in written(client)] == ["web-0", "db-1"]


async def test_moves_that_need_each_others_room_are_a_group(clock: list[float]) -> None:
    follower = replace(BESIDE, target="n1")
    client = ScriptedClient(*[DONE] * 4)
    await carried_out(client, clock, MOVE, follower)
    groups = [each["spec"]["group"] for each in written(client)]
    assert groups == [{"name": "rebalance-f4240-000", "size": 1}] * 2


def steps() -> tuple[PlannedMove, PlannedMove, PlannedMove]:
    """Return the moves of two pods that change places through a third node."""
    aside, across = replace(MOVE, target="n4"), replace(BESIDE, target="n1")
    return aside, across, replace(MOVE, source="n4", target="n3")


async def test_the_second_step_of_a_pod_follows_the_first_one(clock: list[float]) -> None:
    client = ScriptedClient(*[DONE] * 6)
    outcomes = await carried_out(client, clock, *steps())
    aside, across, home = written(client)
    name = aside["metadata"]["name"]
    assert aside["spec"]["pod"] == {"name": "web-0", "uid": "uid-web-0"}
    assert home["spec"]["pod"] == {"name": "web-0", "after": name}
    assert (home["spec"]["to"], across["spec"]["to"]) == ({"node": "n3"}, {"node": "n1"})
    assert {each["spec"]["group"]["name"] for each in (aside, across, home)} == {name}
    assert outcomes[0].pod_move == name


async def test_the_second_step_of_a_pod_is_not_written_without_the_first_one(
    clock: list[float],
) -> None:
    client = ScriptedClient(refused(403, "Forbidden"))
    outcomes = await carried_out(client, clock, *steps())
    assert [each.result for each in outcomes] == [Result.ERROR] * 3
    assert outcomes[2].why == "the move before it is not made"
    assert len(written(client)) == 1


async def test_room_for_a_pending_pod_is_written_first_and_nobody_begins_before_the_last(
    clock: list[float],
) -> None:
    room = replace(BESIDE, source="", target="n1", strategy="MakeRoom")
    client = ScriptedClient(*[DONE] * 3)
    outcomes = await carried_out(client, clock, room, MOVE)
    assert [each.result for each in outcomes] == [Result.BACKGROUND] * 2
    first, second = written(client)
    assert (first["spec"]["pod"]["name"], first["spec"]["to"]) == ("db-0", {"node": "n1"})
    assert first["spec"]["group"] == second["spec"]["group"]
    assert first["spec"]["group"] == {"name": "rebalance-f4240-000", "size": 2}
    (event,) = [each.body for each in client.requests if each.path.endswith("/events")]
    assert event["regarding"]["name"] == "web-0"  # A pod without a node is not evicted.


async def test_a_profile_whose_name_cannot_be_a_label_is_left_out(clock: list[float]) -> None:
    client = ScriptedClient(DONE, DONE)
    await carried_out(client, clock, replace(MOVE, profile="by day, and by night"))
    assert list(written(client)[0]["metadata"]["labels"]) == ["reserver.io/rebalance-strategy"]


def declared(client: ScriptedClient) -> list[dict[str, Any]]:
    return [each.body for each in client.requests if each.path.endswith("/podmovegroups")]


async def test_a_group_of_several_namespaces_is_declared_before_its_moves(
    clock: list[float],
) -> None:
    aside, _, home = steps()
    client = ScriptedClient(*[DONE] * 7)
    await carried_out(client, clock, aside, replace(OTHER, target="n1"), home)
    assert client.requests[0].path.endswith("/podmovegroups")
    (group,) = declared(client)
    name = "rebalance-f4240-000"
    assert (group["kind"], group["metadata"]) == ("PodMoveGroup", {"name": name})
    assert group["spec"]["members"] == [
        {"namespace": "shop", "name": name, "uid": "uid-web-0"},
        {"namespace": "db", "name": "rebalance-f4240-001", "uid": "uid-db-0"},
        {"namespace": "shop", "name": "rebalance-f4240-002"},  # This move follows the first one.
    ]
    said = {"name": name, "size": 1, "acrossNamespaces": True}
    assert [each["spec"]["group"] for each in written(client)] == [said] * 3


async def test_what_cannot_be_declared_is_not_written_and_all_else_is(clock: list[float]) -> None:
    follower = replace(OTHER, target="n1")
    free = replace(BESIDE, pod=PodName("shop", "db-1"), source="n5", target="n6")
    client = ScriptedClient(refused(403, "Forbidden"), DONE, DONE)
    outcomes = await carried_out(client, clock, MOVE, follower, free)
    assert [each.result for each in outcomes] == [Result.ERROR, Result.ERROR, Result.BACKGROUND]
    assert "the API server said 403" in outcomes[0].why
    assert [each["spec"]["pod"]["name"] for each in written(client)] == ["db-1"]
