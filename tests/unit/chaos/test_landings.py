"""The outcomes of evictions, from the log of all writes."""

from __future__ import annotations

from typing import Any

import pytest

from hack.chaos.moving.landings import Landings, landings
from hack.promises.history import history_of

EVICTED = {"type": "DisruptionTarget", "status": "True"}
REFUSED = {"type": "PodScheduled", "status": "False"}


class Log:
    """Writes to pods, one per second."""

    def __init__(self) -> None:
        self._records: list[dict[str, Any]] = []

    def pod(self, name: str, *, node: str = "", made_by: str = "web", **condition: str) -> None:
        revision = len(self._records) + 1
        metadata = {
            "name": name,
            "namespace": "shop",
            "uid": name,
            "labels": {"app": made_by},
            "ownerReferences": [{"uid": made_by}],
            "resourceVersion": str(revision),
        }
        spec = {"nodeName": node} if node else {}
        status = {"conditions": [condition]} if condition else {}
        body = {"metadata": metadata, "spec": spec, "status": status}
        record = {"at": float(revision), "type": "MODIFIED", "collection": "pods", "object": body}
        self._records.append(record)

    def landings(self) -> Landings:
        return landings(history_of(self._records), {"greedy"})


@pytest.fixture
def log() -> Log:
    return Log()


def test_a_replacement_lands_so_long_after_the_eviction(log: Log) -> None:
    log.pod("a", node="worker-1")
    log.pod("a", node="worker-1", **EVICTED)
    log.pod("b")
    log.pod("b", node="worker-2")
    found = log.landings()
    assert (found.seconds, found.refused, found.stranded) == ([2.0], 0, 0)


def test_who_finds_no_room_at_first_has_waited_for_it(log: Log) -> None:
    log.pod("a", node="worker-1", **EVICTED)
    log.pod("b", **REFUSED)
    log.pod("b", node="worker-2")
    found = log.landings()
    assert (found.seconds, found.refused, found.stranded) == ([2.0], 1, 0)


def test_each_eviction_has_its_own_replacement(log: Log) -> None:
    log.pod("b", node="worker-1")
    log.pod("a", node="worker-1", **EVICTED)
    log.pod("other", node="worker-1", made_by="other")
    log.pod("b", node="worker-1", **EVICTED)
    log.pod("c", node="worker-2")
    log.pod("d")
    found = log.landings()
    assert (found.seconds, found.stranded) == ([3.0], 1)


def test_the_greedy_do_not_count(log: Log) -> None:
    log.pod("a", node="worker-1", made_by="greedy", **EVICTED)
    assert log.landings().each == ()


def test_who_waits_until_its_own_seat_opens_does_not_wait_for_room(log: Log) -> None:
    log.pod("a", node="worker-1", **EVICTED)
    log.pod("b", **REFUSED, message="1 waiting for a place of reservation shop/seat")
    log.pod("b", node="worker-2")
    assert log.landings().refused == 0
