"""Chooses which moves of a plan become PodMoves now, and which wait for the next round.

A PodMove holds room before its pod is evicted (docs/adr/0033). A plan may be carried out in parts,
so a postponed move also postpones the moves into the room that it would have left. Room for a
pending pod is a PodMove, too, without a source node; the moves that make this room are all made, or
none. A pod that goes through an intermediate node (a swap) makes all of its steps, or none.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from reserver.base.fairness import FairCount
from reserver.cluster.pod import PodName
from reserver.rebalance.cluster_state import ClusterState, ListedPod
from reserver.rebalance.plan import PlannedMove

Moving = frozenset[tuple[PodName, str]]
"""Pods with an open PodMove, each with its UID; an empty UID means any pod of that name."""


FIRST_REST_S, LONGEST_REST_S = 300.0, 3600.0
"""Seconds without a new move after a failed one, first and longest; each failure doubles them."""


def resting(failed: Iterable[tuple[PodName, str, float]], now: float) -> Moving:
    """Return the pods that are left alone because their moves have failed.

    A pod whose move succeeds is another one afterwards: all failures of one are in a row.

    Args:
        failed: the pods, each with its UID and when its move failed, unix seconds; once for each.
        now: unix seconds.
    """
    failures = defaultdict[tuple[PodName, str], list[float]](list)
    for pod, uid, at in failed:
        failures[pod, uid].append(at)
    return frozenset(
        pod
        for pod, times in failures.items()
        if abs(now - max(times)) < min(LONGEST_REST_S, FIRST_REST_S * 2 ** min(len(times) - 1, 10))
    )


class Division(NamedTuple):
    """The moves of a plan, divided into those that become PodMoves now and the rest.

    Attributes:
        seated: moves that become PodMoves.
        evicted: moves without a seat, whose pods need no room elsewhere.
        left: the number of moves that the next round makes.
    """

    seated: tuple[PlannedMove, ...]
    evicted: tuple[PlannedMove, ...]
    left: int


def divide(
    moves: Iterable[PlannedMove],
    cluster: ClusterState,
    moving: Moving,
    most: int,
    own: Iterable[str] = (),
) -> Division:
    """Divide the moves of a plan.

    The next round gets pods that move already or rest, restarts on the same node, steps of a pod
    that cannot make all of its steps, and moves beyond `most`. A pod that moves already counts as
    movable in the plan: else the plan would choose another pod instead.

    Args:
        moves: of the plan, in its order.
        cluster: the cluster that the plan was made for.
        moving: pods that move already, or rest.
        most: how many PodMoves may be written, and how many a namespace alone may have open.
        own: the namespaces of open PodMoves of rounds, each as often as it has one.
    """
    moves, own = tuple(moves), tuple(own)
    steps = Counter(move.pod for move in moves)
    found = _divide(moves, cluster, moving, most, own)
    while unfinished := _unfinished(found.seated, steps):
        moving |= unfinished
        found = _divide(moves, cluster, moving, most, own)
    seated = set(found.seated)
    halves = {
        move
        for chain in chains(moves)
        if makes_room(chain) and not seated.issuperset(chain)
        for move in chain
    }
    seats, evicted = (
        tuple(move for move in part if move not in halves)
        for part in (found.seated, once(found.evicted))
    )
    return Division(seats, evicted, len(moves) - len(seats) - len(evicted))


def chains(moves: Sequence[PlannedMove]) -> list[tuple[PlannedMove, ...]]:
    """Return independent chains of moves, each in order.

    A chain contains a move and the moves into the room that it leaves, and all steps of a pod.
    """
    leaving: dict[str, list[int]] = {}
    for number, move in enumerate(moves):
        leaving.setdefault(move.source, []).append(number)
    chain = list(range(len(moves)))

    def first(number: int) -> int:
        while chain[number] != number:
            number = chain[number]
        return number

    last: dict[PodName, int] = {}
    for number, move in enumerate(moves):
        others = leaving.get(move.target, []) if move.target else []
        before = last.get(move.pod, number)
        last[move.pod] = number
        for other in (*others, before):
            one, two = sorted((first(number), first(other)))
            chain[two] = one
    found: dict[int, list[PlannedMove]] = {}
    for number, move in enumerate(moves):
        found.setdefault(first(number), []).append(move)
    return [tuple(each) for each in found.values()]


def once(moves: Iterable[PlannedMove]) -> tuple[PlannedMove, ...]:
    """Return moves without further steps of a pod: once it is evicted, it is gone."""
    first = dict[PodName, PlannedMove]()
    for move in moves:
        first.setdefault(move.pod, move)
    return tuple(first.values())


def makes_room(moves: Iterable[PlannedMove]) -> bool:
    """Return whether moves are for a pending pod, which is one of them."""
    return any(not move.source for move in moves)


def _divide(
    moves: Sequence[PlannedMove],
    cluster: ClusterState,
    moving: Moving,
    most: int,
    own: Iterable[str],
) -> Division:
    open_ = _counted(own, most)
    pods = {pod.name: pod for pod in cluster.pods}
    seated, evicted, missing = list[PlannedMove](), list[PlannedMove](), set[str]()
    stay, left = set[PodName](), 0
    for move in moves:
        is_moving = not moving.isdisjoint({(move.pod, move.uid), (move.pod, "")})
        if is_moving or move.pod in stay or move.target in missing:
            left += 1
            missing.add(move.source)
            stay.add(move.pod)
        elif move.source and not _needs_seat(pods.get(move.pod)):
            evicted.append(move)
        elif (
            move.target == move.source
            or len(seated) >= most
            or not open_.has_room(move.pod.namespace)
        ):
            left += 1
            missing.add(move.source)
            stay.add(move.pod)
        else:
            seated.append(move)
            open_.add(move.pod.namespace)
    return Division(tuple(seated), tuple(evicted), left)


def _counted(own: Iterable[str], most: int) -> FairCount:
    """Return the count of open PodMoves; what a tenant adds to its own leaves room for others."""
    count = FairCount.each(most)
    for namespace in own:
        if count.has_room(namespace):
            count.add(namespace)
    return count


def _unfinished(seated: Sequence[PlannedMove], steps: Mapping[PodName, int]) -> Moving:
    """Return the pods that make some of their steps, and not all.

    None goes through a node where room is held for a pending pod: there is no place for it.
    """
    made = Counter(move.pod for move in seated)
    held = {move.target for move in seated if not move.source}
    further = set(seated).difference(once(seated))
    through = {move.pod for move in further if move.source in held}
    return frozenset((pod, "") for pod in made if made[pod] != steps[pod] or pod in through)


def _needs_seat(pod: ListedPod | None) -> bool:
    """Return whether a replacement has to find room on another node."""
    if pod is None:
        return True
    controllers = [owner for owner in pod.owners if owner.is_controller]
    is_daemon = any(owner.kind == "DaemonSet" for owner in controllers)
    return pod.phase not in {"Succeeded", "Failed"} and bool(controllers) and not is_daemon
