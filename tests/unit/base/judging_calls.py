"""Calls, writes and feeds in which one thing raises an error."""

from __future__ import annotations

import asyncio
from typing import cast

import grpc
import pytest

from reserver.cluster.pod import Pod
from reserver.extender.placer import Placer
from reserver.extender.protocol import ExtenderBindingArgs
from reserver.extender.requeue import Requeue
from reserver.grpc import interceptor as calls_module
from reserver.grpc.access import Call
from reserver.grpc.catalogue import Catalogue
from reserver.grpc.feed import ReservationFeed
from reserver.http.access import answer
from reserver.http.message import Handler, HttpRequest, HttpResponse, text
from reserver.reservations.reservation import Ref
from reserver.reservations.status import ShortNodes
from reserver.scheduling.state import State
from reserver.scheduling.verdicts import Effect, Nominate
from reserver.v1 import reservation_pb2 as pb
from tests.builders import NOW, pod, ref
from tests.unit.base.quarantined import POISON
from tests.unit.extender.conftest import Served
from tests.waiting import until


async def in_an_effect(_: pytest.MonkeyPatch) -> None:
    carried: list[str] = []

    class Carrier:
        async def carry_out(self, effect: Effect) -> None:
            if effect.pod.name.name == POISON:
                raise ZeroDivisionError
            carried.append(effect.pod.name.name)

    requeue = Requeue(Carrier(), dict, lambda: 0.0)
    sending = asyncio.create_task(requeue.run())
    for name in ("a", POISON, "z"):
        requeue.send(Nominate(pod(name), "worker-1"))
    await until(lambda: not len(requeue))
    sending.cancel()
    assert carried == ["a", "z"]


async def in_a_binding(patch: pytest.MonkeyPatch) -> None:
    async with asyncio.TaskGroup() as tasks:
        served = Served(tasks)
        served.show(pod(POISON, cpu="4"), pod("a", cpu="4"))

        async def bind(asking: Pod, *_: object) -> None:
            if asking.name.name == POISON:
                raise ZeroDivisionError

        patch.setattr(served.cluster, "bind", bind)
        for name, words in ((POISON, "fault in reserver"), ("a", "")):
            args = ExtenderBindingArgs(name, "shop", f"uid-{name}", "worker-1")
            answer = (await served.bindings.bind(args)).refusal
            assert (words in str(answer)) if words else answer is None


async def in_a_whole_pass(patch: pytest.MonkeyPatch) -> None:
    looks = asyncio.Event()
    times = 0

    async def look(*_: object) -> None:
        nonlocal times
        times += 1
        if times == 1:
            raise ZeroDivisionError
        looks.set()

    patch.setattr(Placer, "look", look)
    placer = Placer(lambda: NOW)
    running = asyncio.create_task(placer.run(State()))
    while not looks.is_set():
        placer.on_reservation_changed(ref("r"))
        await asyncio.sleep(0)
    running.cancel()


async def in_the_feed(_: pytest.MonkeyPatch) -> None:
    class Shows:
        def short_nodes(self) -> ShortNodes:
            return ShortNodes({}, frozenset())

        def written(self, at: Ref) -> list[tuple[Ref, str]]:
            if at.key == POISON:
                raise ZeroDivisionError
            return [(at, "")]

        def show_written(self, at: Ref, *_: object) -> pb.Reservation:
            return pb.Reservation(id=at.key)

        def broken(self, _: Ref) -> list[pb.Reservation]:
            return []

    feed = ReservationFeed(cast(Catalogue, Shows()))
    for key in ("a", POISON, "z"):
        feed.on_reservation_changed(ref(key))
    await feed.catch_up()
    shown = (pb.Reservation.FromString(packed) for _, packed in feed.named())
    assert sorted(each.id for each in shown) == ["a", "z"]


async def in_an_http_call(_: pytest.MonkeyPatch) -> None:
    def at_once(request: HttpRequest) -> HttpResponse:
        if request.path == f"/{POISON}":
            raise ZeroDivisionError
        return text("ok")

    async def later(request: HttpRequest) -> HttpResponse:
        return at_once(request)

    async def statuses(handler: Handler) -> list[int]:
        paths = dict.fromkeys((f"/{POISON}", "/filter"), ("POST", handler))
        answers = [answer(paths, HttpRequest("POST", path, {})) for path in paths]
        return [(a if isinstance(a, HttpResponse) else await a).status for a in answers]

    assert await statuses(later) == [500, 200]
    assert await statuses(at_once) == [500, 200]


async def in_a_grpc_call(_: pytest.MonkeyPatch) -> None:
    refused = calls_module._fault(Call("Capacity/Get", "get", "reservations"), ZeroDivisionError())
    assert refused.code is grpc.StatusCode.INTERNAL
    with pytest.raises(MemoryError):
        calls_module._fault(Call("Capacity/Get", "get", "reservations"), MemoryError())
