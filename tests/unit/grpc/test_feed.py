import asyncio
import tracemalloc
from collections.abc import Iterable

import grpc
import pytest

from reserver.base.pacer import Pacer, outcome
from reserver.errors import InvalidInput
from reserver.grpc import feed as module
from reserver.grpc import watcher as watchers
from reserver.grpc.catalogue import Catalogue
from reserver.grpc.feed import ReservationFeed
from reserver.grpc.selection import ReservationSelector
from reserver.grpc.status_errors import CallError
from reserver.grpc.watcher import FeedChange, Watcher
from reserver.reservations.reservation import Ref
from reserver.reservations.status import ShortNodes
from reserver.scheduling.state import State
from reserver.stores.archive import Archive
from reserver.stores.configmap.entries import read_key
from reserver.stores.entries import Entries
from reserver.stores.status import RoomReport
from reserver.v1 import reservation_pb2 as pb
from tests.builders import NOW, node, pod, ref, state_of

TEXT = "owners: [{pod: {name: owner}}]\nresources: {cpu: 1}\nnode: worker-1\nttl: 0\n"


class Written:
    """The written entries, by key."""

    def __init__(self) -> None:
        self.keys: dict[Ref, str] = {}
        self.room = RoomReport(lambda _: None)

    def find(self, _: str) -> None:
        return None

    def latest(self, place: Ref) -> tuple[str, Entries] | None:
        text = self.keys.get(place)
        return None if text is None else (text, read_key(place, text, NOW))

    def labels(self, _: Ref) -> dict[str, str]:
        return {}

    def short_nodes(self, state: State, now: float) -> ShortNodes:
        return self.room.look(state, now)


class Scene:
    def __init__(self) -> None:
        self.written = Written()
        self.state = state_of(node("worker-1", cpu="4"))
        self.feed = ReservationFeed(
            Catalogue(self.written, self.state, lambda: NOW, "home", Archive(0.0))
        )
        self.written.room = RoomReport(self.feed.on_reservation_changed)

    async def write(self, *keys: str, text: str | None = TEXT) -> None:
        for key in keys:
            self.feed.on_reservation_changed(ref(key))
            if text is None:
                del self.written.keys[ref(key)]
            else:
                self.written.keys[ref(key)] = text
        await self.feed.catch_up()


def shown(scene: Scene) -> list[pb.Reservation]:
    return [pb.Reservation.FromString(packed) for _, packed in scene.feed.named()]


def ends(changes: Iterable[FeedChange]) -> list[tuple[bool, bool]]:
    return [(change.before is not None, change.after is not None) for change in changes]


async def test_a_hold_whose_node_was_short_between_two_passes_is_shown_in_force() -> None:
    scene = Scene()
    outcome(scene.written.room.report(scene.state, NOW))  # As the status writers do in each pass.
    leaving = pod("leaving", node="worker-1", cpu="4")
    scene.state.pod_seen(leaving)
    (held,) = read_key(ref("a"), TEXT, NOW).reservations
    scene.state.ledger.put(held)
    await scene.write("a")
    assert [each.status.backed for each in shown(scene)] == [False]
    scene.state.pod_gone(leaving.name)
    outcome(scene.written.room.report(scene.state, NOW))
    await scene.feed.catch_up()
    assert [each.status.backed for each in shown(scene)] == [True]


async def test_room_is_not_judged_by_an_earlier_turn() -> None:
    scene = Scene()
    leaving = pod("leaving", node="worker-1", cpu="4")
    scene.state.pod_seen(leaving)
    for key in "ab":
        (held,) = read_key(ref(key), TEXT, NOW).reservations
        scene.state.ledger.put(held)
        scene.written.keys[ref(key)] = TEXT
        scene.feed.on_reservation_changed(ref(key))
    with scene.feed.watching() as watcher:

        async def room_comes_after_the_first() -> None:
            await watcher.next()
            scene.state.pod_gone(leaving.name)

        coming = asyncio.create_task(room_comes_after_the_first())
        # The turn ends after the first event, in the middle of the comparison.
        ticks = iter([0.0, 0.0, *[1.0] * 100])
        await scene.feed.catch_up(Pacer(0.5, ticks.__next__))
        await coming
    assert [(each.id[-1], each.status.backed) for each in shown(scene)] == [
        ("a", False),
        ("b", True),
    ]


async def test_what_comes_changes_and_goes_is_told_in_order_and_once() -> None:
    scene = Scene()
    token = scene.feed.token
    await scene.write("a")
    await scene.write("a")
    await scene.write("a", text=TEXT.replace("cpu: 1", "cpu: 2"))
    await scene.write("a", text=None)
    assert ends(scene.feed.since(token)) == [(False, True), (True, True), (True, False)]
    assert scene.feed.since(scene.feed.token) == []


@pytest.mark.parametrize("bound", ["REMEMBERED", "REMEMBERED_BYTES"])
async def test_what_is_forgotten_is_not_passed_over(
    monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    scene = Scene()
    await scene.write("a")
    (change,) = scene.feed.since(f"{scene.feed.token.partition('.')[0]}.0")
    monkeypatch.setattr(module, bound, 2 * (change.size if "BYTES" in bound else 1))
    tokens = []
    for key in "bcde":
        tokens.append(scene.feed.token)
        await scene.write(key)
    assert len(scene.feed.since(tokens[2])) == 2
    for token in (tokens[1], Scene().feed.token):
        with pytest.raises(CallError) as caught:
            scene.feed.since(token)
        assert caught.value.code is grpc.StatusCode.OUT_OF_RANGE


@pytest.mark.parametrize("token", ["x", "a.b", "a.-1", "a.٣", f"a.{'9' * 40}", "."])
async def test_what_is_no_token_is_named(token: str) -> None:
    with pytest.raises(InvalidInput, match="resumeToken"):
        Scene().feed.since(token)


async def test_who_reads_too_slowly_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchers, "QUEUE", 2)
    scene = Scene()
    with scene.feed.watching() as slow, scene.feed.watching() as quick:
        for key in "abc":
            await scene.write(key)
            await quick.next()
        with pytest.raises(CallError) as caught:
            await slow.next()
        assert caught.value.code is grpc.StatusCode.RESOURCE_EXHAUSTED
        scene.feed.end()
        with pytest.raises(CallError) as caught:
            await quick.next()
        assert caught.value.code is grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize("queue", [1, 1_000])
async def test_a_watch_that_is_not_read_keeps_few_bytes(
    queue: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchers, "QUEUE", queue)
    watcher, most = Watcher(), 2**20 if queue == 1 else watchers.REMEMBERED_BYTES
    tracemalloc.start()
    try:
        for number in range(64):
            watcher.add(FeedChange(number, None, bytes(2**20), 2**20))
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < most
    with pytest.raises(CallError) as caught:
        await watcher.next()
    assert caught.value.code is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_a_watch_that_is_not_read_does_not_keep_what_it_had_to_send_first() -> None:
    feed, number = Scene().feed, 0

    def change_all() -> None:
        nonlocal number
        for key in map(str, range(40)):
            number += 1
            before = feed._known.get(ref(key), {}).get(key)
            shown = pb.Reservation(id=key, etag=str(number), author="a" * 2**20)
            feed._known[ref(key)] = {key: shown.SerializeToString()}
            after, size = feed._known[ref(key)][key], 2**20 * (2 if before else 1)
            feed._publish(FeedChange(number, before, after, size))

    everything = ReservationSelector.of(pb.ReservationFilter(), {})
    watches = [module.follow(feed, "", everything) for _ in range(3)]
    tracemalloc.start()
    try:
        change_all()
        change_all()
        before, _ = tracemalloc.get_traced_memory()
        for watch in watches:
            await anext(watch)
            change_all()
        kept = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert kept < 10 * 2**20  # All reservations have 40 MiB.
    for watch in watches:
        with pytest.raises(CallError, match="too many changes"):
            await anext(watch)


async def test_a_watch_that_resumes_too_slowly_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchers, "QUEUE", 2)
    scene, everything = Scene(), ReservationSelector.of(pb.ReservationFilter(), {})
    await scene.write("a")
    token = scene.feed.token
    await scene.write("b", "c")
    watch = module.follow(scene.feed, token, everything)
    assert (await anext(watch)).reservation.name == "b"
    await scene.write("d", "e", "f")
    with pytest.raises(CallError, match="too many changes"):
        await anext(watch)


class Counting(Pacer):
    """Counts the chances of a pass to give way."""

    ways = 0

    async def give_way(self) -> bool:
        self.ways += 1
        return True


async def test_refs_where_nothing_is_written_give_way_too() -> None:
    scene, pacer = Scene(), Counting()
    for number in range(20):
        scene.feed.on_reservation_changed(ref(f"gone-{number}"))
    await scene.feed.catch_up(pacer)
    assert pacer.ways >= 20
