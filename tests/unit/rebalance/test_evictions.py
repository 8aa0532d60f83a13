import asyncio
from typing import Any

import pytest

from reserver.cluster.pod import PodName
from reserver.errors import ApiError
from reserver.rebalance.evictions import Evictions, Pace
from reserver.rebalance.outcomes import MoveOutcome, OutcomeReporter, Result, Terms
from reserver.rebalance.plan import PlannedMove
from tests.unit.k8s.fakes import NO_ANSWER, Request, ScriptedClient, refused

FORBIDDEN_FOR_NOW = ApiError(
    429,
    "TooManyRequests",
    "Cannot evict pod as it would violate the pod's disruption budget.",
)
OTHER_POD = ApiError(
    409,
    "Conflict",
    'Operation cannot be fulfilled on pods "web-0": Precondition failed: UID in precondition: '
    "uid-web-0, UID in object meta: another",
)
OVERWRITTEN = ApiError(409, "Conflict", "the object has been modified; please apply your changes")
TWO_BUDGETS = ApiError(
    500,
    "InternalError",
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not "
    "support.",
)
DONE: dict[str, Any] = {}
EVENT: dict[str, Any] = {}
GONE = refused(404, "NotFound")


def move(name: str = "web-0", reason: str = "node is overutilized") -> PlannedMove:
    return PlannedMove(
        pod=PodName("shop", name),
        uid=f"uid-{name}",
        source="worker-1",
        target=None,
        strategy="LowNodeLoad",
        profile="default",
        reason=reason,
    )


class Clock:
    """A clock that each sleep advances."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    yield_once = asyncio.sleep

    async def sleep(seconds: float) -> None:
        made.now += seconds
        await yield_once(0)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    return made


async def carried_out(
    client: ScriptedClient, clock: Clock, *moves: PlannedMove, terms: Terms | None = None
) -> list[MoveOutcome]:
    evictions = Evictions(client, clock, Pace(1000, 1000), OutcomeReporter(client, "host-1"))
    return await evictions.carry_out(moves or (move(),), terms or Terms())


def evicted(client: ScriptedClient) -> list[str]:
    """Return the pods whose eviction was requested, in order."""
    paths = (request.path.split("/") for request in client.requests)
    return [path[6] for path in paths if path[-1] == "eviction"]


def events(client: ScriptedClient) -> list[dict[str, Any]]:
    return [request.body for request in client.requests if request.path.endswith("/events")]


async def test_an_eviction_names_the_pod_that_was_judged_and_says_why(clock: Clock) -> None:
    client = ScriptedClient(DONE, EVENT)
    outcomes = await carried_out(client, clock, terms=Terms(grace_period_s=0))
    assert [outcome.result for outcome in outcomes] == [Result.SUCCESS]
    assert client.requests[0] == Request(
        "create",
        "/api/v1/namespaces/shop/pods/web-0/eviction",
        {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {
                "name": "web-0",
                "namespace": "shop",
                "annotations": {
                    "reason": "triggered by default/LowNodeLoad: node is overutilized",
                    "requested-by": "sigs.k8s.io/descheduler",
                },
            },
            "deleteOptions": {"preconditions": {"uid": "uid-web-0"}, "gracePeriodSeconds": 0},
        },
    )


async def test_without_a_grace_period_pods_have_their_own(clock: Clock) -> None:
    client = ScriptedClient(DONE, EVENT)
    await carried_out(client, clock)
    assert client.requests[0].body["deleteOptions"] == {"preconditions": {"uid": "uid-web-0"}}


async def test_an_eviction_is_an_event_as_the_descheduler_writes_it(clock: Clock) -> None:
    client = ScriptedClient(DONE, EVENT)
    await carried_out(client, clock)
    assert client.requests[1].path == "/apis/events.k8s.io/v1/namespaces/shop/events"
    assert events(client) == [
        {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": "web-0.e8d4a51000", "namespace": "shop"},
            "eventTime": "1970-01-01T00:16:40.000000Z",
            "reportingController": "sigs.k8s.io.descheduler",
            "reportingInstance": "sigs.k8s.io.descheduler-host-1",
            "action": "Descheduled",
            "reason": "LowNodeLoad",
            "regarding": {
                "apiVersion": "v1",
                "kind": "Pod",
                "namespace": "shop",
                "name": "web-0",
                "uid": "uid-web-0",
            },
            "note": "pod eviction from worker-1 node by sigs.k8s.io/descheduler: node is "
            "overutilized",
            "type": "Normal",
        }
    ]


async def test_an_event_that_cannot_be_written_keeps_nobody_from_going_on(clock: Clock) -> None:
    client = ScriptedClient(DONE, refused(403, "Forbidden"), DONE, EVENT)
    outcomes = await carried_out(client, clock, move(), move("web-1"))
    assert [outcome.result for outcome in outcomes] == [Result.SUCCESS, Result.SUCCESS]


async def test_an_events_note_keeps_within_its_bound(clock: Clock) -> None:
    client = ScriptedClient(DONE, EVENT)
    await carried_out(client, clock, move(reason="ü" * 2000))
    assert len(events(client)[0]["note"].encode()) <= 1024


async def test_what_a_budget_forbids_is_tried_again_while_others_go_on(clock: Clock) -> None:
    client = ScriptedClient(FORBIDDEN_FOR_NOW, DONE, EVENT, DONE, EVENT)
    outcomes = await carried_out(client, clock, move(), move("web-1"))
    assert evicted(client) == ["web-0", "web-1", "web-0"]
    assert [outcome.move.pod.name for outcome in outcomes] == ["web-1", "web-0"]
    assert clock.now < 1002


async def test_what_a_budget_forbids_for_the_whole_round_stays(clock: Clock) -> None:
    client = ScriptedClient(*[FORBIDDEN_FOR_NOW] * 100)
    (outcome,) = await carried_out(client, clock, terms=Terms(patience_s=60))
    assert outcome.result is Result.ERROR
    assert "disruption budget" in outcome.why
    assert 1050 < clock.now <= 1060
    assert 6 <= len(client.requests) <= 20  # The pauses grow to ten seconds.


@pytest.mark.parametrize("error", [GONE, OTHER_POD], ids=["gone", "another pod of that name"])
async def test_a_pod_that_is_gone_is_an_error_as_upstream_counts_it(
    error: ApiError, clock: Clock
) -> None:
    (outcome,) = await carried_out(ScriptedClient(error), clock)
    assert (outcome.result, outcome.why) == (Result.ERROR, str(error))


@pytest.mark.parametrize("error", [GONE, OTHER_POD], ids=["gone", "another pod of that name"])
@pytest.mark.parametrize("open_end", [NO_ANSWER, refused(500), refused(504)], ids=str)
async def test_a_request_without_an_answer_is_sent_again_and_may_have_been_carried_out(
    open_end: ApiError, error: ApiError, clock: Clock
) -> None:
    client = ScriptedClient(open_end, error, EVENT)
    (outcome,) = await carried_out(client, clock)
    assert (outcome.result, outcome.why) == (Result.SUCCESS, "")


async def test_a_pod_that_somebody_has_just_written_is_tried_again(clock: Clock) -> None:
    (outcome,) = await carried_out(ScriptedClient(OVERWRITTEN, DONE, EVENT), clock)
    assert outcome.result is Result.SUCCESS


@pytest.mark.parametrize("error", [refused(403), refused(400), TWO_BUDGETS], ids=str)
async def test_what_will_never_be_allowed_is_tried_once(error: ApiError, clock: Clock) -> None:
    client = ScriptedClient(error)
    (outcome,) = await carried_out(client, clock)
    assert (outcome.result, outcome.why) == (Result.ERROR, str(error))
    assert len(client.requests) == 1


async def test_an_eviction_that_a_webhook_turns_into_a_migration_is_one_in_background(
    clock: Clock,
) -> None:
    answer = ApiError(429, "", "Eviction triggered evacuation of VMI shop/vm")
    (outcome,) = await carried_out(ScriptedClient(answer, EVENT), clock)
    assert outcome.result is Result.BACKGROUND


async def test_a_failure_is_an_event_where_the_policy_asks_for_it(clock: Clock) -> None:
    client = ScriptedClient(TWO_BUDGETS, EVENT)
    await carried_out(client, clock, terms=Terms(tells_failures=True))
    (event,) = events(client)
    assert (event["type"], event["reason"]) == ("Warning", "EvictionFailed")
    assert event["note"].startswith(
        "pod eviction from worker-1 node by sigs.k8s.io/descheduler failed: 500 InternalError: "
    )


async def test_each_outcome_is_counted_once(clock: Clock) -> None:
    counted: list[MoveOutcome] = []
    client = ScriptedClient(FORBIDDEN_FOR_NOW, GONE, DONE, EVENT)
    evictions = Evictions(
        client, clock, Pace(1000, 1000), OutcomeReporter(client, "host-1", counted.append)
    )
    outcomes = await evictions.carry_out((move(), move("web-1")), Terms())
    assert counted == outcomes
    assert [outcome.result for outcome in counted] == [Result.ERROR, Result.SUCCESS]


async def test_evictions_keep_to_their_rate(clock: Clock) -> None:
    count = 30
    client = ScriptedClient(*[DONE, EVENT] * count)
    evictions = Evictions(client, clock, Pace(5, 10), OutcomeReporter(client, "host-1"))
    await evictions.carry_out([move(f"web-{n}") for n in range(count)], Terms())
    assert clock.now == pytest.approx(1000 + (count - 10) / 5)


async def test_evictions_keep_to_their_rate_though_the_clock_is_set_back(clock: Clock) -> None:
    """The next one waited for as long as the clock was set back."""

    def set_back(_: MoveOutcome) -> None:
        clock.now -= 3600

    client = ScriptedClient(*[DONE, EVENT] * 3)
    reporter = OutcomeReporter(client, "host-1", set_back)
    evictions = Evictions(client, clock, Pace(5, 1), reporter)
    await evictions.carry_out([move(f"web-{n}") for n in range(3)], Terms())
    assert clock.now < 1000 - 2 * 3600


async def test_an_eviction_is_tried_again_soon_though_the_clock_is_set_back(clock: Clock) -> None:
    def set_back() -> Any:
        clock.now -= 3600
        return DONE

    client = ScriptedClient(FORBIDDEN_FOR_NOW, set_back, EVENT, DONE, EVENT)
    outcomes = await carried_out(client, clock, move(), move("web-1"))
    assert [outcome.result for outcome in outcomes] == [Result.SUCCESS] * 2
    assert clock.now < 1000 - 3600 + 20


def test_who_has_waited_may_do_as_much_at_once_as_in_the_beginning() -> None:
    pace = Pace(per_second=2, burst=3)
    assert [pace.turn_in(0) for _ in range(5)] == [0, 0, 0, 0.5, 1.0]
    assert [pace.turn_in(100) for _ in range(4)] == [0, 0, 0, 0.5]
