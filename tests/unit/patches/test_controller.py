"""SchedPatches as the watch shows them, and their statuses as they are written."""

import asyncio
from typing import Any

import msgspec
import pytest

from reserver.errors import ApiError
from reserver.k8s.client import MERGE_PATCH, ApiClient
from reserver.k8s.objects.objects import decode, encode
from reserver.k8s.objects.times import show_moment
from reserver.patches.book import NewPod
from reserver.patches.codec import MOST_PODS, PatchObject
from reserver.patches.controller import KEEP_S, SchedPatches
from reserver.patches.model import PatchName
from reserver.patches.slots import RETURN_AFTER_S
from tests.builders import NOW
from tests.unit.k8s.fakes import refused

NAME = PatchName("shop", "fast")
WEB = NewPod(namespace="shop", name="web-0", labels={"app": "web"})


class ApiServer(ApiClient):
    """Keeps one SchedPatch, and refuses writes of an older version."""

    def __init__(self, count: int = 2, ttl: str = "0") -> None:
        self.version = 1
        self.is_gone = False
        spec = {
            "selector": {"matchLabels": {"app": "web"}},
            "maxCount": count,
            "nodeSelector": {"disk": "ssd"},
            "ttl": ttl,
        }
        metadata = {"namespace": "shop", "name": "fast", "uid": "uid", "generation": 1}
        metadata["creationTimestamp"] = show_moment(NOW)
        self.object: dict[str, Any] = {"metadata": metadata, "spec": spec}
        self.failure: ApiError | None = None
        self.writes = 0

    def shown(self) -> PatchObject:
        metadata = {**self.object["metadata"], "resourceVersion": str(self.version)}
        return decode(PatchObject, encode({**self.object, "metadata": metadata}))

    async def delete(self, path: str, options: Any) -> bytes:
        assert path.endswith("/namespaces/shop/schedpatches/fast")
        assert options == {"preconditions": {"uid": "uid", "resourceVersion": str(self.version)}}
        self.is_gone = True
        return b"{}"

    async def patch(self, path: str, body: Any, content_type: str = MERGE_PATCH) -> bytes:
        assert (path.endswith("/fast/status"), content_type) == (True, MERGE_PATCH)
        await asyncio.sleep(0)
        if self.failure is not None:
            raise self.failure
        if body["metadata"]["resourceVersion"] != str(self.version):
            raise refused(409, "Conflict")
        self.version += 1
        self.writes += 1
        self.object["status"] = {k: v for k, v in body["status"].items() if v is not None}
        return encode(self.shown())

    @property
    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.object["status"]
        return found


class World:
    def __init__(self, api: ApiServer, identity: str = "one") -> None:
        self.api, self.now = api, NOW
        self.said: tuple[str, ...] = ()
        self.patches = SchedPatches(api, identity, lambda: self.now, lambda: self.said)
        self.patches.reflector.synced.set()
        self.patches.put(api.shown())
        self.patches.listed()

    async def write(self) -> None:
        await self.patches._write(NAME)

    def patched(self) -> tuple[int, ...]:
        verdict = self.patches.book.decide(WEB, self.now, is_dry_run=False)
        return tuple(mark.slot for mark in verdict.marks)

    def appears(self, slot: int) -> None:
        self.patches.on_pod_patched("shop", f'["fast/uid/{slot}"]')


@pytest.fixture
def world() -> World:
    return World(ApiServer())


async def test_slots_are_recorded_before_they_are_handed_out(world: World) -> None:
    assert world.patched() == ()
    await world.write()
    assert world.api.status["slots"]["stocks"] == [{"by": "one/0", "slots": "0-1"}]
    assert (world.patched(), world.patched(), world.patched()) == ((0,), (1,), ())


async def test_pods_that_appear_are_counted_and_nothing_is_written_twice(world: World) -> None:
    await world.write()
    world.patched()
    world.appears(0)
    await world.write()
    assert world.api.status["patchedPods"] == 1
    writes = world.api.writes
    await world.write()
    assert world.api.writes == writes


@pytest.mark.parametrize("first", [0, MOST_PODS + 1])
@pytest.mark.parametrize("step", [1, 2])
async def test_a_pod_whose_marks_are_forged_again_and_again_leaves_a_bounded_status(
    world: World, first: int, step: int
) -> None:
    """8,000 updates of one pod once made a status of 842 KB, of 128,000 pods."""
    slots = list(range(first, 999_999, step))[: 16 * 200]
    for at in range(0, len(slots), 16):
        marks = [f"fast/uid/{slot}" for slot in slots[at : at + 16]]
        world.patches.on_pod_patched("shop", encode(marks).decode())
    await world.write()
    assert world.api.status["patchedPods"] == (0 if first else MOST_PODS // step)
    assert len(encode(world.api.status)) < 4 * MOST_PODS


async def test_who_was_slower_takes_what_is_left(world: World) -> None:
    other = World(world.api, "two")
    await other.write()
    other.patched()
    await world.write()  # In vain.
    world.patches.put(world.api.shown())
    await world.write()
    assert [stock["by"] for stock in world.api.status["slots"]["stocks"]] == ["two/0"]
    assert world.patched() == ()


async def test_a_successor_takes_over_what_it_finds(world: World) -> None:
    await world.write()
    world.patched()
    successor = World(world.api, "two")
    await successor.write()
    assert world.api.status["slots"]["stocks"] == [{"by": "one/0", "slots": "0-1", "revoked": True}]
    successor.appears(0)
    successor.now += RETURN_AFTER_S
    await successor.write()
    await successor.write()
    assert (successor.patched(), successor.patched()) == ((1,), ())


async def test_who_ends_gives_back_what_it_has_not_handed_out(world: World) -> None:
    await world.write()
    world.patched()
    await world.patches.release()
    assert world.api.status["slots"]["stocks"] == [{"by": "one/0", "slots": "0"}]
    successor = World(world.api, "two")
    await successor.write()
    assert successor.patched() == (1,)


async def test_who_does_not_see_all_pods_writes_nothing(world: World) -> None:
    world.said = ("pods are out of date",)
    await world.write()
    assert world.api.writes == 0
    world.said = ()
    world.patches.reflector.synced.clear()
    await world.write()
    assert world.api.writes == 0


async def test_what_cannot_be_read_patches_none_and_says_so_and_its_count_goes_on(
    world: World,
) -> None:
    await world.write()
    world.patched()
    good = world.api.object["spec"]
    world.api.object["spec"] = {**good, "tolerations": [{"operator": "Equal"}]}
    world.api.version += 1
    world.patches.put(world.api.shown())
    assert world.patched() == ()
    await world.write()
    (condition,) = world.api.status["conditions"]
    assert condition["reason"] == "Invalid"
    assert "spec.tolerations[0].key" in condition["message"]
    world.api.object["spec"] = good
    world.api.version += 1
    world.patches.put(world.api.shown())
    assert world.patched() == (1,)


async def test_the_status_of_an_invalid_patch_is_written_once(world: World) -> None:
    world.api.object["spec"]["maxCount"] = 0
    world.api.version += 1
    for _ in range(5):
        world.patches.put(world.api.shown())
        world.now += 1
        await world.write()
    assert world.api.writes == 1


async def test_who_waits_for_slots_goes_on_once_they_are_recorded(world: World) -> None:
    waiting = asyncio.create_task(world.patches.stocked([NAME], 60))
    await asyncio.sleep(0)
    await world.write()
    await waiting
    assert world.patched() == (0,)


async def test_who_waits_for_slots_does_not_wait_for_ever(world: World) -> None:
    world.api.failure = refused(500)
    await world.patches.stocked([NAME], 0.001)
    await world.write()
    assert world.patched() == ()


async def test_who_waits_for_slots_goes_on_once_the_patch_is_deleted(world: World) -> None:
    waiting = asyncio.create_task(world.patches.stocked([NAME], 60))
    await asyncio.sleep(0)
    world.patches.drop(NAME)
    async with asyncio.timeout(5):
        await waiting
    assert not world.patches._awaited


async def test_an_older_state_than_is_known_changes_nothing(world: World) -> None:
    before = world.api.shown()
    await world.write()
    world.patches.put(before)
    assert world.patched() == (0,)


async def test_nothing_stays_of_a_patch_that_is_gone(world: World) -> None:
    world.patches.drop(NAME)
    await world.write()
    assert (world.patches.names(), world.api.writes, world.patched()) == ((), 0, ())


async def test_a_status_that_somebody_has_broken_hands_out_nothing(world: World) -> None:
    world.api.object["status"] = {"slots": {"spent": "many"}}
    other = World(world.api, "two")
    assert other.patched() == ()
    await other.write()
    assert isinstance(other.api.shown().status, msgspec.Raw)


async def test_a_patch_is_deleted_a_day_after_it_has_expired_and_not_before() -> None:
    world = World(ApiServer(ttl="10m"))
    world.now += 600
    await world.write()
    world.now += KEEP_S - 1
    await world.write()
    assert not world.api.is_gone
    world.now += 1
    await world.write()
    assert world.api.is_gone


async def test_a_patch_that_says_nothing_readable_or_never_expires_is_not_deleted() -> None:
    endless, broken = World(ApiServer()), World(ApiServer(ttl="10m"))
    broken.api.object["spec"]["maxCount"] = 0
    broken.api.version += 1
    broken.patches.put(broken.api.shown())
    for world in (endless, broken):
        world.now += 1000 * KEEP_S
        await world.write()
        assert not world.api.is_gone


async def test_a_patch_that_is_deleted_while_its_status_is_written_stays_deleted(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def patch(path: str, body: Any, content_type: str = MERGE_PATCH) -> bytes:
        answer = await ApiServer.patch(world.api, path, body, content_type)
        world.patches.drop(NAME)
        return answer

    monkeypatch.setattr(world.api, "patch", patch)
    await world.write()
    assert world.api.writes == 1
    assert list(world.patches.names()) == []
    assert world.patched() == ()
