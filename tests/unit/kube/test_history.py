import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from structlog.testing import capture_logs

from reserver.cluster.snapshot import Snapshot
from reserver.kube.history import History
from reserver.reservations.ledger import Ledger
from reserver.reservations.reservation import Phase, Reservation, Written
from tests.builders import node, reservation
from tests.unit.kube.fakes import NO_ANSWER, ScriptedClient, refused

NAMED = reservation("named", owners=("web-0",), cpu="1")
EXPIRED = {"type": "ERROR", "object": {"code": 410, "reason": "Expired", "message": "too old"}}


@dataclass(frozen=True)
class Watched:
    path: str = "/api/v1/pods"
    selector: Mapping[str, str] = field(default_factory=dict)
    absent: bool = False


def now(revision: int) -> dict[str, Any]:
    return {"metadata": {"resourceVersion": str(revision)}, "items": []}


def shown(kind: str, revision: int, claimed: Reservation | None = None) -> dict[str, Any]:
    annotations = {"reserver.io/claims": json.dumps([claimed.identity])} if claimed else {}
    metadata = {"name": "web-0", "namespace": "shop", "uid": "u", "annotations": annotations}
    metadata["resourceVersion"] = str(revision)
    return {"type": kind, "object": {"metadata": metadata, "spec": {"nodeName": "worker-1"}}}


def bookmark(revision: int) -> dict[str, Any]:
    return {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(revision)}}}


async def read(*script: Any, stores: tuple[Watched, ...] = ()) -> tuple[ScriptedClient, Ledger]:
    snapshot = Snapshot()
    snapshot.set_node(node("worker-1", cpu="8"))
    ledger = Ledger(snapshot)
    ledger.put(NAMED, Written(0, 10))
    client = ScriptedClient(*script)
    await History(client, ledger, Watched(), stores, "reserver-system").read()
    assert not client.script, "all was asked for"
    return client, ledger


async def test_a_claim_of_a_pod_that_is_gone_is_found() -> None:
    lines = [b"", bookmark(900), shown("DELETED", 950, NAMED), bookmark(1000)]
    _, ledger = await read(now(1000), lines)
    assert ledger.phase(NAMED.ref) is Phase.CLAIMED


async def test_what_comes_after_the_start_is_left_to_the_watch() -> None:
    _, ledger = await read(now(1000), [shown("DELETED", 1001, NAMED), "not even looked at"])
    assert ledger.phase(NAMED.ref) is Phase.ACTIVE


@pytest.mark.parametrize("too_old", [refused(410), [EXPIRED]], ids=["status", "event"])
async def test_it_looks_back_as_far_as_is_remembered(too_old: Any) -> None:
    with capture_logs() as logs:
        client, _ = await read(now(100_001), too_old, too_old, [bookmark(100_001)])
    asked = [(r.params or {}).get("resourceVersion") for r in client.requests]
    assert asked == [None, "50001", "56251", "61720"]
    assert logs[-1]["resource_versions_back"] == 38_281


async def test_a_watch_that_ends_early_goes_on() -> None:
    early, rest = [bookmark(900)], [shown("DELETED", 950, NAMED), bookmark(1000)]
    client, ledger = await read(now(1000), early, [], rest)
    asked = [(r.params or {}).get("resourceVersion") for r in client.requests]
    assert asked == [None, "1", "900", "900"]
    assert ledger.phase(NAMED.ref) is Phase.CLAIMED


async def test_one_that_never_comes_to_an_end_is_given_up() -> None:
    with capture_logs() as logs:
        await read(now(1000), *[[]] * 20)
    assert "does not come to an end" in logs[0]["why"]


async def test_it_does_not_look_back_before_the_beginning() -> None:
    client, _ = await read(now(60), [bookmark(60)])
    assert (client.requests[1].params or {})["resourceVersion"] == "1"


async def test_an_object_that_cannot_be_read_costs_no_other() -> None:
    broken = {"type": "MODIFIED", "object": {"metadata": {"resourceVersion": "7"}, "spec": 3}}
    _, ledger = await read(now(1000), [broken, shown("DELETED", 950, NAMED), bookmark(1000)])
    assert ledger.phase(NAMED.ref) is Phase.CLAIMED


@pytest.mark.parametrize(
    "script",
    [
        (NO_ANSWER,),
        (now(1000), NO_ANSWER),
        (now(1000), [b"not json"]),
        (now(1000), *[refused(410)] * 23),
        ({"metadata": {"resourceVersion": "opaque"}},),
    ],
    ids=["no answer", "no watch", "nonsense", "remembers nothing", "no number"],
)
async def test_without_history_everything_holds(script: tuple[Any, ...]) -> None:
    _, ledger = await read(*script)
    assert ledger.phase(NAMED.ref) is Phase.ACTIVE


async def test_a_collection_that_does_not_exist_is_not_asked_for() -> None:
    client, _ = await read(now(60), [bookmark(60)], stores=(Watched("/apis/x", absent=True),))
    assert {request.path for request in client.requests} == {"/api/v1/pods"}


async def test_the_order_of_entries_is_found() -> None:
    spec = {"owners": [{"pod": {"name": "a"}}], "node": "worker-1", "resources": {"cpu": "1"}}
    text = json.dumps({**spec, "ttl": "0"})
    metadata = {"namespace": "shop", "name": "store", "resourceVersion": "700"}
    event = {"type": "ADDED", "object": {"metadata": metadata, "data": {"a": text}}}
    snapshot = Snapshot()
    snapshot.set_node(node("worker-1", cpu="8"))
    ledger = Ledger(snapshot)
    first, later = reservation("a", owners=("a",), cpu="1"), reservation("b", cpu="2")
    ledger.put(first, Written(0, 900))
    ledger.put(later, Written(800, 800))
    client = ScriptedClient(now(1000), [event, bookmark(1000)], now(1000), [bookmark(1000)])
    await History(client, ledger, Watched(), (Watched("/stores"),), "reserver-system").read()
    assert ledger.held_after("worker-1", (first,))["cpu"] == 2000
