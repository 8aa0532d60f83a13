import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from structlog.testing import capture_logs

from reserver.cluster.snapshot import Snapshot
from reserver.reservations.enums import Phase
from reserver.reservations.ledger import Ledger
from reserver.reservations.reservation import Reservation, Written
from reserver.stores.history import HistoryReader
from tests.builders import node, reservation
from tests.unit.k8s.fakes import NO_ANSWER, ScriptedClient, refused

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


async def read(
    *script: Any, stores: tuple[Watched, ...] = (), listed_at: int = 10
) -> tuple[ScriptedClient, Ledger]:
    snapshot = Snapshot()
    snapshot.set_node(node("worker-1", cpu="8"))
    ledger = Ledger(snapshot)
    ledger.put(NAMED, Written(0, listed_at))
    client = ScriptedClient(*script)
    await HistoryReader(client, ledger.past, Watched(), stores, "reserver-system").read()
    assert not client.script, "all was asked for"
    return client, ledger


async def test_a_claim_of_a_pod_that_is_gone_is_found() -> None:
    lines = [b"", bookmark(900), shown("DELETED", 950, NAMED), bookmark(1000)]
    _, ledger = await read(now(1000), lines)
    assert ledger.phase(NAMED.ref) is Phase.CLAIMED


async def test_what_was_bound_ends_an_entry_of_before_also_if_it_is_gone_and_says_nothing() -> None:
    client, ledger = await read(now(1000), [shown("ADDED", 950), bookmark(1000)])
    assert ledger.phase(NAMED.ref) is Phase.CLAIMED
    _, watch = client.requests
    assert (watch.params or {})["fieldSelector"] == "spec.nodeName!="


async def test_what_comes_after_the_start_is_left_to_the_watch() -> None:
    _, ledger = await read(now(1000), [shown("DELETED", 1001, NAMED), "not even looked at"])
    assert ledger.phase(NAMED.ref) is Phase.ACTIVE


@pytest.mark.parametrize("too_old", [refused(410), [EXPIRED]], ids=["status", "event"])
async def test_it_looks_back_as_far_as_is_remembered(too_old: Any) -> None:
    with capture_logs() as logs:
        client, _ = await read(now(100_001), too_old, too_old, [bookmark(100_001)])
    asked = [(r.params or {}).get("resourceVersion") for r in client.requests]
    assert asked == [None, "50001", "62501", "71876"]
    assert logs[-1]["resource_versions_back"] == 28_125


async def test_the_little_is_read_that_an_api_server_remembers_just_after_its_restart() -> None:
    script = [now(1000), *[refused(410)] * 16, [shown("DELETED", 995, NAMED), bookmark(1000)]]
    client, ledger = await read(*script)
    assert (client.requests[-1].params or {})["resourceVersion"] == "991"
    assert ledger.phase(NAMED.ref) is Phase.CLAIMED


async def test_a_watch_that_ends_early_goes_on() -> None:
    early, rest = [bookmark(900)], [shown("DELETED", 950, NAMED), bookmark(1000)]
    client, ledger = await read(now(1000), early, [], rest)
    asked = [(r.params or {}).get("resourceVersion") for r in client.requests]
    assert asked == [None, "1", "900", "900"]
    assert ledger.phase(NAMED.ref) is Phase.CLAIMED


async def test_it_is_read_anew_when_the_api_server_was_away(pauses: list[float]) -> None:
    _, ledger = await read(
        NO_ANSWER, now(1000), [NO_ANSWER], now(1001), [shown("DELETED", 950, NAMED), bookmark(1001)]
    )
    assert ledger.phase(NAMED.ref) is Phase.CLAIMED
    first, second = (pause for pause in pauses if pause)
    assert 0.2 <= first <= 0.4 <= second <= 0.8


@pytest.mark.usefixtures("pauses")
async def test_one_that_never_comes_to_an_end_is_given_up() -> None:
    with capture_logs() as logs:
        await read(*[now(1000), *[[]] * 20] * 7)
    assert "does not come to an end" in logs[0]["why"]


async def test_it_does_not_look_back_before_the_beginning() -> None:
    client, _ = await read(now(60), [bookmark(60)])
    assert (client.requests[1].params or {})["resourceVersion"] == "1"


async def test_a_new_cluster_has_no_past_to_wait_for() -> None:
    client, ledger = await read(now(50))
    assert len(client.requests) == 1, "no watch is opened, which would wait for its bookmark"
    assert ledger.phase(NAMED.ref) is Phase.ACTIVE


async def test_an_object_that_cannot_be_read_costs_no_other() -> None:
    broken = {"type": "MODIFIED", "object": {"metadata": {"resourceVersion": "7"}, "spec": 3}}
    _, ledger = await read(now(1000), [broken, shown("DELETED", 950, NAMED), bookmark(1000)])
    assert ledger.phase(NAMED.ref) is Phase.CLAIMED


@pytest.mark.parametrize(
    "script",
    [
        (NO_ANSWER,) * 7,
        (now(1000), NO_ANSWER) * 7,
        (now(1000), [b"not json"]),
        (now(1000), *[refused(410)] * 22),
        ({"metadata": {"resourceVersion": "opaque"}},),
    ],
    ids=["no answer", "no watch", "nonsense", "remembers nothing", "no number"],
)
@pytest.mark.usefixtures("pauses")
async def test_without_history_everything_holds(script: tuple[Any, ...]) -> None:
    _, ledger = await read(*script)
    assert ledger.phase(NAMED.ref) is Phase.ACTIVE


async def test_a_collection_that_does_not_exist_is_not_asked_for() -> None:
    client, _ = await read(now(60), [bookmark(60)], stores=(Watched("/apis/x", absent=True),))
    assert {request.path for request in client.requests} == {"/api/v1/pods"}


def store(revision: int, **data: str) -> dict[str, Any]:
    metadata = {"namespace": "shop", "name": "store", "resourceVersion": str(revision)}
    return {"metadata": metadata, "data": data}


def edited(revision: int, **data: str) -> dict[str, Any]:
    return {"type": "MODIFIED", "object": store(revision, **data)}


SPEC = {"owners": [{"pod": {"name": "web-0"}}], "node": "worker-1", "resources": {"cpu": "1"}}
TEXT = json.dumps({**SPEC, "ttl": "0"})


OLDER = store(700, named=TEXT)


@pytest.mark.parametrize(
    ("answers", "listed", "phase"),
    [
        ([[edited(980, named=TEXT, more="{}")]], OLDER, Phase.CLAIMED),
        ([[edited(960), edited(980, named=TEXT)]], OLDER, Phase.ACTIVE),
        ([[edited(980, named=TEXT)]], store(700), Phase.ACTIVE),
        ([[edited(940, named=TEXT), edited(980, named=TEXT)]], refused(410), Phase.CLAIMED),
        ([[edited(980, named=TEXT)]], refused(410), Phase.ACTIVE),
        ([[EXPIRED], [edited(980, named=TEXT, more="{}")]], OLDER, Phase.CLAIMED),
        ([refused(410), [edited(980, named=TEXT, more="{}")]], OLDER, Phase.CLAIMED),
        ([[EXPIRED], [edited(980, named=TEXT)]], store(955), Phase.ACTIVE),
        ([[EXPIRED], []], OLDER, Phase.CLAIMED),
        ([[EXPIRED], []], store(955, named=TEXT), Phase.ACTIVE),
        ([[EXPIRED]] * 12, None, Phase.ACTIVE),
    ],
    ids=[
        "older",
        "anew since",
        "younger",
        "seen before",
        "perhaps younger",
        "older than what is remembered",
        "older than what is remembered, refused at once",
        "younger than what is remembered",
        "not edited since",
        "edited before what is remembered",
        "nothing is remembered",
    ],
)
async def test_an_entry_that_may_be_younger_is_looked_up(
    answers: list[Any], listed: Any, phase: Phase
) -> None:
    script: list[Any] = [now(1000), [shown("DELETED", 950, NAMED), bookmark(1000)], now(1000)]
    script += [[*each, bookmark(1000)] if isinstance(each, list) else each for each in answers]
    script += [{"items": [listed]} if isinstance(listed, dict) else listed] if listed else []
    client, ledger = await read(*script, stores=(Watched("/stores"),), listed_at=990)
    assert ledger.phase(NAMED.ref) is phase
    watched = [(request.params or {})["resourceVersion"] for request in client.requests[3:]]
    assert watched[0] == "949"
    if listed:
        assert client.requests[-1].params == {
            "limit": "250",
            "resourceVersion": watched[-2],
            "resourceVersionMatch": "Exact",
        }


async def test_what_was_read_before_a_gap_dates_no_entry_after_it() -> None:
    """A watch ends, and where it would go on is forgotten: perhaps the entry was written anew."""
    first, second = shown("DELETED", 940, NAMED), shown("DELETED", 970, NAMED)
    second["object"]["metadata"]["uid"] = "v"
    script: list[Any] = [now(1000), [first, second, bookmark(1000)], now(1000)]
    script += [[edited(950, named=TEXT)], refused(410)]
    script += [[edited(980, named=TEXT, more="{}"), bookmark(1000)], refused(410)]
    _, ledger = await read(*script, stores=(Watched("/stores"),), listed_at=990)
    assert ledger.phase(NAMED.ref) is Phase.ACTIVE
