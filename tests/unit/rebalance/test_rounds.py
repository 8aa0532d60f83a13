import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from reserver.cluster.pod import PodName
from reserver.errors import ApiError, ConfigurationError, InvalidInput, LoadUnknown, ReserverError
from reserver.k8s.objects.move_windows import parse
from reserver.k8s.objects.times import show_micro
from reserver.rebalance.capacity import Held
from reserver.rebalance.dump import COLLECTIONS
from reserver.rebalance.emptying import Settled
from reserver.rebalance.evictions import Evictions, Pace
from reserver.rebalance.measured_load import METRICS_API, Rounds
from reserver.rebalance.node_marks import NodeMarks
from reserver.rebalance.outcomes import OutcomeReporter, Result
from reserver.rebalance.plan import Plan, PlannedMove
from reserver.rebalance.pod_moves import MOST_OPEN, PodMoves
from reserver.rebalance.policy_file import PolicyFile
from reserver.rebalance.round import Executors, Round, RoundOptions
from reserver.rebalance.round_input import Decision, RoundInput
from reserver.rebalance.rounds import SAMPLE_S, Rebalancer
from tests.unit.k8s.fakes import NO_ANSWER, ScriptedClient, refused

POLICY = "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\n"
BY_LOAD = (
    POLICY
    + """
gracePeriodSeconds: 5
profiles:
- name: load
  pluginConfig:
  - name: LowNodeLoad
    args: {lowThresholds: {cpu: 40}, highThresholds: {cpu: 80}}
  plugins: {balance: {enabled: [LowNodeLoad]}}
"""
)
NODES = {"kind": "NodeList", "items": [{"metadata": {"name": "n1"}}]}
PODS = {
    "kind": "PodList",
    "items": [
        {
            "metadata": {"name": "web-0", "namespace": "shop", "uid": "uid-web-0"},
            "spec": {"nodeName": "n1"},
        }
    ],
}
REST: list[Any] = [{"kind": "List", "items": []}] * (len(COLLECTIONS) - 2)
CLUSTER = [NODES, PODS, *REST]
USED = {
    "kind": "NodeMetricsList",
    "items": [
        {
            "metadata": {"name": "n1"},
            "timestamp": "1970-01-01T00:16:40Z",
            "window": "15s",
            "usage": {"cpu": "2"},
        }
    ],
}
PODS_USED = {"kind": "PodMetricsList", "items": []}
MOVE = PlannedMove(
    pod=PodName("shop", "web-0"),
    uid="uid-web-0",
    source="n1",
    target=None,
    strategy="S",
    profile="p",
)


HELD = {"n1": {"cpu": 500}}


class World:
    """A rebalancer whose decision is written down.

    Attributes:
        looks: what it decided on.
        slept: for how long it waited, in seconds.
    """

    def __init__(
        self,
        path: Path,
        *script: Any,
        policy: str = POLICY,
        dry_run: bool = False,
        reserves_first: bool = False,
        moves: tuple[PlannedMove, ...] = (MOVE,),
    ) -> None:
        path.write_text(policy)
        self.client = ScriptedClient(*script)
        self.now = 1000.0
        self.looks: list[RoundInput] = []
        self.moves = moves
        reporter, pace = OutcomeReporter(self.client, "host"), Pace(1000, 1000)
        parts = (self.client, lambda: self.now, pace, reporter)
        pod_moves = PodMoves(*parts) if reserves_first else None
        self.rebalancer = Rebalancer(
            self.client,
            PolicyFile(path),
            Executors(Evictions(*parts), pod_moves),
            RoundOptions(decide=self.decide, held=self.held),
            lambda: self.now,
            dry_run=dry_run,
        )

    async def held(self) -> Held:
        return HELD

    def decide(self, look: RoundInput, held: Held) -> Decision:
        assert held is HELD
        self.looks.append(look)
        rounds = {"p": Rounds({}, float(len(self.looks)))}
        return Decision(plan=Plan(moves=self.moves), rounds=rounds)

    @property
    def evicted(self) -> list[Any]:
        return [each.body for each in self.client.requests if each.path.endswith("/eviction")]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "policy.yaml"


async def test_a_round_looks_decides_and_evicts(path: Path) -> None:
    world = World(path, *CLUSTER, {}, {})
    found = await world.rebalancer.round()
    assert [each.result for each in found.outcomes] == [Result.SUCCESS]
    (look,) = world.looks
    assert [pod.name for pod in look.cluster.pods] == [MOVE.pod]
    assert len(world.evicted) == 1


async def test_without_seats_a_pod_is_evicted_once_and_its_further_steps_are_named(
    path: Path,
) -> None:
    """An evicted pod lands on another node than the plan assumed."""
    steps = replace(MOVE, target="n2"), replace(MOVE, source="n2", target="n3")
    world = World(path, *CLUSTER, {}, {}, moves=steps)
    found = await world.rebalancer.round()
    assert [each.move for each in found.outcomes] == [steps[0]]
    assert found.plan.notes == ("an evicted pod is not moved again: 1 further moves are left out",)


async def test_a_dry_run_evicts_nothing(path: Path) -> None:
    world = World(path, *CLUSTER, dry_run=True)
    found = await world.rebalancer.round()
    assert (found.plan.moves, found.outcomes) == ((MOVE,), ())
    assert world.evicted == []


OWNED = {
    **PODS,
    "items": [
        {
            "metadata": {
                "name": name,
                "namespace": "shop",
                "uid": f"uid-{name}",
                "ownerReferences": [
                    {"kind": "StatefulSet", "name": "web", "uid": "u", "controller": True}
                ],
            },
            "spec": {"nodeName": "n1"},
        }
        for name in ("web-0", "web-1")
    ],
}
OTHER = replace(MOVE, pod=PodName("shop", "web-1"), uid="uid-web-1", target="n2")
NO_MOVES: dict[str, Any] = {"kind": "PodMoveList", "items": []}


def pod_move(pod: str, phase: str = "", **labels: str) -> dict[str, Any]:
    created = "1970-01-01T00:15:00Z"
    metadata = {"name": f"move-{pod}", "namespace": "shop", "creationTimestamp": created}
    return {
        "metadata": metadata | {"labels": labels},
        "spec": {"pod": {"name": pod}},
        **({"status": {"phase": phase}} if phase else {}),
    }


async def test_with_reserve_first_a_round_writes_pod_moves_and_evicts_nobody(path: Path) -> None:
    script = [NO_MOVES, NODES, OWNED, *REST, {}, {}, {}, {}]
    world = World(path, *script, reserves_first=True, moves=(MOVE, OTHER))
    found = await world.rebalancer.round()
    assert [each.pod_move for each in found.outcomes] == [
        "rebalance-f4240-000",
        "rebalance-f4240-001",
    ]
    assert (world.evicted, found.left) == ([], 0)
    assert [each.path for each in world.client.requests if "podmoves" in each.path] == [
        "/apis/reserver.io/v1alpha1/podmoves",
        *["/apis/reserver.io/v1alpha1/namespaces/shop/podmoves"] * 2,
    ]


async def test_a_pod_that_a_pod_move_moves_is_left_alone_until_that_has_ended(path: Path) -> None:
    listed = {**NO_MOVES, "items": [pod_move("web-0"), pod_move("web-1", "Failed")]}
    script = [listed, NODES, OWNED, *REST]
    world = World(path, *script, dry_run=True, reserves_first=True, moves=(MOVE, OTHER))
    found = await world.rebalancer.round()
    assert (found.plan.moves, found.left) == ((OTHER,), 1)
    assert found.plan.notes == ("1 moves are left to the next round",)


@pytest.mark.parametrize("reason", ["GroupFailed", "PlanOutdated"])
@pytest.mark.parametrize(
    ("failures", "passed_s", "moves"),
    [(1, 299, []), (1, 300, ["web-0"]), (2, 599, []), (2, 600, ["web-0"]), (99, 3600, ["web-0"])],
)
async def test_a_pod_whose_moves_have_failed_rests_longer_each_time(
    path: Path, failures: int, passed_s: int, moves: list[str], reason: str
) -> None:
    failed = [pod_move("web-0", "Failed") for _ in range(failures)]
    grouped = pod_move("web-1", "Failed")
    for each in (*failed, grouped):
        each["status"] |= {"podUID": "uid-web-0", "finishedAt": show_micro(1000.0 - passed_s)}
    grouped["status"] |= {"podUID": "uid-web-1", "reason": reason}
    listed = {**NO_MOVES, "items": [*failed, grouped]}
    script = [listed, NODES, OWNED, *REST]
    world = World(path, *script, dry_run=True, reserves_first=True, moves=(MOVE, OTHER))
    found = await world.rebalancer.round()
    assert [each.pod.name for each in found.plan.moves] == [*moves, "web-1"]
    assert found.left == (not moves)


async def test_a_pending_pod_for_which_room_is_held_already_is_not_looked_at(path: Path) -> None:
    """Its room counts as held: a plan would make room for it once more, elsewhere."""
    pending = [each | {"spec": {}} for each in OWNED["items"]]  # type: ignore[operator]
    script = [{**NO_MOVES, "items": [pod_move("web-0")]}, NODES, {**OWNED, "items": pending}, *REST]
    world = World(path, *script, dry_run=True, reserves_first=True, moves=())
    await world.rebalancer.round()
    (look,) = world.looks
    assert [pod.name.name for pod in look.cluster.pods] == ["web-1"]


async def test_a_round_waits_for_those_of_earlier_ones_and_not_for_other_moves(path: Path) -> None:
    own = {"reserver.io/rebalance-strategy": "S"}
    full = [pod_move(f"a-{n}", "Reserving", **own) for n in range(MOST_OPEN)]
    first, last = ({**NO_MOVES, "items": part} for part in (full[:30], full[30:]))
    first["metadata"] = {"continue": "more"}
    world = World(path, first, last, reserves_first=True)
    found = await world.rebalancer.round()
    assert found.plan.notes == (
        "50 PodMoves of earlier rounds are under way; this round waits for them",
    )
    others = {**NO_MOVES, "items": [pod_move(f"a-{n}") for n in range(MOST_OPEN)]}
    world = World(path, others, NODES, OWNED, *REST, dry_run=True, reserves_first=True)
    assert (await world.rebalancer.round()).plan.moves == (MOVE,)


async def test_without_the_crd_of_pod_moves_nothing_is_begun(path: Path) -> None:
    world = World(path, refused(404, "NotFound"), reserves_first=True)
    with pytest.raises(ConfigurationError, match="apply scheduler-config/components/moves"):
        await world.rebalancer.round()
    assert world.looks == []


async def test_what_a_round_remembers_is_handed_to_the_next(path: Path) -> None:
    world = World(path, *CLUSTER, *CLUSTER, dry_run=True)
    await world.rebalancer.round()
    await world.rebalancer.round()
    assert world.looks[1].rounds == {"p": Rounds({}, 1.0)}


async def test_load_is_read_where_the_policy_wants_it_and_what_left_is_debited(path: Path) -> None:
    world = World(path, *CLUSTER, USED, PODS_USED, {}, {}, policy=BY_LOAD)
    await world.rebalancer.round()
    assert world.looks[0].loads[METRICS_API].nodes["n1"].usage == {"cpu": 2000.0}
    (eviction,) = world.evicted
    assert eviction["deleteOptions"]["gracePeriodSeconds"] == 5
    (moving,) = world.rebalancer.loads._memories[METRICS_API].moving
    assert (moving.departure.uid, moving.departure.grace_s) == ("uid-web-0", 5)


@pytest.mark.parametrize(
    ("script", "error"),
    [
        ([NO_ANSWER], ApiError),
        ([refused(403)], ApiError),
        ([b"<html>"], InvalidInput),
        ([*CLUSTER, refused(503)], LoadUnknown),
        ([*CLUSTER, USED, refused(503)], LoadUnknown),
        ([*CLUSTER, b"{}", PODS_USED], LoadUnknown),
    ],
    ids=["away", "forbidden", "no list", "no metrics", "no metrics of pods", "no list of metrics"],
)
async def test_a_round_that_does_not_see_everything_does_nothing(
    path: Path, script: list[Any], error: type[ReserverError]
) -> None:
    world = World(path, *script, policy=BY_LOAD)
    with pytest.raises(error):
        await world.rebalancer.round()
    assert (world.looks, world.evicted) == ([], [])


async def test_a_policy_that_asks_prometheus_has_to_say_where_it_is(path: Path) -> None:
    policy = BY_LOAD.replace(
        "{lowThresholds", "{metricsUtilization: {source: Prometheus}, lowThresholds"
    )
    world = World(path, *CLUSTER, policy=policy)
    with pytest.raises(LoadUnknown, match="has no metricsProviders of source Prometheus"):
        await world.rebalancer.round()


async def test_a_round_that_fails_is_followed_by_another(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(path, NO_ANSWER, *CLUSTER, dry_run=True)
    told: list[bool] = []
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        world.now += seconds
        if len(told) > 1:
            raise asyncio.CancelledError

    monkeypatch.setattr("reserver.rebalance.rounds.asyncio.sleep", sleep)
    with pytest.raises(asyncio.CancelledError):
        await world.rebalancer.run(60.0, lambda is_done, _: told.append(is_done))
    assert told == [False, True]
    assert slept == [SAMPLE_S] * 5


async def test_between_rounds_load_is_read_as_often_as_it_is_new(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = {**USED, "items": [{**USED["items"][0], "timestamp": "1970-01-01T00:16:55Z"}]}  # type: ignore[dict-item]
    script = [*CLUSTER, USED, PODS_USED, later, NO_ANSWER, later]
    world = World(path, *script, policy=BY_LOAD, dry_run=True)

    async def sleep(seconds: float) -> None:
        world.now += seconds
        if not world.client.script:
            raise asyncio.CancelledError

    monkeypatch.setattr("reserver.rebalance.rounds.asyncio.sleep", sleep)
    with pytest.raises(asyncio.CancelledError):
        await world.rebalancer.run(60.0, lambda *_: None)
    assert world.rebalancer.loads._memories[METRICS_API].nodes["n1"].at == 1015.0


MARKED = {
    "metadata": {
        "name": "n1",
        "resourceVersion": "7",
        "annotations": {"reserver.io/emptying": "2030-01-31T10:00:00Z"},
    },
    "spec": {"unschedulable": True},
}
OPEN = {"metadata": {"name": "n1", "resourceVersion": "7"}}


def emptying(world: World, *, emptied: tuple[str, ...] = ("n1",)) -> World:
    """Return a world whose rounds empty nodes; each plan empties these."""

    def decide(look: RoundInput, _: Held) -> Decision:
        world.looks.append(look)
        moves = world.moves if look.policy.limits.total != 0 else ()
        return Decision(plan=Plan(moves=moves, emptied=emptied if moves else ()), rounds={})

    async def held() -> Held:
        return {}

    marks = NodeMarks(world.client, lambda: world.now)
    options = replace(world.rebalancer.options, decide=decide, held=held, marks=marks)
    world.rebalancer.options = options
    return world


def on_nodes(world: World) -> list[str]:
    return [each.verb for each in world.client.requests if "/nodes/n1" in each.path]


async def test_a_node_is_closed_before_its_pods_get_their_pod_moves(path: Path) -> None:
    script = [NO_MOVES, NODES, OWNED, *REST, OPEN, {}, {}, {}, {}, {}]
    world = emptying(World(path, *script, reserves_first=True, moves=(MOVE, OTHER)))
    found = await world.rebalancer.round()
    assert len(found.outcomes) == 2
    paths = [each.path for each in world.client.requests[len(CLUSTER) + 1 :]]
    assert [each.rpartition("/")[2] for each in paths[:3]] == ["n1", "n1", "podmoves"]
    assert world.client.requests[len(CLUSTER) + 2].body["spec"] == {"unschedulable": True}


async def test_a_node_that_is_empty_is_opened_and_named(path: Path) -> None:
    nodes = {"kind": "NodeList", "items": [MARKED]}
    script = [NO_MOVES, nodes, {**PODS, "items": []}, *REST, MARKED, {}]
    world = emptying(World(path, *script, reserves_first=True, moves=()))
    found = await world.rebalancer.round()
    assert found.settled == Settled(("n1",))
    assert on_nodes(world) == ["get", "patch"]


async def test_a_dry_run_and_no_more_moves_close_nothing(path: Path) -> None:
    script = [NO_MOVES, NODES, OWNED, *REST]
    dry = World(path, *script, reserves_first=True, dry_run=True)
    await emptying(dry).rebalancer.round()
    assert on_nodes(dry) == []
    done = emptying(World(path, *script, reserves_first=True))
    assert not (await done.rebalancer.round(most_moves=0)).outcomes
    assert on_nodes(done) == []


async def test_outside_of_its_windows_a_round_gives_back_what_no_move_leaves(path: Path) -> None:
    nodes = {"kind": "NodeList", "items": [MARKED]}
    world = emptying(World(path, NO_MOVES, nodes, OWNED, *REST, MARKED, {}, reserves_first=True))
    closed = replace(world.rebalancer.options, windows=(parse("0 22 * * * 6h"),))
    world.rebalancer.options = closed
    world.now = 1_896_084_000.0
    found = await world.rebalancer.round()
    assert (found.settled, world.looks) == (Settled((), ("n1",)), [])


async def test_rounds_as_one_name_each_node_and_move_once() -> None:
    first = Round(plan=Plan(moves=(MOVE,)), settled=Settled(("a",), ("b",)))
    later = Round(plan=Plan(moves=(OTHER,)), settled=Settled(("c",), ("b",)))
    both = first.followed_by(later)
    assert (both.plan.moves, both.settled) == ((MOVE, OTHER), Settled(("a", "c"), ("b",)))


async def test_the_end_of_the_pod_moves_of_rounds_is_waited_for(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = pod_move("web-0", "Landing", **{"reserver.io/rebalance-strategy": "S"})
    under_way, slept = {**NO_MOVES, "items": [own, pod_move("web-1")]}, list[float]()

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr("reserver.rebalance.rounds.asyncio.sleep", sleep)
    world = World(path, under_way, {**NO_MOVES, "items": [pod_move("web-1")]}, reserves_first=True)
    await world.rebalancer.settle()
    assert len(slept) == 1


async def test_outside_of_its_windows_a_round_moves_nothing_and_says_until_when(path: Path) -> None:
    world = World(path, *CLUSTER, {}, {})
    judge = world.rebalancer.options
    world.rebalancer.options = replace(judge, windows=(parse("0 22 * * * 6h"),))
    world.now = 1_896_084_000.0
    found = await world.rebalancer.round()
    assert found.plan.notes == (
        "rounds move nothing before 2030-01-31T22:00:00Z, by --move-window",
    )
    assert not world.client.requests
    world.now += 12 * 3600
    assert (await world.rebalancer.round()).outcomes


@pytest.mark.parametrize("dry_run", [True, False])
async def test_a_round_says_what_each_move_costs_and_gains(path: Path, *, dry_run: bool) -> None:
    moves = replace(MOVE, cost=2.0, gain=12.5), replace(MOVE, pod=PodName("shop", "web-1"))
    world = World(path, *CLUSTER, *[{}] * 4, moves=moves, dry_run=dry_run)
    with capture_logs() as logs:
        await world.rebalancer.round()
    said = [each for each in logs if each["event"] in {"would evict pod", "evicted pod"}]
    assert [(each["cost"], each.get("gain")) for each in said] == [(2.0, 12.5), (1.0, None)]
