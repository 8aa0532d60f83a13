"""The answers of the webhooks, over HTTP."""

import asyncio
import base64
import io
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest

from reserver.base.quarantine import Component
from reserver.cluster.labels import equals
from reserver.errors import InvalidInput, NotReady
from reserver.http.access import Access, listening
from reserver.http.connections import Hosts
from reserver.http.message import Paths
from reserver.k8s.objects.limits import POD
from reserver.k8s.objects.pod_annotations import MARKS_ANNOTATION
from reserver.patches.book import Book
from reserver.patches.model import PatchName, SchedPatch, Scheduling
from reserver.patches.slots import PatchSlots
from reserver.webhook.handlers import PATCH_PATH, RESIZE_PATH, WEBHOOK_LIMITS, Webhooks
from reserver.webhook.review import ReviewRequest

FAST = PatchName("shop", "fast")
JSON = {"Content-Type": "application/json"}


class World:
    """A book, and statuses that a test writes."""

    def __init__(self, count: int = 1) -> None:
        self.book = Book("one", lambda _: None)
        self.said: tuple[str, ...] = ()
        self.asked: list[PatchName] = []
        self.writes = True
        self.refusal: Any = None
        self.counted: list[tuple[str, str]] = []
        self.now = 0.0
        self.slots: PatchSlots = self.book.put(
            SchedPatch(
                name=FAST,
                uid="uid",
                selector=equals({"app": "web"}),
                max_count=count,
                injected=Scheduling(node_selector={"disk": "ssd"}),
            )
        ).slots

    def obstacles(self) -> tuple[str, ...]:
        return self.said

    async def stocked(self, names: Iterable[PatchName], patience_s: float) -> None:
        assert 0 < patience_s <= 1
        self.asked += names
        await asyncio.sleep(0)
        if self.writes:
            self.slots.recorded(self.slots.wanted(0.0, is_over=False), 1, 0.0, inherits=False)
        else:
            self.said = ("the API server is away",)

    async def judge(self, _: ReviewRequest) -> str | None:
        if isinstance(self.refusal, Exception):
            raise self.refusal
        return str(self.refusal) if self.refusal else None

    async def ask(self, path: str = PATCH_PATH, **request: Any) -> dict[str, Any]:
        metrics: Any = SimpleNamespace(count_webhook=lambda *a: self.counted.append(a[:2]))
        paths = Webhooks(self, self.judge, lambda: self.now, metrics).paths()
        pod = {"metadata": {"name": "web-0", "labels": {"app": "web"}}, "spec": {"containers": []}}
        whole = {"uid": "u", "namespace": "shop", "operation": "CREATE", "object": pod, **request}
        async with served(paths) as client:
            body = io.BytesIO(json.dumps({"request": whole}).encode())
            response = await client.post(path, data=body, headers=JSON)
            assert response.status == 200
            answer: dict[str, Any] = (await response.json())["response"]
        assert answer["uid"] == "u"
        return answer


@asynccontextmanager
async def served(paths: Paths) -> AsyncIterator[aiohttp.ClientSession]:
    door = Access(WEBHOOK_LIMITS, Hosts.of("127.0.0.1", ()), lambda _: None)
    async with (
        listening(paths, ("127.0.0.1", 0), 1.0, door) as url,
        aiohttp.ClientSession(url) as client,
    ):
        yield client


def operations(answer: dict[str, Any]) -> dict[str, Any]:
    patch = json.loads(base64.b64decode(answer.get("patch", "") or b"W10="))
    return {each["path"]: each.get("value") for each in patch}


async def test_a_pod_is_patched_once_its_slot_is_recorded() -> None:
    world = World()
    answer = await world.ask()
    assert world.asked == [FAST]
    assert operations(answer) == {
        "/spec/nodeSelector": {"disk": "ssd"},
        "/metadata/annotations": {MARKS_ANNOTATION: '["fast/uid/0"]'},
    }
    assert operations(await world.ask()) == {}
    assert world.asked == [FAST]  # The second one waits for nothing.
    assert world.counted == [("patch", "patched"), ("patch", "passed")]


class SetBack(World):
    """Nothing is recorded, and the clock is set back meanwhile."""

    async def stocked(self, names: Iterable[PatchName], patience_s: float) -> None:
        self.now -= 3600
        self.writes = len(self.asked) > 1
        await super().stocked(names, patience_s)
        self.said = ()


async def test_a_pod_waits_no_longer_for_its_slot_because_the_clock_is_set_back() -> None:
    world = SetBack()
    assert operations(await world.ask()) == {}
    assert world.asked == [FAST]


async def test_a_dry_run_waits_for_nothing_and_writes_nothing() -> None:
    world = World()
    assert operations(await world.ask(dryRun=True)) == {"/spec/nodeSelector": {"disk": "ssd"}}
    assert world.asked == []


@pytest.mark.parametrize(
    "changes",
    [
        {"namespace": "bank"},
        {"object": {"metadata": {"labels": {"app": "db"}}, "spec": {}}},
        {"object": {"metadata": {"labels": {"app": "web"}}, "spec": {"nodeName": "worker-1"}}},
    ],
)
async def test_other_pods_pass(changes: dict[str, Any]) -> None:
    answer = await World().ask(**changes)
    assert answer == {"uid": "u", "allowed": True}


async def test_while_nothing_can_be_recorded_pods_are_created_unpatched() -> None:
    world = World()
    world.writes = False
    assert await world.ask() == {"uid": "u", "allowed": True}


async def test_who_does_not_see_the_cluster_allows_with_a_warning() -> None:
    world = World()
    world.said = ("pods are not listed yet",)
    answer = await world.ask()
    assert (answer["allowed"], "pods are not listed yet" in answer["warnings"][0]) == (True, True)
    assert world.counted == [("patch", "error")]


@pytest.mark.parametrize(
    ("path", "changes"),
    [(PATCH_PATH, {"object": 7}), (PATCH_PATH, {"object": {"spec": {"tolerations": 7}}})],
)
async def test_what_cannot_be_read_is_allowed_with_a_warning(
    path: str, changes: dict[str, Any]
) -> None:
    answer = await World().ask(path, **changes)
    assert (answer["allowed"], len(answer["warnings"])) == (True, 1)


BEYOND: dict[str, dict[str, Any]] = {
    "a long pod": {"containers": [{"args": ["x" * POD.object_bytes]}]},
    "thousands of labels": {"metadata": {"labels": {f"k{n}": "v" for n in range(9_000)}}},
    "a long selector": {"nodeSelector": {f"k{n}": "v" for n in range(2_000)}},
    "a long affinity": {"affinity": {"nodeAffinity": {"x": ["y" * 20_000]}}},
    "thousands of tolerations": {"tolerations": [{"key": "a"}] * 2_000},
}


@pytest.mark.parametrize("what", BEYOND)
async def test_a_pod_that_is_too_large_to_be_patched_is_created_as_it_is_with_a_warning(
    what: str,
) -> None:
    spec = dict(BEYOND[what])
    metadata = {"name": "web-0", "labels": {"app": "web"}, **spec.pop("metadata", {})}
    world = World()
    answer = await world.ask(object={"metadata": metadata, "spec": spec})
    assert (answer["allowed"], "patch" in answer) == (True, False)
    assert "are too many" in answer["warnings"][0]
    assert world.asked == []


@pytest.mark.parametrize("length", [254, 500_000])
async def test_a_review_whose_uid_is_no_uid_is_not_repeated(length: int) -> None:
    world = World()
    paths = Webhooks(world, world.judge, lambda: 0.0, None).paths()  # type: ignore[arg-type]
    async with served(paths) as client:
        response = await client.post(PATCH_PATH, json={"request": {"uid": "u" * length}})
        assert (response.status, len(await response.text()) < 300) == (400, True)


async def test_a_resize_of_a_pod_that_cannot_be_read_is_refused() -> None:
    """Otherwise a pod of many containers could grow into room that is held for others."""
    world = World()
    world.refusal = InvalidInput("spec.containers", "1001 are too many", "write 1000 at most")
    answer = await world.ask(RESIZE_PATH)
    assert not answer["allowed"]
    assert "spec.containers: 1001 are too many" in answer["status"]["message"]


@pytest.mark.parametrize("failure", [NotReady("not yet"), ValueError("a bug")])
async def test_a_resize_that_cannot_be_judged_is_allowed_with_a_warning(
    failure: Exception, faults: Counter[Component]
) -> None:
    world = World()
    world.refusal = failure
    answer = await world.ask(RESIZE_PATH)
    assert faults.pop("http", 0) == isinstance(failure, ValueError)
    assert (answer["allowed"], answer["warnings"][0].startswith("reserver: ")) == (True, True)


async def test_a_resize_is_refused_with_its_reason() -> None:
    world = World()
    assert (await world.ask(RESIZE_PATH))["allowed"]
    world.refusal = "held by reservation shop/r"
    answer = await world.ask(RESIZE_PATH)
    assert (answer["allowed"], answer["status"]["message"]) == (False, "held by reservation shop/r")
    assert world.counted == [("resize", "passed"), ("resize", "refused")]


async def test_what_is_no_review_is_a_bad_request() -> None:
    world = World()
    metrics: Any = SimpleNamespace()
    paths = Webhooks(world, world.judge, lambda: 0.0, metrics).paths()
    async with served(paths) as client:
        assert (await client.post(PATCH_PATH, json={})).status == 400
