"""The writer of the outcomes of ended reservations."""

from __future__ import annotations

import json
from typing import Any

from reserver.k8s.work_queue import WorkQueue
from reserver.reservations.enums import Outcome
from reserver.reservations.outcome import Ending
from reserver.stores.archive import SHARDS, Archive
from reserver.stores.archive_writer import ArchiveWriter
from tests.builders import NOW, reservation
from tests.unit.k8s.clocks import ManualTime, worked_off
from tests.unit.k8s.fakes import ScriptedClient, refused

ABSENT = refused(404, "NotFound")


class Desk:
    def __init__(self, *script: Any) -> None:
        self.time = ManualTime()
        self.client = ScriptedClient(*script)
        self.queue = WorkQueue[int]("archivist", time=self.time)
        self.archive = Archive(60.0)
        self.archivist = ArchiveWriter(self.client, "home", self.archive, self.now, self.queue)

    def now(self) -> float:
        return NOW + self.time.now

    def end(self, *keys: str) -> None:
        for key in keys:
            self.archivist.ended(Ending(reservation(key), Outcome.EXPIRED, self.now(), self.now()))

    async def work(self, seconds: float) -> None:
        self.time.now += seconds
        await worked_off(self.archivist.run(), self.queue)

    @property
    def asked(self) -> list[tuple[str, str]]:
        return [(each.verb, each.path.rpartition("/")[2]) for each in self.client.requests]


async def test_what_ends_together_is_written_together_into_a_configmap_of_its_own() -> None:
    desk = Desk(*[ABSENT] * SHARDS, ABSENT, {})
    desk.end("a", "b")
    await desk.work(5.0)
    *read, patch, create = desk.client.requests
    assert {each.verb for each in read} == {"get"}
    assert (patch.verb, create.verb) == ("patch", "create")
    assert create.body["metadata"]["labels"] == {"reserver.io/history": "true"}
    assert create.path == "/api/v1/namespaces/home/configmaps"
    assert sorted(json.loads(text)["name"] for text in create.body["data"].values()) == ["a", "b"]
    assert desk.archivist.writes == 1


async def test_what_cannot_be_written_is_written_later() -> None:
    desk = Desk(*[ABSENT] * SHARDS, refused(500), {})
    desk.end("a")
    await desk.work(5.0)
    assert desk.archivist.writes == 0
    desk.end("b")
    await desk.work(5.0)
    assert desk.archivist.writes == 1
    assert len(desk.client.requests[-1].body["data"]) == 2


def test_what_expired_with_slots_that_nobody_had_is_counted() -> None:
    archivist = Desk().archivist
    for most_claimed in (0, 1, 2):  # Slots of a reusable reservation have all come back.
        over = reservation("a", slots=2, reusable=True)
        archivist.ended(Ending(over, Outcome.EXPIRED, NOW, NOW, most_claimed=most_claimed))
    assert archivist.unclaimed == 2


async def test_a_restart_reads_what_was_written_and_what_others_wrote_meanwhile() -> None:
    first = Desk(*[ABSENT] * SHARDS, {})
    first.end("a")
    await first.work(5.0)
    written = first.client.requests[-1]
    number = int(written.path[-1])
    script: list[Any] = [ABSENT] * SHARDS
    script[number] = {"data": written.body["data"]}
    second = Desk(*script)
    await second.archivist.refresh()
    assert [one.name for _, one in second.archive.all(NOW)] == ["a"]
    await second.archivist.refresh()  # Nothing is asked twice in a moment.
    assert len(second.asked) == SHARDS


async def test_what_cannot_be_read_keeps_nothing_waiting() -> None:
    desk = Desk(*[refused(403)] * SHARDS, {})
    desk.end("a")
    await desk.work(5.0)
    assert desk.archivist.writes == 1
