"""A pod that is to come back to kube-scheduler does, whatever its requests meet."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from reserver.cluster.pod import Pod, PodName
from reserver.errors import ApiError
from reserver.extender.requeue import (
    CONNECTIONS,
    LAST_PAUSE_S,
    LATELY_S,
    PUT_OFF_S,
    SPARE_TRIES,
    Requeue,
)
from reserver.scheduling.verdicts import Activate, Effect, Nominate, Retry
from tests.builders import pod
from tests.unit.k8s.clocks import ManualTime
from tests.unit.k8s.fakes import NO_ANSWER, REPLACED, refused

OWNER = pod("owner", cpu="2")
STEER = Nominate(OWNER, "worker-1")


class Scene:
    """A requeue on the clock of a test, and an API server that fails.

    Attributes:
        pods: the pods that the watch shows.
        failures: the errors of the next requests.
        sent: the requests.
        time: the clock, which a test advances.
        gate: requests wait for it.
    """

    def __init__(self) -> None:
        self.pods: dict[PodName, Pod] = {OWNER.name: OWNER}
        self.failures: list[ApiError] = []
        self.on_request: Callable[[], None] = lambda: None
        self.sent: list[Effect] = []
        self.time = ManualTime()
        self.gate = asyncio.Event()
        self.gate.set()
        self.most_at_once = self._at_once = 0
        self.again: Callable[[Effect], Effect | None] = lambda effect: effect
        self.requeue = Requeue(
            self,
            lambda: self.pods,
            self.time.time,
            self.time,
            again=self._judged_again,
        )

    def _judged_again(self, effect: Effect) -> Effect | None:
        return self.again(effect)

    async def carry_out(self, effect: Effect) -> None:
        self.sent.append(effect)
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        await self.gate.wait()
        self._at_once -= 1
        self.on_request()
        if self.failures:
            raise self.failures.pop(0)

    async def settle(self) -> None:
        await self.time.settle()

    async def pass_time(self, seconds: float) -> None:
        await self.time.go_by(seconds)


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    scene = Scene()
    running = asyncio.create_task(scene.requeue.run())
    try:
        yield scene
    finally:
        running.cancel()
        await asyncio.wait([running])


@pytest.mark.parametrize(
    "failures",
    [
        pytest.param([NO_ANSWER], id="no answer"),
        pytest.param([refused(409)], id="somebody wrote the pod in between"),
        pytest.param([refused(422)] * 3, id="an admission policy, for a while"),
        pytest.param([refused(403)] * 20, id="rights that are granted after minutes"),
        pytest.param([refused(429)] * 5, id="a busy server"),
        pytest.param(
            [refused(500), NO_ANSWER, refused(503)] * 4, id="a server that comes and goes"
        ),
    ],
)
@pytest.mark.parametrize(
    "effect",
    [STEER, Retry(OWNER, attempts=1), Activate(OWNER, "worker-1")],
    ids=lambda effect: type(effect).__name__,
)
async def test_a_request_that_fails_is_sent_again_until_it_does_not(
    scene: Scene, failures: list[ApiError], effect: Effect
) -> None:
    scene.failures = list(failures)
    scene.requeue.send_sparingly(effect)
    await scene.pass_time(len(failures) * LAST_PAUSE_S)
    assert scene.sent == [effect] * (len(failures) + 1)
    assert len(scene.requeue) == 0


async def test_what_is_wanted_no_more_when_its_turn_comes_is_not_sent(scene: Scene) -> None:
    other = Retry(OWNER, attempts=1)
    scene.failures = [refused(500)]
    scene.requeue.send(STEER)
    await scene.settle()
    scene.again = lambda _: other
    await scene.pass_time(LAST_PAUSE_S)
    assert scene.sent == [STEER, other]
    scene.again = lambda _: None
    scene.requeue.send(STEER)
    await scene.settle()
    assert scene.sent == [STEER, other]
    assert len(scene.requeue) == 0


async def test_pauses_grow_up_to_half_a_minute(scene: Scene) -> None:
    scene.failures = [refused(403)] * 1000
    scene.requeue.send(STEER)
    await scene.pass_time(3600.0)
    assert 3600 / LAST_PAUSE_S <= len(scene.sent) <= 2 * 3600 / LAST_PAUSE_S + 12


@pytest.mark.parametrize(
    "shown",
    [
        pytest.param(None, id="gone"),
        pytest.param(replace(OWNER, uid="another"), id="replaced"),
        pytest.param(replace(OWNER, node="worker-2"), id="bound"),
        pytest.param(replace(OWNER, nominated_node="worker-1"), id="steered after all"),
    ],
)
async def test_what_nothing_is_left_to_do_for_is_let_go(scene: Scene, shown: Pod | None) -> None:
    def show() -> None:
        scene.pods = {} if shown is None else {OWNER.name: shown}

    scene.on_request = show
    scene.failures = [NO_ANSWER, refused(409), *[refused(404 if shown is None else 500)] * 1000]
    scene.requeue.send_sparingly(STEER)
    await scene.pass_time(300.0)
    assert len(scene.sent) <= 3
    assert len(scene.requeue) == 0


async def test_a_pod_that_the_api_server_has_replaced_is_gone(scene: Scene) -> None:
    scene.failures = [REPLACED]
    scene.requeue.send_sparingly(Retry(OWNER, attempts=1))
    with capture_logs() as logs:
        await scene.pass_time(60.0)
    assert (len(scene.sent), len(scene.requeue), logs) == (1, 0, [])


async def test_a_pod_that_no_watch_shows_yet_is_tried_for_a_minute(scene: Scene) -> None:
    scene.pods = {}
    scene.failures = [NO_ANSWER] * 6
    scene.requeue.send_sparingly(STEER)
    await scene.pass_time(30.0)
    assert len(scene.sent) == 7
    scene.failures = [NO_ANSWER] * 1000
    scene.requeue.send_sparingly(STEER)
    await scene.pass_time(300.0)
    assert len(scene.requeue) == 0


async def test_kube_scheduler_that_comes_by_itself_ends_it(scene: Scene) -> None:
    scene.failures = [NO_ANSWER]
    scene.requeue.send_sparingly(STEER)
    await scene.settle()
    scene.requeue.judged(OWNER.uid)
    await scene.pass_time(300.0)
    assert scene.sent == [STEER]


async def test_calls_of_the_last_second_are_recent(scene: Scene) -> None:
    for uid, seconds in (("a", 0.5), ("b", 0.25), ("a", 0.5)):
        scene.requeue.judged(uid)
        await scene.pass_time(seconds)
    assert sorted(scene.requeue.judged_lately()) == ["a", "b"]
    await scene.pass_time(LATELY_S - 0.75)
    assert scene.requeue.judged_lately() == ["a"]
    await scene.pass_time(0.5)
    assert scene.requeue.judged_lately() == []


async def test_a_nomination_that_was_to_be_taken_back_is_taken_back_after_all(
    scene: Scene,
) -> None:
    rouse = Activate(OWNER, "worker-1")
    scene.failures = [NO_ANSWER]
    scene.requeue.send(rouse)
    await scene.settle()
    scene.requeue.judged(OWNER.uid)  # The pod was sent back, and no node was found.
    await scene.pass_time(1.0)
    assert scene.sent == [rouse] * 2


async def test_a_later_verdict_replaces_the_one_before(scene: Scene) -> None:
    scene.failures = [NO_ANSWER]
    scene.requeue.send_sparingly(STEER)
    await scene.settle()
    elsewhere = Nominate(OWNER, "worker-2")
    scene.requeue.send_sparingly(elsewhere)
    await scene.pass_time(300.0)
    assert scene.sent == [STEER, elsewhere]


async def test_a_pod_that_has_used_up_its_tries_is_tried_when_time_has_passed(
    scene: Scene,
) -> None:
    for _ in range(SPARE_TRIES + 5):
        scene.requeue.send_sparingly(STEER)
        await scene.settle()
    assert len(scene.sent) == SPARE_TRIES
    await scene.pass_time(PUT_OFF_S)
    assert len(scene.sent) == SPARE_TRIES + 1
    # Each try is refused, but tries are too rare to cost other pods anything.
    scene.on_request = lambda: scene.requeue.send_sparingly(STEER)
    scene.requeue.send_sparingly(STEER)
    await scene.pass_time(3600.0)
    assert len(scene.sent) - SPARE_TRIES - 1 <= 3600 / PUT_OFF_S + 1


async def test_room_that_is_freed_waits_for_no_tries(scene: Scene) -> None:
    for _ in range(SPARE_TRIES + 1):
        scene.requeue.send_sparingly(STEER)
        await scene.settle()
    scene.requeue.send(STEER)
    await scene.settle()
    assert len(scene.sent) == SPARE_TRIES + 1
    assert len(scene.requeue) == 0


async def test_a_request_that_is_under_way_is_not_made_twice(scene: Scene) -> None:
    scene.gate.clear()
    for _ in range(5):
        scene.requeue.send(STEER)
        await scene.settle()
    scene.gate.set()
    await scene.settle()
    assert scene.sent == [STEER]


async def test_many_pods_share_few_connections_and_all_get_their_turn(scene: Scene) -> None:
    scene.gate.clear()
    for number in range(200):
        each = pod(f"p{number}")
        scene.pods[each.name] = each
        scene.requeue.send(Nominate(each, "worker-1"))
    await scene.settle()
    assert scene.most_at_once == CONNECTIONS
    scene.gate.set()
    for _ in range(20):
        await scene.settle()
    assert len({effect.pod.uid for effect in scene.sent}) == 200
    assert scene.most_at_once == CONNECTIONS
    assert len(scene.requeue) == 0
