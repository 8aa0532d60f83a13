"""An etcd that was replaced while its API server goes on, whose caches do not show this."""

import asyncio
import os
from collections.abc import Callable
from itertools import count
from typing import NoReturn

import pytest

from reserver.base.pacer import outcome
from reserver.errors import WentBack
from reserver.k8s.objects.objects import PartialObject
from reserver.k8s.watch import back_in_time
from reserver.k8s.watch.back_in_time import SILENT_AFTER_S, EtcdCheck
from reserver.k8s.watch.object_view import Key, ObjectView
from reserver.k8s.watch.reflector import Reflector
from tests.unit.k8s.fakes import NO_ANSWER, refused
from tests.unit.k8s.watch.etcd_view import PODS, STORES, Etcd, World

A, B = ("shop", "a"), ("shop", "b")


@pytest.mark.parametrize("path", [PODS, STORES])
@pytest.mark.parametrize(
    ("known", "last", "etcd", "is_back"),
    [
        pytest.param({}, None, {}, False, id="nothing is known"),
        pytest.param({A: 5, B: 9}, None, {A: 5, B: 9}, False, id="a list shows what is there"),
        pytest.param({A: 5, B: 9}, None, {A: 5, B: 11}, False, id="it has changed since"),
        pytest.param({A: 5, B: 9}, None, {A: 5, B: 7}, True, id="it was older"),
        pytest.param({A: 5, B: 9}, None, {A: 5}, True, id="it was not there yet"),
        pytest.param({A: 5, B: 9}, (A, 12), {A: 12, B: 9}, False, id="a watch shows what is there"),
        pytest.param({A: 5, B: 9}, (A, 12), {A: 10, B: 9}, True, id="it was older than a change"),
        pytest.param({A: 5}, (B, 12), {A: 5}, False, id="it was deleted"),
        pytest.param({A: 5}, (B, 12), {A: 5, B: 13}, False, id="it was made again"),
        pytest.param({A: 5}, (B, 12), {A: 5, B: 9}, True, id="it was not deleted yet"),
        pytest.param({A: 5}, (B, 12), {A: 4}, True, id="what is left was older"),
    ],
)
@pytest.mark.usefixtures("pauses")
async def test_what_changed_last_is_compared(
    path: str,
    known: dict[Key, int],
    last: tuple[Key, int] | None,
    etcd: dict[Key, int],
    *,
    is_back: bool,
) -> None:
    known = dict(known)
    if last is not None and last[0] in known:
        known[last[0]] = last[1]
    world = World(known, etcd, path)
    world.reflector.last_change = last
    if is_back:
        with pytest.raises(
            WentBack, match=r"^shop/[ab] is (at resourceVersion \d+|gone) and was at"
        ):
            await world.compare()
    else:
        await world.compare()


@pytest.mark.usefixtures("pauses")
async def test_a_watch_may_be_late_with_a_deletion() -> None:
    world = World({A: 5}, {})
    world.shows_what_was_missed = lambda: world.known.pop(A)
    await world.compare()


async def test_a_view_that_keeps_no_revisions_is_not_compared() -> None:
    etcd = Etcd()
    view = ObjectView(PartialObject, lambda *_: None, lambda _: None, known=lambda: [A])
    await EtcdCheck().pass_first(etcd, [Reflector(etcd, PODS, view)])
    assert not etcd.requests


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the exit statuses of the process."""
    statuses: list[int] = []

    def end(status: int) -> NoReturn:
        statuses.append(status)
        raise SystemError

    monkeypatch.setattr(os, "_exit", end)
    return statuses


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(100):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it does not come")


@pytest.mark.usefixtures("pauses")
async def test_a_start_refuses_caches_that_are_ahead_until_their_api_server_is_restarted(
    ended: list[int],
) -> None:
    world, check = World({A: 5}, {A: 3}), EtcdCheck()
    world.reflector.watches = 1
    start = asyncio.create_task(check.pass_first(world.etcd, [world.reflector]))
    await until(lambda: "restart each kube-apiserver" in check.obstacle)
    world.etcd.objects = dict.fromkeys(world.etcd.objects, 7)  # etcd has come as far.
    for _ in range(20):
        await asyncio.sleep(0)
    assert not start.done()
    world.reflector.watches = 2
    with pytest.raises(SystemError):
        await start
    assert ended == [1]


@pytest.mark.usefixtures("pauses")
async def test_a_start_waits_until_etcd_answers() -> None:
    world, check = World({A: 5}, {A: 5}), EtcdCheck()
    world.etcd.fault = refused(403)
    start = asyncio.create_task(check.pass_first(world.etcd, [world.reflector]))
    await until(lambda: "rbac" in check.obstacle)
    assert not start.done()
    world.etcd.fault = None
    await start
    assert not check.obstacle


@pytest.mark.usefixtures("pauses")
async def test_a_start_says_so_if_etcd_gives_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(back_in_time, "SILENT_AFTER_S", 0.0)
    world, check = World({A: 5}, {A: 5}), EtcdCheck()
    answered, world.etcd.answers = world.etcd.answers, asyncio.Event()
    start = asyncio.create_task(check.pass_first(world.etcd, [world.reflector]))
    await until(lambda: "no answer in time" in check.obstacle)
    monkeypatch.setattr(back_in_time, "SILENT_AFTER_S", SILENT_AFTER_S)
    world.etcd.answers = answered
    await start
    assert not check.obstacle


async def test_a_write_that_ends_a_hold_waits_for_the_answer_of_etcd() -> None:
    world, check = World({A: 5}, {A: 5}), EtcdCheck()
    assert await check.agrees(world.etcd, [world.reflector])
    assert not world.etcd.requests  # Nothing is known that a start has not compared.
    outcome(world.reflector.view.newest())
    world.etcd.answers = asyncio.Event()
    asked = [asyncio.create_task(check.agrees(world.etcd, [world.reflector])) for _ in range(3)]
    await until(lambda: bool(world.etcd.requests))
    assert not any(each.done() for each in asked)
    world.etcd.answers.set()
    assert await asyncio.gather(*asked) == [True] * 3
    assert len(world.etcd.requests) == 2  # The first may have been answered before others asked.
    assert await check.agrees(world.etcd, [world.reflector])
    assert len(world.etcd.requests) == 3
    assert await check.agrees(world.etcd, [world.reflector], within_s=60.0)
    assert len(world.etcd.requests) == 3
    world.etcd.fault = NO_ANSWER
    assert not await check.agrees(world.etcd, [world.reflector])


@pytest.mark.usefixtures("pauses")
async def test_a_write_that_ends_a_hold_is_not_sent_to_an_etcd_that_was_restored(
    ended: list[int],
) -> None:
    """The claim is of a lost pod; all preconditions of the write may still hold."""
    world = World({A: 5, B: 9}, {A: 5})
    outcome(world.reflector.view.newest())
    assert not await EtcdCheck().agrees(world.etcd, [world.reflector])
    assert not ended
    assert "restart each kube-apiserver" in world.etcd.frozen


@pytest.mark.usefixtures("pauses")
async def test_a_pod_is_not_bound_to_room_whose_hold_was_released_in_a_time_that_no_longer_is() -> (
    None
):
    """The hold is restored; the newest pod is in the present history."""
    pods, holds = World({A: 15}, {A: 15}), World({}, {B: 9}, STORES)
    pods.etcd.objects |= holds.etcd.objects
    outcome(pods.reflector.view.newest())
    holds.reflector.last_change = B, 12
    assert not await EtcdCheck().agrees(pods.etcd, [pods.reflector, holds.reflector])


async def test_who_asks_again_at_once_has_the_newest_change_of_all_views_read() -> None:
    pods, holds = World({A: 15}, {A: 15}), World({B: 9}, {B: 9}, STORES)
    pods.etcd.objects |= holds.etcd.objects
    views = [pods.reflector, holds.reflector]
    for each in views:
        outcome(each.view.newest())
    check, asked = EtcdCheck(lambda: 100.0), pods.etcd.requests
    assert await check.agrees(pods.etcd, views)
    assert len(asked) == len(views)
    assert await check.agrees(pods.etcd, views)
    assert [each.path for each in asked[len(views) :]] == ["/api/v1/namespaces/shop/pods/a"]


@pytest.mark.usefixtures("pauses")
@pytest.mark.parametrize("is_asked", [False, True])
async def test_what_is_seen_later_is_remembered_until_the_api_server_is_restarted(
    ended: list[int], *, is_asked: bool
) -> None:
    """A new process would trust the caches once etcd reaches its former revision."""
    world, check = World({A: 5}, {A: 5}), EtcdCheck()
    run = asyncio.create_task(check.run(world.etcd, [world.reflector]))
    await until(lambda: len(world.etcd.requests) > 2)
    assert not run.done()
    world.etcd.objects = {}
    if is_asked:
        outcome(world.reflector.view.newest())
        assert not await check.agrees(world.etcd, [world.reflector])
    await until(lambda: "restart each kube-apiserver" in check.obstacle)
    world.etcd.objects = {"/api/v1/namespaces/shop/pods/a": 7}
    for _ in range(20):
        await asyncio.sleep(0)
    assert not run.done()
    assert check.obstacle
    assert not await check.agrees(world.etcd, [world.reflector])
    world.reflector.watches += 1
    with pytest.raises(SystemError):
        await run
    assert ended == [1]


@pytest.mark.usefixtures("pauses")
async def test_nothing_is_decided_while_etcd_is_silent_for_long() -> None:
    """Etcd may be replaced in the meantime."""
    moments = count(0.0, SILENT_AFTER_S / 4)
    world, check = World({A: 5}, {A: 5}), EtcdCheck(lambda: next(moments))
    run = asyncio.create_task(check.run(world.etcd, [world.reflector]))
    await until(lambda: len(world.etcd.requests) > 2)
    world.etcd.fault, asked = NO_ANSWER, len(world.etcd.requests)
    await until(lambda: len(world.etcd.requests) == asked + 1)
    assert not check.obstacle
    await until(lambda: "connection refused" in check.obstacle)
    world.etcd.fault = None
    await until(lambda: not check.obstacle)
    run.cancel()
