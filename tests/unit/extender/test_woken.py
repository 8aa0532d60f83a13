"""Reserver sends a waiting pod back when its wait may end: kube-scheduler may not see why."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace
from functools import partial
from typing import cast

import pytest

from reserver.base.pacer import Pacer
from reserver.base.schedule import Schedule
from reserver.cluster.pod import Pod
from reserver.extender.waker import Waker
from reserver.reservations.entry import identified
from reserver.reservations.enums import Policy
from reserver.reservations.listener import Listeners
from reserver.reservations.recurrence import Recurrence
from reserver.reservations.reservation import Reservation
from reserver.scheduling.filter import filter_nodes
from reserver.scheduling.pending_pods import Waiting
from reserver.scheduling.recall import RECALL_S
from reserver.scheduling.state import State
from reserver.scheduling.verdicts import WaitsFor
from reserver.scheduling.wake import Wake
from tests.builders import BORROWER, NOW, node, pod, ref, reservation, rule
from tests.unit.extender.test_waker import Sends

HELD = reservation("r", cpu="4")
HELD_BY_NOBODY = reservation("h", cpu="4")
LENT = reservation("lent", lends_below=100, cpu="3")
YIELDING = reservation("yields", owners=("x",), yields_above=0, cpu="2")


class Scene:
    """A worker with four cores, and a pod that kube-scheduler would put there."""

    def __init__(
        self, *reservations: Reservation, there: tuple[Pod, ...] = (), cpu: str = "4"
    ) -> None:
        self.now = NOW
        self.sends = Sends()
        self.waker = Waker(self.sends, lambda: self.now)
        listeners = Listeners(lambda *_: pytest.fail("a listener failed"))
        listeners.add(self.waker)
        self.state = State(listeners)
        self.state.snapshot.lending.is_on = True
        self.state.ledger.advance(self.now)
        self.state.node_seen(node("worker-1", cpu=cpu))
        self.state.node_seen(node("worker-2", cpu="8"))
        for each in there:
            self.state.pod_seen(each)
        for made in reservations:
            self.state.ledger.put(made)
        self.state.ledger.past.end()
        self.state.is_complete = True

    async def refuse(self, asking: Pod) -> None:
        await self.look()
        self.state.pod_seen(asking)
        names = ["worker-1"]
        verdict = filter_nodes(asking, names, self.state, self.now)
        assert not verdict.nodes
        for_seat = verdict.waits_for is WaitsFor.SEAT
        self.state.judged(asking, names, waits=True, for_seat=for_seat)
        self.sends.lately = [asking.uid]
        if verdict.recalled:
            self.state.ledger.recall(verdict.recalled, self.now + RECALL_S)
        await self.look()
        assert not self.sends.sent
        self.sends.lately = []

    async def look(self) -> None:
        """Run the waker's two loops once."""
        await Pacer().run(self.state.ledger.advancing(self.now))
        self.state.snapshot.lending.reopen(self.now)
        await self.waker.look(self.state, Pacer())

    async def sent(self) -> list[str]:
        await self.look()
        return [each.pod.name.name for each in self.sends.sent]


def release(scene: Scene, name: str = "r") -> None:
    scene.state.ledger.drop(ref(name))
    scene.state.listener.on_reservation_changed(ref(name))  # As the stores do.


def wait(scene: Scene, seconds: float) -> None:
    scene.now += seconds


def claim(scene: Scene) -> None:
    scene.state.pod_seen(pod("owner", node="worker-2", cpu="1"))
    release(scene)


def end(scene: Scene, name: str) -> None:
    scene.state.pod_gone(pod(name).name)


def edit(scene: Scene, **fields: object) -> None:
    scene.state.ledger.put(identified(replace(UNPLACED, digest="edited", **fields)))  # type: ignore[arg-type]


def recurring(once: Reservation) -> Reservation:
    """Return a reservation whose present occurrence, at 5:45, ends in a minute."""
    schedule = Schedule("40 17 * * *", 460.0)
    return identified(replace(once, recurrence=Recurrence(schedule=schedule)))


STRANGER = pod("stranger", cpu="4")
UNPLACED = reservation("r", node="", owners=("stranger",), require=True, cpu="4")
GUEST = pod("guest", constraints=BORROWER, cpu="4")
IMPORTANT = pod("important", priority=10, cpu="3")
ENDS: dict[str, tuple[Callable[[], Scene], Pod, Callable[[Scene], None]]] = {
    "release": (lambda: Scene(HELD), STRANGER, release),
    "expiry": (
        lambda: Scene(replace(HELD, expires_at=NOW + 60)),
        STRANGER,
        partial(wait, seconds=60),
    ),
    "claim elsewhere": (
        lambda: Scene(reservation("r", node="", placed={"worker-1": 1, "worker-2": 1}, cpu="4")),
        STRANGER,
        claim,
    ),
    "end of a firm hold beside one that yields": (
        lambda: Scene(YIELDING, reservation("r", cpu="2")),
        IMPORTANT,
        release,
    ),
    "end of a hold beside a loan": (
        lambda: Scene(LENT, reservation("r", cpu="1")),
        GUEST,
        release,
    ),
    "end of a borrower": (
        lambda: Scene(
            LENT,
            reservation("r", cpu="1"),
            there=(pod("other", node="worker-1", constraints=BORROWER, cpu="2"),),
            cpu="6",
        ),
        GUEST,
        partial(end, name="other"),
    ),
    "a hold that lends from now on": (
        lambda: Scene(HELD),
        GUEST,
        lambda scene: scene.state.ledger.put(replace(HELD, digest="edited", lends_below=100)),
    ),
    "an owner that waits no more": (
        lambda: recalling(),  # noqa: PLW0108 - it is defined below
        GUEST,
        partial(wait, seconds=RECALL_S + 1),
    ),
    "release of a reservation without a place": (
        lambda: Scene(
            reservation("r", node="", owners=("stranger",), require=True, cpu="4"),
        ),
        STRANGER,
        release,
    ),
    "expiry of a reservation without a place": (
        lambda: Scene(
            reservation(
                "r", node="", owners=("stranger",), require=True, expires=NOW + 60, cpu="4"
            ),
        ),
        STRANGER,
        partial(wait, seconds=60),
    ),
    "release of one that was not used": (
        lambda: Scene(reservation("r", release_if_idle=60, cpu="4")),
        STRANGER,
        partial(wait, seconds=60),
    ),
    "end of an occurrence": (
        lambda: Scene(recurring(HELD)),
        STRANGER,
        partial(wait, seconds=60),
    ),
    "end of an occurrence of a reservation without a place": (
        lambda: Scene(recurring(UNPLACED)),
        STRANGER,
        partial(wait, seconds=60),
    ),
    "edit of a reservation without a place, which is for others now": (
        lambda: Scene(UNPLACED),
        STRANGER,
        partial(edit, owners=(pod("other").name,)),
    ),
    "edit of a reservation without a place, which only prefers its seats now": (
        lambda: Scene(UNPLACED),
        STRANGER,
        partial(edit, policy=Policy.PREFER),
    ),
    "edit of a reservation, which is on another node now": (
        lambda: Scene(
            HELD_BY_NOBODY, reservation("r", owners=("stranger",), require=True, cpu="4")
        ),
        STRANGER,
        partial(edit, node="worker-2"),
    ),
    "end of a seat beside one that is for any such pod": (
        lambda: Scene(
            HELD_BY_NOBODY,
            reservation("r", node="gone", owners=("stranger",), cpu="4"),
            reservation("s", node="worker-2", owners=(), rules=[rule(app="web")], cpu="4"),
        ),
        replace(STRANGER, labels={"app": "web"}),
        release,
    ),
}


def recalling() -> Scene:
    """Return a worker that lends nothing, because an owner came and went there."""
    scene = Scene(LENT)
    scene.state.ledger.recall("worker-1", NOW + RECALL_S)
    return scene


@pytest.mark.parametrize("what", ENDS)
async def test_a_pod_is_sent_back_when_that_ends_which_kept_it(what: str) -> None:
    make, asking, ends = ENDS[what]
    scene = make()
    await scene.refuse(asking)
    ends(scene)
    assert await scene.sent() == [asking.name.name]


async def test_who_edits_a_reservation_has_nobody_judged_that_waits_for_another() -> None:
    """5,000 wait for seats; one namespace changes its reservation before each look."""
    scene = Scene(UNPLACED, reservation("busy", node="worker-2", cpu="1"))
    for number in range(5_000):
        crowd = replace(STRANGER, uid=f"uid-{number}")
        scene.state.waiting[crowd.uid] = Waiting(crowd, None, kept_by=UNPLACED)
    for number in range(3):
        scene.state.ledger.put(replace(reservation("busy", node="worker-2"), digest=str(number)))
        assert concerned(scene) == 0
    scene.state.ledger.cannot_place(ref("r"), "there is no room")  # Theirs, which keeps them.
    assert concerned(scene) == 0
    release(scene)
    assert concerned(scene) == 5_000


def concerned(scene: Scene) -> int:
    """Return the number of pods that a look judges after a change of any reservation."""
    wake = Wake((), scene.state, scene.now, seats_are_over=True)
    return len(list(returned(wake.order())))


def returned(steps: Generator[None, None, list[str]]) -> list[str]:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return cast("list[str]", end.value)


async def test_who_waits_for_its_seat_takes_no_room_from_others_that_it_may_not_have() -> None:
    scene = Scene(UNPLACED, HELD_BY_NOBODY)
    await scene.refuse(replace(STRANGER, priority=10))
    await scene.refuse(pod("other", cpu="4"))
    release(scene, "h")
    assert await scene.sent() == ["other"]


async def test_who_waits_for_two_reservations_goes_once_both_are_over() -> None:
    also = reservation("s", node="", owners=("stranger",), require=True, cpu="4")
    scene = Scene(UNPLACED, also)
    await scene.refuse(STRANGER)
    release(scene, "r")
    assert not await scene.sent()
    assert concerned(scene) == 0
    release(scene, "s")
    assert await scene.sent() == ["stranger"]


async def test_who_prefers_a_seat_that_is_lost_takes_room_whatever_has_no_place() -> None:
    """The seat is borrowed, and does not fit the owner even without the borrower."""
    lent = reservation("lent", node="worker-2", owners=("stranger",), lends_below=1, cpu="8")
    guest = pod("guest", node="worker-2", constraints=BORROWER, cpu="8")
    scene = Scene(UNPLACED, HELD_BY_NOBODY, lent, there=(guest,))
    await scene.refuse(STRANGER)
    scene.state.pod_seen(pod("other", node="worker-2", cpu="8"))
    release(scene, "h")
    assert await scene.sent() == ["stranger"]
    assert filter_nodes(STRANGER, ["worker-1"], scene.state, scene.now).nodes


async def test_who_may_borrow_is_sent_though_another_that_asks_as_much_is_not() -> None:
    scene = Scene(LENT, reservation("r", cpu="1"))
    await scene.refuse(STRANGER)
    await scene.refuse(GUEST)
    release(scene)
    assert await scene.sent() == ["guest"]
