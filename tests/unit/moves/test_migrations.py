"""Virtual machines of KubeVirt: the replacement comes before the pod goes."""

from dataclasses import replace

import pytest

from reserver.cluster.budgets import Budget, Budgets
from reserver.cluster.labels import EVERYTHING
from reserver.cluster.pod import TARGET_LABEL, Controller, Pod, PodName
from reserver.errors import ApiError
from reserver.k8s.eviction import Reply, evict, eviction
from reserver.k8s.objects.times import show_moment
from reserver.moves.advance import advance
from reserver.moves.migrations import heirs, migrated
from reserver.moves.model import Replacement
from reserver.moves.phases import MovePhase, MoveReason
from tests import builders
from tests.unit.k8s.crashes import crash_at_each_write, done_or_not
from tests.unit.k8s.fakes import ScriptedClient
from tests.unit.moves.api_server import PODS, SEATS, Document
from tests.unit.moves.build import NOW, POD, leaving, move, seen
from tests.unit.moves.world import World

BEGUN = ApiError(
    429,
    "TooManyRequests",
    'admission webhook "virt-launcher-eviction-interceptor.kubevirt.io" denied the request: '
    'Eviction triggered evacuation of VMI "shop/vm"',
)
MACHINE = Controller("VirtualMachineInstance", "vm")
CAME = Replacement("web-1", "uid-target", "worker-2")
FINISHED = replace(POD, is_finished=True)


class MachineWorld(World):
    """A virtual machine that migrates at the eviction of its pod.

    Attributes:
        goes: how the old pod ends: it is finished, or deleted.
        failures: how many targets fail before one gets to run.
    """

    def __init__(self, goes: str = "finished", failures: int = 0) -> None:
        self.goes, self.failures = goes, failures
        super().__init__()
        self.api.refusals = [BEGUN] * 100

    def make_pod(self, node: str = "", of: str = "web") -> Document:
        made = super().make_pod(node, of)
        owner = {"kind": MACHINE.kind, "name": MACHINE.name, "uid": "vmi", "controller": True}
        made["metadata"]["ownerReferences"] = [owner]
        return self.api.put(PODS, made)

    async def round(self) -> None:
        self.watch()
        await self._reserver()
        self._kubevirt()
        self.watch()
        self._schedule()
        self.watch()

    def _kubevirt(self) -> None:
        there = [each for each in self.pods() if each.get("status", {}).get("phase") != "Succeeded"]
        if len(self.api.refusals) == 100:
            return
        # After a failure it pauses, for longer than a seat takes to be backed again.
        is_held = any(seat["status"].get("phase") == "Active" for seat in self.api.of(SEATS))
        if len(there) == 1 and "labels" not in there[0]["metadata"] and is_held:
            target = self.make_pod()
            target["metadata"]["labels"] = {TARGET_LABEL: "job"}
            self.api.put(PODS, target)
        elif len(there) == 2 and there[1]["spec"].get("nodeName"):
            self._migrate(*there)

    def _migrate(self, source: Document, target: Document) -> None:
        if self.failures:
            self.failures -= 1
            self.api.remove(f"{PODS}/{target['metadata']['name']}")
        elif self.goes == "deleted":
            self.api.remove(f"{PODS}/{source['metadata']['name']}")
        else:
            self.api.put(PODS, source | {"status": {"phase": "Succeeded"}})


@pytest.mark.parametrize("goes", ["finished", "deleted"])
async def test_the_target_of_a_migration_takes_the_seat_before_the_pod_goes(goes: str) -> None:
    world = MachineWorld(goes)
    await world.start()
    world.move(to={"node": "worker-2"})
    status = await world.settle()
    assert (status["phase"], status["reason"]) == ("Succeeded", "Landed")
    assert status["replacement"]["name"] == world.pods()[-1]["metadata"]["name"]
    assert world.pods()[-1]["spec"]["nodeName"] == "worker-2"


async def test_a_migration_that_fails_is_begun_again_with_a_seat() -> None:
    world = MachineWorld(failures=1)
    await world.start()
    world.move()
    status = await world.settle(rounds=60)
    assert (status["reason"], status["replacement"]["name"]) == ("Landed", "web-2")
    assert len([path for path in world.api.writes if path == SEATS]) == 2


@done_or_not
async def test_reserver_is_killed_at_every_write_of_a_migration(*, is_done: bool) -> None:
    async def begin() -> World:
        world = MachineWorld()
        await world.start()
        world.move()
        return world

    def judge(world: World) -> None:
        assert world.status["reason"] == "Landed"

    assert await crash_at_each_write(begin, judge, is_done=is_done) >= 5


@pytest.mark.parametrize("phase", [MovePhase.RESERVING, MovePhase.EVICTING])
def test_a_move_waits_for_the_pod_to_go_whose_replacement_is_there(phase: MovePhase) -> None:
    step = advance(move(phase), seen(replacement=CAME, has_claimed=True), NOW)
    status = step.move.status
    assert (status.phase, status.reason) == (
        MovePhase.EVICTING,
        MoveReason.WAITS_FOR_REPLACEMENT,
    )
    assert status.message == "web-1 is on worker-2; the pod goes once its live migration has ended"
    assert (status.replacement, step.effects) == (CAME, ())


@pytest.mark.parametrize("pod", [None, leaving(), FINISHED], ids=["gone", "leaving", "finished"])
def test_it_ends_once_the_pod_has_gone(pod: object) -> None:
    what = seen(pod, replacement=CAME, has_claimed=True)  # type: ignore[arg-type]
    landing = advance(move(MovePhase.EVICTING), what, NOW).move
    assert (landing.status.phase, landing.status.evicted_at) == (MovePhase.LANDING, NOW)
    ended = advance(landing, what, NOW).move.status
    assert (ended.phase, ended.reason) == (MovePhase.SUCCEEDED, MoveReason.LANDED)


def test_a_migration_that_outlasts_the_timeout_fails_its_move() -> None:
    made = move(MovePhase.EVICTING)
    ended = advance(made, seen(replacement=CAME), made.deadline).move.status
    assert (ended.phase, ended.reason) == (MovePhase.FAILED, MoveReason.DEADLINE_EXCEEDED)


def target(name: str, created: float, **fields: object) -> Pod:
    known: dict[str, object] = {
        "name": PodName("shop", name),
        "uid": f"uid-{name}",
        "node": "worker-2",
        "controller": MACHINE,
        "labels": {TARGET_LABEL: "job"},
        "created": show_moment(created),
    }
    return Pod(**(known | fields))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ([], None),
        ([target("a", NOW)], "a"),
        ([target("a", NOW), target("b", NOW + 5)], "b"),
        ([target("old", NOW - 100)], None),
        ([target("old", NOW - 100, claims=frozenset({"shop/web-move-01234567#0"}))], "old"),
        ([target("waits", NOW, node="")], None),
        ([target("leaves", NOW, terminating=True)], None),
        ([target("cold", NOW, labels={})], None),
        ([target("other", NOW, controller=Controller("ReplicaSet", "vm"))], None),
    ],
)
def test_the_pod_that_a_migration_has_brought(others: list[Pod], expected: str | None) -> None:
    made = move(MovePhase.EVICTING)
    made = replace(made, status=replace(made.status, started_at=NOW - 5))
    found = migrated(made, others)
    assert (found.name.name if found else None) == expected


def test_a_budget_is_not_asked_of_a_pod_that_migrates() -> None:
    budget = Budget(name=PodName("shop", "kubevirt-disruption-budget"), selector=EVERYTHING)
    web = target("web", NOW, controller=Controller("ReplicaSet", "web"))
    assert Budgets([budget]).refusal(web)
    assert Budgets([budget]).refusal(target("vm", NOW)) == ""


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ('Eviction triggered evacuation of VMI "shop/vm"', Reply.IN_BACKGROUND),
        ('Evacuation in progress: Eviction of VMI "vm"', Reply.IN_BACKGROUND),
        ("it would violate the pod's disruption budget.", Reply.BLOCKED),
    ],
)
async def test_an_eviction_that_a_webhook_turns_into_a_migration(
    said: str, expected: Reply
) -> None:
    client = ScriptedClient(ApiError(429, "TooManyRequests", said))
    reply, _ = await evict(client, eviction(PodName("shop", "vm"), "uid", None, {}))
    assert reply is expected


def test_a_waiting_pod_of_the_same_name_is_an_heir_whatever_the_clocks_showed() -> None:
    """Else a StatefulSet's pod got no other seat after the clock was set back."""
    made = move(MovePhase.LANDING)
    left = replace(made, status=replace(made.status, evicted_at=NOW))
    earlier = show_moment(NOW - 3600)
    same, other = (replace(builders.pod(name), created=earlier) for name in ("web", "sibling"))
    assert heirs(left, [same, other], NOW - 3600) == [same]
