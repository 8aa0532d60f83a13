"""A move keeps its promises whatever happens around it, and whenever its executor dies."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from reserver.cluster.pod import Controller, PodName
from reserver.moves.advance import MoveStep, advance
from reserver.moves.effects import EvictPod, HoldSeat, PlaceSeatAnew, ReleaseSeat
from reserver.moves.model import NOBODY, Move, MoveSpec, MoveStatus, Replacement
from reserver.moves.observation import (
    GO,
    EffectAnswer,
    MoveTurn,
    Observation,
    ObservedPod,
    ObservedSeat,
)
from reserver.moves.phases import ENDED, MoveMode, MovePhase, MoveReason

WEB = Controller("ReplicaSet", "web")
ALIVE = ObservedPod(uid="uid-web", node="worker-1", controller=WEB)
CAME = Replacement("web-2", "uid-2", "worker-2")
HEIR = ObservedPod(uid="uid-2", name="web-2", node="", controller=WEB)
TIMEOUT_S = 60.0

SEATS = {
    "unplaced": ObservedSeat(obstacle="no node has room"),
    "backed": ObservedSeat(node="worker-2", is_backed=True),
    "short": ObservedSeat(node="worker-2", obstacle="worker-2 is short"),
    "here": ObservedSeat(node="worker-1", is_backed=True),
    "closed": ObservedSeat(node="worker-2", is_backed=True, closed="worker-2 is cordoned"),
    "dead": ObservedSeat(node="worker-2", impossible="worker-2 is gone"),
    "foreign": ObservedSeat(is_foreign=True, node="worker-2", is_backed=True),
}
HAPPENS = [
    *["seat backed"] * 12,
    *["seat short"] * 4,
    *["turn given"] * 3,
    *(f"seat {name}" for name in SEATS),
    "seat removed",
    "heir waits",
    "pod leaves",
    "pod gone",
    "pod finished",
    "pod another",
    "replacement claims",
    "replacement elsewhere",
    "replacement back",
    "no replacement",
    "turn given",
    "turn taken",
    "group fails",
    "rival",
    "paused",
    "resumed",
]
AFTER_THE_EVICTION = {
    MoveReason.LANDED,
    MoveReason.LANDED_ELSEWHERE,
    MoveReason.NOT_REPLACED,
    MoveReason.DEADLINE_EXCEEDED,
}
"""All that ends a move, and so releases its seat, once its pod was evicted."""

EXECUTOR = ["step"] * 6 + ["dies before the status", "dies after the status", "dies after one"]
ANSWERS = [*EffectAnswer]


@dataclass
class World:
    """The cluster, the written move, and the memory of the move's executor."""

    written: Move
    memory: Move
    now: float = 1000.0
    pod: ObservedPod | None = ALIVE
    seat: ObservedSeat | None = None
    came: Replacement = NOBODY
    heir: ObservedPod | None = None
    has_claimed: bool = False
    is_replaced: bool = True
    turn: MoveTurn = GO
    rival: str = ""
    failed: str = ""
    answer: EffectAnswer | None = None

    def seen(self) -> Observation:
        return Observation(
            pod=self.pod,
            seat=self.seat if self.memory.status.seat else None,
            replacement=self.came if self.memory.status.phase is MovePhase.LANDING else NOBODY,
            has_claimed=self.has_claimed,
            heir=self.heir,
            is_replaced=self.is_replaced,
            turn=self.turn,
            rival=self.rival,
            failed_member=self.failed,
            answer=self.answer,
            said="said",
        )

    def happen(self, what: str) -> None:
        kind, _, how = what.partition(" ")
        if kind == "seat":
            if self.seat is not None or how == "foreign":
                self.seat = SEATS.get(how)
        elif kind == "pod" and self.pod is not None:
            self.pod = {
                "leaves": replace(self.pod, is_leaving=True),
                "gone": None,
                "finished": replace(self.pod, is_finished=True),
                "another": replace(ALIVE, uid="uid-other"),
            }[how]
        elif kind == "replacement":
            node = {"claims": "worker-2", "elsewhere": "worker-3", "back": "worker-1"}[how]
            self.came, self.has_claimed = CAME._replace(node=node), how == "claims"
        elif what in {"turn given", "turn taken"}:
            may = what == "turn given"
            self.turn = MoveTurn(may_begin=may, may_evict=may, why="limits")
        elif what in {"paused", "resumed"}:
            spec = replace(self.written.spec, paused=what == "paused")
            self.written = replace(self.written, spec=spec)
            self.memory = replace(self.memory, spec=spec)
        elif what == "heir waits":
            self.heir = HEIR
        elif what == "no replacement":
            self.is_replaced = False
        elif what == "rival":
            self.rival = "shop/first"
        else:
            self.failed = "shop/member"

    def restart(self) -> None:
        """Start again from the written status; the state in memory is lost."""
        status = replace(self.written.status, retry_at=0.0, attempts=0)
        self.memory, self.answer = replace(self.written, status=status), None

    def step(self, answer: EffectAnswer, *, dies: str) -> None:
        seen, before = self.seen(), self.memory
        step = advance(before, seen, self.now)
        check(before, seen, step, self.now)
        if dies == "before the status":
            self.restart()
            return
        self.memory = self.written = step.move
        self.answer = None
        if dies == "after the status":
            self.restart()
            return
        for effect in step.effects:
            self.do(effect, answer)
        if dies:
            self.restart()

    def do(self, effect: object, answer: EffectAnswer) -> None:
        if isinstance(effect, HoldSeat):
            if answer is EffectAnswer.SEAT_REFUSED:
                self.answer = answer
            elif self.seat is None:
                self.seat = SEATS["unplaced"]
        elif isinstance(effect, ReleaseSeat):
            self.seat = None
        elif isinstance(effect, PlaceSeatAnew):
            assert self.seat is not None
            if effect.anywhere:  # The placer finds another place for it.
                self.seat = ObservedSeat(node="worker-3", is_backed=True)
        elif isinstance(effect, EvictPod) and answer is not EffectAnswer.SEAT_REFUSED:
            self.answer = answer
            if answer is EffectAnswer.EVICTED and self.pod and self.pod.uid == effect.uid:
                self.pod = replace(self.pod, is_leaving=True)


def check(before: Move, seen: Observation, step: MoveStep, now: float) -> None:
    """Check what holds of every step."""
    after = step.move
    if before.is_over:
        assert after.status == before.status
    if any(isinstance(effect, EvictPod) for effect in step.effects):
        assert after.status.phase is MovePhase.EVICTING
        assert not after.spec.paused
        assert seen.turn.may_evict
        assert seen.pod is not None
        assert seen.pod.uid == after.status.uid
        assert before.status.uid in {"", seen.pod.uid}
        if after.spec.mode is MoveMode.RESERVE_FIRST:
            seat = seen.seat
            assert seat is not None
            assert seat.is_usable
            assert not seat.is_foreign
            assert seat.node != ALIVE.node
    if after.is_over:
        is_ours = seen.seat is not None and not seen.seat.is_foreign
        assert any(isinstance(effect, ReleaseSeat) for effect in step.effects) == is_ours
        assert after.status.finished_at is not None
        assert after.status.message
        assert step.again_at is None
    else:
        # An eviction that may have happened is settled first, however late it is.
        is_in_doubt = after.status.phase is MovePhase.EVICTING and now < after.status.retry_at
        assert now < after.deadline or is_in_doubt
        assert step.again_at is not None
        assert now < step.again_at <= max(after.deadline, after.status.retry_at)
    if after.status.phase is MovePhase.ABORTED:
        assert after.status.evicted_at is None
    if before.status.evicted_at is not None and after.is_over:
        assert before.is_over or after.status.reason in AFTER_THE_EVICTION
    for effect in step.effects:
        if isinstance(effect, PlaceSeatAnew) and effect.anywhere:
            assert before.status.phase is MovePhase.LANDING
            assert seen.seat is not None
            assert not seen.seat.is_foreign
    _check_again(before, seen, step, now)


def _check_again(before: Move, seen: Observation, step: MoveStep, now: float) -> None:
    """Repeat the step, from the status before and from the status after."""
    assert advance(before, seen, now) == step
    again = advance(step.move, replace(seen, answer=None, said=""), now)
    if before.status.phase is not MovePhase.LANDING and step.move.status.phase is MovePhase.LANDING:
        # There it stops: the replacement is looked for before anything else is said.
        assert again.move.status.phase in {MovePhase.LANDING, *ENDED}
        return
    assert again.move.status == step.move.status or seen.answer is not None
    assert again.move.status.phase is step.move.status.phase


worlds = st.builds(
    lambda mode, node: Move(
        name=PodName("shop", "move"),
        uid="0123456789",
        created_at=1000.0,
        spec=MoveSpec(pod=PodName("shop", "web"), mode=mode, node=node, timeout_s=TIMEOUT_S),
        status=MoveStatus(),
    ),
    st.sampled_from(MoveMode),
    st.sampled_from(["", "worker-2", "worker-3"]),
).map(lambda move: World(move, move))

turns = st.tuples(
    st.lists(st.sampled_from(HAPPENS), max_size=1),
    st.sampled_from(EXECUTOR),
    st.sampled_from(ANSWERS),
    st.sampled_from([0.0, 0.5, 3.0, 20.0]),
)


@settings(max_examples=500)
@given(worlds, st.lists(turns, max_size=25))
def test_no_eviction_without_a_seat_and_no_seat_outlives_its_move(
    world: World, played: list[tuple[list[str], str, EffectAnswer, float]]
) -> None:
    for happens, executor, answer, passes in played:
        for what in happens:
            world.happen(what)
        world.now += passes
        world.step(answer, dies=executor.removeprefix("dies ") if "dies" in executor else "")
    for _ in range(5):  # A move that evicts at last has time to land.
        world.now = max(world.now, world.written.deadline, world.memory.status.retry_at)
        world.step(EffectAnswer.EVICTED, dies="")
    assert world.written.status.phase in ENDED
    assert world.seat is None or world.seat.is_foreign or not world.written.status.seat
