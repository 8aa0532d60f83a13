"""Rounds of a policy that reads load."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from reserver.errors import ApiError, InvalidInput, LoadUnknown, ReserverError
from reserver.rebalance.measured_load import METRICS_API
from tests.unit.k8s.fakes import NO_ANSWER, refused
from tests.unit.rebalance.rounds.world import CLUSTER, POLICY, World

BY_LOAD = (
    POLICY
    + """
gracePeriodSeconds: 5
profiles:
- name: load
  pluginConfig:
  - name: LowNodeLoad
    args: {lowThresholds: {cpu: 40}, highThresholds: {cpu: 80}}
  plugins: {balance: {enabled: [LowNodeLoad]}}
"""
)
USED = {
    "kind": "NodeMetricsList",
    "items": [
        {
            "metadata": {"name": "n1"},
            "timestamp": "1970-01-01T00:16:40Z",
            "window": "15s",
            "usage": {"cpu": "2"},
        }
    ],
}
PODS_USED = {"kind": "PodMetricsList", "items": []}


async def test_load_is_read_where_the_policy_wants_it_and_what_left_is_debited(path: Path) -> None:
    world = World(path, *CLUSTER, USED, PODS_USED, {}, {}, policy=BY_LOAD)
    await world.rebalancer.round()
    assert world.looks[0].loads[METRICS_API].nodes["n1"].usage == {"cpu": 2000.0}
    (eviction,) = world.evicted
    assert eviction["deleteOptions"]["gracePeriodSeconds"] == 5
    (moving,) = world.rebalancer.loads._memories[METRICS_API].moving
    assert (moving.departure.uid, moving.departure.grace_s) == ("uid-web-0", 5)


@pytest.mark.parametrize(
    ("script", "error"),
    [
        ([NO_ANSWER], ApiError),
        ([refused(403)], ApiError),
        ([b"<html>"], InvalidInput),
        ([*CLUSTER, refused(503)], LoadUnknown),
        ([*CLUSTER, USED, refused(503)], LoadUnknown),
        ([*CLUSTER, b"{}", PODS_USED], LoadUnknown),
    ],
    ids=["away", "forbidden", "no list", "no metrics", "no metrics of pods", "no list of metrics"],
)
async def test_a_round_that_does_not_see_everything_does_nothing(
    path: Path, script: list[Any], error: type[ReserverError]
) -> None:
    world = World(path, *script, policy=BY_LOAD)
    with pytest.raises(error):
        await world.rebalancer.round()
    assert (world.looks, world.evicted) == ([], [])


async def test_a_policy_that_asks_prometheus_has_to_say_where_it_is(path: Path) -> None:
    policy = BY_LOAD.replace(
        "{lowThresholds", "{metricsUtilization: {source: Prometheus}, lowThresholds"
    )
    world = World(path, *CLUSTER, policy=policy)
    with pytest.raises(LoadUnknown, match="has no metricsProviders of source Prometheus"):
        await world.rebalancer.round()


async def test_between_rounds_load_is_read_as_often_as_it_is_new(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = {**USED, "items": [{**USED["items"][0], "timestamp": "1970-01-01T00:16:55Z"}]}  # type: ignore[dict-item]
    script = [*CLUSTER, USED, PODS_USED, later, NO_ANSWER, later]
    world = World(path, *script, policy=BY_LOAD, dry_run=True)

    async def sleep(seconds: float) -> None:
        world.now += seconds
        if not world.client.script:
            raise asyncio.CancelledError

    monkeypatch.setattr("reserver.rebalance.rounds.asyncio.sleep", sleep)
    with pytest.raises(asyncio.CancelledError):
        await world.rebalancer.run(60.0, lambda *_: None)
    assert world.rebalancer.loads._memories[METRICS_API].nodes["n1"].at == 1015.0
