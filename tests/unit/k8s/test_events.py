import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import structlog
from msgspec.structs import replace

from reserver.errors import InvalidInput
from reserver.extender import reservation_events
from reserver.k8s.events import Recorder
from reserver.k8s.objects.objects import CONFIG_MAP, POD, Metadata, ObjectKind
from reserver.scheduling.pod_events import PodEvent
from reserver.stores.entries import EntryProblem
from reserver.stores.object.codec import RESERVATION
from tests.builders import pod, ref
from tests.unit.k8s.fakes import PatientClient, ScriptedClient, refused

NOW = 1_900_000_000.0
STORE = Metadata(name="store", namespace="shop", uid="uid-1", resource_version="7")
MORE = " (the rest is in the status)"


def problem(text: str, key: str = "web") -> EntryProblem:
    return EntryProblem(ref(key), InvalidInput("node", text, "write a node"))


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


def report(recorder: Recorder, store: Metadata, problem: EntryProblem) -> None:
    reservation_events.unread(recorder, store, problem)


def telling(cause: str = "r", name: str = "web-0", message: str = "held by r") -> PodEvent:
    return PodEvent(pod(name), "HeldByReservations", cause, message)


@asynccontextmanager
async def recording(client: ScriptedClient, clock: Clock | None = None) -> AsyncIterator[Recorder]:
    recorder = Recorder(client, clock or Clock())
    task = asyncio.create_task(recorder.run())
    yield recorder
    for _ in range(200):
        await asyncio.sleep(0)
    assert not task.done()
    task.cancel()


def events(client: ScriptedClient) -> list[dict[str, Any]]:
    return [request.body for request in client.requests]


async def test_a_problem_becomes_an_event_on_the_configmap() -> None:
    client = ScriptedClient({})
    async with recording(client) as recorder:
        report(recorder, STORE, problem("'x' is not a node"))
    (event,) = events(client)
    assert client.requests[0].path == "/api/v1/namespaces/shop/events"
    assert event["message"] == "web: node: 'x' is not a node; write a node"
    assert (event["type"], event["reason"]) == ("Warning", "InvalidReservation")
    assert event["involvedObject"] == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "namespace": "shop",
        "name": "store",
        "uid": "uid-1",
        "resourceVersion": "7",
    }
    assert event["firstTimestamp"] == event["lastTimestamp"] == "2030-03-17T17:46:40Z"
    assert event["metadata"] == {"generateName": "store.", "namespace": "shop"}


@pytest.mark.parametrize("kind", [CONFIG_MAP, POD, RESERVATION])
async def test_an_event_names_the_api_version_of_its_object(kind: ObjectKind) -> None:
    client = ScriptedClient({})
    async with recording(client) as recorder:
        recorder.note(STORE, "Seen", "it is there", kind)
    (event,) = events(client)
    about = event["involvedObject"]
    assert (about["apiVersion"], about["kind"]) == kind


async def test_a_problem_is_reported_once() -> None:
    client = ScriptedClient(*[{}] * 9)
    async with recording(client) as recorder:
        for _ in range(3):
            report(recorder, STORE, problem("a"))
            report(recorder, STORE, problem("b"))
            report(recorder, STORE, problem("a", key="api"))
        assert recorder.reported == 3
    assert len(events(client)) == 3


async def test_of_what_is_told_once_ever_the_api_server_keeps_one_event_whoever_writes_it() -> None:
    client = ScriptedClient({}, refused(409, "AlreadyExists"), {})
    for key in ("a", "a", "b"):
        async with recording(client) as recorder:  # As after a restart.
            recorder.warn_once_ever(key, STORE, "ExpiresSoon", "it expires")
    first, second, third = (event["metadata"]["name"] for event in events(client))
    assert first == second != third
    assert first.startswith("store.")
    assert first.endswith(".expiressoon")


async def test_a_configmap_written_anew_has_its_problems_reported_anew() -> None:
    client = ScriptedClient({}, {})
    async with recording(client) as recorder:
        report(recorder, STORE, problem("a"))
        report(recorder, Metadata(name="store", namespace="shop", uid="uid-2"), problem("a"))
    assert len(events(client)) == 2


async def test_a_burst_of_problems_ends_in_a_pointer_to_the_log() -> None:
    client = ScriptedClient(*[{}] * 100)
    async with recording(client) as recorder:
        for number in range(60):
            report(recorder, STORE, problem(f"p{number}"))
        report(recorder, Metadata(name="other", namespace="shop", uid="uid-2"), problem("p"))
        assert recorder.reported == 61
    messages = [event["message"] for event in events(client)]
    assert len(messages) == 25 + 1
    assert [message.endswith(MORE) for message in messages] == [False] * 24 + [True, False]


@pytest.mark.parametrize("passing", [[601], [540, 540], [-86_400]])
async def test_ten_minutes_after_a_burst_problems_become_events_again(passing: list[int]) -> None:
    client, clock = ScriptedClient(*[{}] * 100), Clock()
    async with recording(client, clock) as recorder:
        for number in range(30):
            report(recorder, STORE, problem(f"p{number}"))
        for seconds in passing:
            clock.now += seconds
            report(recorder, STORE, problem(f"after {seconds} s at {clock.now}"))
    assert len(events(client)) == 26


@pytest.mark.parametrize("length", [900, 1100, 100_000])
async def test_a_message_fits_into_an_event(length: int) -> None:
    client = ScriptedClient(*[{}] * 25)
    async with recording(client) as recorder:
        for number in range(25):
            report(recorder, STORE, problem(f"{number}" + "x" * length))
    assert max(len(event["message"]) for event in events(client)) <= 1024
    assert events(client)[-1]["message"].endswith(MORE)


async def test_an_event_that_cannot_be_written_is_dropped_and_the_next_is_written() -> None:
    client = ScriptedClient(refused(403), {})
    async with recording(client) as recorder:
        report(recorder, STORE, problem("a"))
        report(recorder, STORE, problem("b"))
    assert len(client.requests) == 2


async def test_reporting_never_waits_even_when_no_event_can_be_written() -> None:
    client = PatientClient()
    async with recording(client) as recorder:
        for number in range(5000):
            configmap = Metadata(name="store", namespace="shop", uid=f"uid-{number}")
            report(recorder, configmap, problem("a"))
        assert recorder.reported == 5000


async def test_what_keeps_a_pod_becomes_an_event_on_it() -> None:
    client = ScriptedClient({})
    async with recording(client) as recorder:
        recorder.record(telling())
    (event,) = events(client)
    assert client.requests[0].path == "/api/v1/namespaces/shop/events"
    assert (event["type"], event["reason"]) == ("Warning", "HeldByReservations")
    assert event["message"] == "held by r"
    assert event["involvedObject"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": "shop",
        "name": "web-0",
        "uid": "uid-web-0",
    }


async def test_of_each_cause_a_pod_has_one_event_however_often_it_is_tried() -> None:
    client = ScriptedClient(*[{}] * 9)
    async with recording(client) as recorder:
        for number in range(30):
            recorder.record(telling(message=f"{number} nodes"))
            recorder.record(telling("other"))
            recorder.record(telling(name="web-1"))
    assert len(events(client)) == 3


async def test_when_very_many_pods_are_refused_at_once_the_rest_are_told_later() -> None:
    client, clock = ScriptedClient(*[{}] * 999), Clock()
    async with recording(client, clock) as recorder:
        for window in (1, 2, 3):
            for number in range(250):
                recorder.record(telling(name=f"web-{number}"))
            for _ in range(500):
                await asyncio.sleep(0)
            assert len(events(client)) == min(250, window * 100)
            clock.now += 10


async def test_pods_of_one_namespace_leave_their_part_of_the_events_to_others() -> None:
    client = ScriptedClient(*[{}] * 999)
    async with recording(client) as recorder:
        for number in range(1000):
            recorder.record(telling(name=f"web-{number}"))
        other = pod("api", namespace="blog")
        recorder.record(PodEvent(other, "HeldByReservations", "r", "held by r"))
    warned = [event["involvedObject"]["namespace"] for event in events(client)]
    assert (len(warned), warned.count("blog")) == (101, 1)


async def test_events_of_one_namespace_leave_their_part_of_the_queue_to_others() -> None:
    client = PatientClient()
    async with recording(client) as recorder:
        for number in range(2000):
            recorder.warn(replace(STORE, uid=f"uid-{number}"), "Some", f"{number}")
        depth = recorder.queue.depth
        assert depth <= 500
        recorder.warn(replace(STORE, namespace="blog", uid="blog"), "Some", "other")
        assert recorder.queue.depth == depth + 1


async def test_what_has_been_written_makes_room_for_more_events() -> None:
    client = ScriptedClient(*[{}] * 4999)
    async with recording(client) as recorder:
        for number in range(1500):
            recorder.warn(replace(STORE, uid=f"uid-{number}"), "Some", f"{number}")
            if number % 100 == 0:
                for _ in range(300):
                    await asyncio.sleep(0)
    assert len(events(client)) == 1500


async def test_a_clock_that_goes_back_silences_nobody() -> None:
    client, clock = ScriptedClient({}, {}), Clock()
    async with recording(client, clock) as recorder:
        recorder.record(telling())
        clock.now -= 86_400
        recorder.record(telling(name="web-1"))
    assert len(events(client)) == 2


async def test_telling_never_waits_even_when_no_event_can_be_written() -> None:
    clock = Clock()
    async with recording(PatientClient(), clock) as recorder:
        for number in range(5000):
            clock.now += 1
            recorder.record(telling(name=f"web-{number}"))


async def test_one_configmap_leaves_a_hundred_lines_in_the_log() -> None:
    client = ScriptedClient(*[{}] * 60)
    with structlog.testing.capture_logs() as lines:
        async with recording(client) as recorder:
            for number in range(5_000):
                report(recorder, STORE, problem("a", key=f"web-{number}"))
            other = Metadata(name="store", namespace="shop", uid="uid-2")
            report(recorder, other, problem("a"))
    warned = [line for line in lines if line["event"] == "reservation not enforced"]
    assert len(warned) == 101
    assert [line["key"] for line in warned if "more" in line] == ["web-99"]
