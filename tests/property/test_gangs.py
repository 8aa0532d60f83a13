"""Bind allows all pods of a PodGroup together on the nodes that Filter returned one by one.

Whatever else is held, nominated and asked for, also by a group of the same name elsewhere.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from hypothesis import given
from hypothesis import strategies as st

from reserver.cluster.pod import Controller, Pod
from reserver.reservations.entry import identified
from reserver.reservations.owner import OwnerRule
from reserver.reservations.reservation import Reservation
from reserver.scheduling.bind import judge_bind
from reserver.scheduling.filter import filter_nodes
from reserver.scheduling.state import State
from tests.builders import NAMESPACE, NOW, node, pod, reservation, state_of

GANG, OTHER = "training", "blog"
WORKERS = ("worker-1", "worker-2", "worker-3")
workers = st.sampled_from(WORKERS)
cores = st.integers(1, 4)
priorities = st.sampled_from([0, 0, 10])


def of_group(namespace: str) -> OwnerRule:
    return OwnerRule(namespace=namespace, controller=Controller("PodGroup", GANG))


@st.composite
def held(draw: st.DrawFn, key: str) -> Reservation:
    """Draw a hold for the group, for a group of its name elsewhere, or for other pods."""
    space = draw(st.sampled_from([NAMESPACE, NAMESPACE, OTHER, ""]))
    slots = draw(st.integers(1, 3))
    there = draw(st.none() | st.lists(workers, min_size=slots, max_size=slots))
    made = reservation(
        key,
        node="" if there else draw(workers),
        placed=Counter(there),
        owners=() if space else ("other",),
        rules=(of_group(space),) if space else (),
        slots=slots,
        require=draw(st.booleans()),
        reusable=draw(st.booleans()),
        yields_above=draw(st.sampled_from([None, None, 5])),
        cpu=str(draw(cores)),
    )
    return identified(replace(made, ref=made.ref._replace(namespace=space or NAMESPACE)))


@st.composite
def gangs(draw: st.DrawFn, namespace: str) -> tuple[Pod, ...]:
    """Draw the pods of a group, in the order in which kube-scheduler asks for them."""
    priority = draw(priorities)
    nominated = st.sampled_from(["", "", *WORKERS])
    return tuple(
        replace(
            pod(
                f"member-{at}",
                namespace=namespace,
                uid=f"{namespace}-{at}",
                priority=priority,
                nominated=draw(nominated),
                cpu=str(asked),
            ),
            group=GANG,
        )
        for at, asked in enumerate(draw(st.lists(cores, min_size=1, max_size=6)))
    )


@st.composite
def nominees(draw: st.DrawFn) -> tuple[Pod, ...]:
    """Draw pods that others were evicted for; a seat may be held for the first."""
    return tuple(
        pod(name, priority=draw(priorities), nominated=draw(workers), cpu=str(draw(cores)))
        for name in ("other", "another")[: draw(st.integers(0, 2))]
    )


@dataclass
class Scheduler:
    """kube-scheduler, which asks for the pods of a group one after the other."""

    state: State
    room: dict[str, int]
    assumed: Counter[str] = field(default_factory=Counter)
    chosen: list[tuple[Pod, str]] = field(default_factory=list)

    def ask(self, member: Pod, draw_from: st.DataObject) -> None:
        """Choose a node for a pod, with room next to the pods before it."""
        asked = member.requests["cpu"]
        names = [each for each, n in self.room.items() if n - self.assumed[each] >= asked]
        nodes = filter_nodes(member, names, self.state, NOW).nodes
        if nodes:
            self.state.answered(member, nodes, NOW)
            target = draw_from.draw(st.sampled_from(nodes))
            self.assumed[target] += asked
            self.chosen.append((member, target))


@given(
    st.tuples(*(st.integers(2, 9) for _ in WORKERS)),
    st.integers(0, 4).flatmap(lambda count: st.tuples(*(held(f"r{n}") for n in range(count)))),
    gangs(NAMESPACE),
    gangs(OTHER),
    nominees(),
    st.data(),
)
def test_a_gang_that_filter_judged_to_fit_is_bound_as_a_whole(
    sizes: tuple[int, ...],
    holds: tuple[Reservation, ...],
    gang: tuple[Pod, ...],
    twin: tuple[Pod, ...],
    others: tuple[Pod, ...],
    data: st.DataObject,
) -> None:
    every = (node(name, cpu=str(n)) for name, n in zip(WORKERS, sizes, strict=True))
    state = state_of(*every, *holds, *gang, *twin, *others)
    room = {name: 1000 * n for name, n in zip(WORKERS, sizes, strict=True)}
    ours, theirs = Scheduler(state, room), Scheduler(state, room)
    for number in range(6):
        for scheduler, members in ((ours, gang), (theirs, twin)):
            for member in members[number : number + 1]:
                scheduler.ask(member, data)
    for worker in WORKERS:
        check_promises(worker, ours, others)
    for each, target in data.draw(st.permutations(ours.chosen)):
        state.gangs.drop(each)
        verdict = judge_bind(each, target, state, NOW)
        assert verdict.refusal is None, (each.name, target)
        state.assume(each, target, verdict.claims)


def check_promises(worker: str, scheduler: Scheduler, others: Sequence[Pod]) -> None:
    """Check that a group leaves the room of pods before it, on nodes where Reserver decides."""
    ledger = scheduler.state.ledger
    here = [each for each, target in scheduler.chosen if target == worker]
    if not here or any(ledger.seats(each, (worker,)) for each in here):
        return
    priority = here[0].priority
    holding = [each for each in ledger.holding_on(worker) if not each.yields_to(priority)]
    before = [
        each
        for each in others
        if each.nominated_node == worker
        and each.priority > priority
        and not ledger.seats(each, (worker,))
    ]
    taken = sum(each.requests["cpu"] for each in (*here, *before))
    kept = sum(each.resources["cpu"] * each.slots for each in holding)
    assert not holding or taken + kept <= scheduler.room[worker]
