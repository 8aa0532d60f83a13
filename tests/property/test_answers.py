"""Filter, Bind, Preempt, Wake and `explain` come to what plain sums come to.

So no stranger gets held room, nobody is refused room that is free, `explain` says what Filter does,
pods are evicted only where that helps, and whoever could go once less is held is woken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from hypothesis import given, settings
from hypothesis import strategies as st

from reserver.base.pacer import outcome
from reserver.cluster.node import Node
from reserver.cluster.pod import Pod
from reserver.reservations.reservation import Written
from reserver.scheduling.bind import judge_bind
from reserver.scheduling.explain import explain
from reserver.scheduling.filter import filter_nodes
from reserver.scheduling.preempt import judge_preemption
from reserver.scheduling.state import State
from reserver.scheduling.verdicts import Nominate, Retry, WaitsFor
from reserver.scheduling.wake import Wake
from tests.builders import NOW, reservation
from tests.listening import Recorded
from tests.property.drawn_answers import NEVER_SHOWN, NODES, SOON, SPACES, Drawn, clusters
from tests.property.naive_answers import ALONE, Gang, Naive

EVERY = [*NODES, NEVER_SHOWN, "nowhere"]
CROWD = [f"full-{number}" for number in range(100)]


class Expected(Naive):
    """The answers."""

    def filter(self, pod: Pod, names: Sequence[str], gang: Gang = ALONE) -> list[str] | None:
        """Return the nodes that a pod may have; None if the others of its group decide."""
        seats = dict.fromkeys(seat.node for seat in self.seats_of(pod, gang))
        if not seats and self.awaits(pod):
            return []
        usable = [n for n in seats if self.fits(pod, n, self.there(pod, n, gang), gang.taken[n])]
        if (among := [node for node in usable if node in names]) or (pod.group and seats):
            return (among[:1] or None) if pod.group else among
        reach = [n for n in seats if not self.borrowers(n) or self.has_room(pod, n)]
        was_tried = pod.nominated_node in reach and pod.nominated_node in usable
        untried = reach[reach.index(pod.nominated_node) + 1 :] if was_tried else reach
        if {*untried} & {*usable} or self.requires(pod, gang) or self.recalled(pod, seats):
            return []
        fitting = [n for n in names if self.may_be_on(pod, n, gang)]
        free = [n for n in fitting if not self.is_guarded(n)]
        return (free or fitting[:1]) if pod.group else fitting

    def may_be_on(self, pod: Pod, node: str, gang: Gang = ALONE) -> bool:
        return self.fits(pod, node, self.there(pod, node, gang), self.promised(pod, node, gang))

    def recalled(self, pod: Pod, nodes: Iterable[str]) -> set[str]:
        """Return the nodes of some where borrowers have to go for an owner."""
        every = {node: {each.uid for each in self.borrowers(node)} for node in nodes}
        return {n for n in every if self.lands(pod, n, every[n]) and not self.lands(pod, n)}

    def lands(self, pod: Pod, node: str, gone: Collection[str] = ()) -> bool:
        own = self.there(pod, node)
        return self.has_room(pod, node, gone=gone) and self.fits(pod, node, own, gone=gone)

    def preempt(self, pod: Pod, victims: Mapping[str, Sequence[str]]) -> list[str]:
        """Return the nodes where it helps to evict the victims."""
        seats = dict.fromkeys(seat.node for seat in self.seats_of(pod))
        recalled = self.recalled(pod, seats)
        keeps = any(self.lands(pod, n) for n in seats) or self.requires(pod) or recalled
        is_kept = keeps or (not seats and self.awaits(pod))
        nodes = [n for n in victims if victims[n] and n not in recalled]
        nodes = [n for n in nodes if n in seats] if is_kept else nodes
        more = {n: self.promised(pod, n) for n in nodes}
        return [n for n in nodes if self.fits(pod, n, self.there(pod, n), more[n], victims[n])]


@settings(max_examples=max(120, settings().max_examples))
@given(clusters(), st.sampled_from(["release", "release", "time", "end"]), st.integers(0, 4))
def test_all_answers_are_those_of_plain_sums(drawn: Drawn, change: str, number: int) -> None:
    expected, heard = Expected(drawn), Recorded()
    state = drawn.state(heard)
    for pod in drawn.asking:
        check_single(replace(pod, group=""), state, expected)
    names: dict[str, list[str]] = {}
    gangs = {space: Gang() for space in SPACES}
    for pod in drawn.asking:
        gang = gangs[pod.name.namespace] if pod.group else ALONE
        some = (NODES, NODES[:1], NODES[1:])[len(names) % 3]  # kube-scheduler refuses the others.
        names[pod.uid] = [node for node in some if expected.has_room(pod, node)]
        verdict = filter_nodes(pod, names[pod.uid], state, NOW)
        answer = expected.filter(pod, names[pod.uid], gang)
        assert answer is None or sorted(verdict.nodes) == sorted(answer), pod
        is_sent = {Nominate, Retry} & {*map(type, verdict.effects)}
        # It comes back anyway, or once those whom its room was promised to are on their new seats.
        is_others = change == "time" and any(expected.promised(pod, n) for n in names[pod.uid])
        waits = verdict.waits_for is not None and not (is_sent or is_others)
        state.judged(pod, names[pod.uid], waits=waits, for_seat=verdict.waits_for is WaitsFor.SEAT)
        if pod.group and verdict.nodes:
            gang.put(pod, node := verdict.nodes[0], expected.there(pod, node, gang), expected)
            state.answered(pod, verdict.nodes, NOW)
    check_elsewhere(expected, state)
    heard.freed.clear()
    heard.nodes.clear()
    check_wake(Expected(changed(drawn, state, change, number)), state, heard, names)


def check_single(pod: Pod, state: State, expected: Expected) -> None:
    """Check the answer to a pod without a group."""
    verdict, seats = filter_nodes(pod, EVERY, state, NOW), expected.seats_of(pod)
    assert sorted(verdict.nodes) == sorted(expected.filter(pod, EVERY) or ()), pod
    must = expected.requires(pod) if seats else expected.awaits(pod)
    told = explain(pod, state, NOW)
    shown, refused = {each.node: each for each in told.nodes_with_holds}, set[str]()
    for node in EVERY:
        own, has_room = expected.there(pod, node), expected.has_room(pod, node)
        is_open, fits = bool(own) or not must, expected.fits(pod, node, own)
        is_bound = judge_bind(pod, node, state, NOW).refusal is None
        assert is_bound == (is_open and fits), (pod, node)
        if not (is_open and has_room and expected.may_be_on(pod, node)):
            refused.add(node)
        if node in shown:
            assert (shown[node].fits, shown[node].is_seat) == (has_room and fits, bool(own))
            for name, each in shown[node].resources.items():
                assert each.held_for_others == expected.held_for_others(pod, node, name, own)
    assert {n for each in told.reasons for n in each.examples} == refused & {*NODES}, pod
    for most in (pod.priority, 99):
        there = [each for each in expected.drawn.bound if each.priority < most]
        victims = {node: [each.uid for each in there if each.node == node] for node in EVERY}
        evicted = judge_preemption(pod, victims, state, NOW).nodes
        assert sorted(evicted) == sorted(expected.preempt(pod, victims)), pod


def changed(drawn: Drawn, state: State, change: str, number: int) -> Drawn:
    """Release a reservation, let time pass, or end a pod; return the cluster as it is then."""
    if change == "time":
        state.ledger.advance(SOON)
        holds = ((e, Written(99, 99) if e.starts_at else at) for e, at in drawn.holds)
        return replace(drawn, holds=tuple(holds), now=SOON)
    if change == "end":
        gone = drawn.bound[number % len(drawn.bound)]
        state.pod_gone(gone.name)
        return replace(drawn, ended=frozenset({gone.uid}))
    released = drawn.holds[number % len(drawn.holds)]
    state.ledger.drop(released[0].ref)
    return replace(drawn, holds=tuple(each for each in drawn.holds if each is not released))


def check_wake(
    expected: Expected, state: State, heard: Recorded, names: Mapping[str, Sequence[str]]
) -> None:
    """Check that who could go is woken, and not more than fit where they are sent."""
    looking = partial(Wake, heard.freed, state, expected.drawn.now, changed=heard.nodes)
    looking = partial(looking, lately=[*state.waiting], seats_are_over=True)
    order = outcome(looking().order())
    gangs = {space: Gang() for space in SPACES}
    for pod in expected.drawn.asking:
        gang = gangs[pod.name.namespace] if pod.group else ALONE
        nodes = expected.filter(pod, names[pod.uid], gang)
        if pod.group and nodes:  # The later ones of its group have what it leaves.
            gang.put(pod, nodes[0], expected.there(pod, nodes[0], gang), expected)
        # Of the end of a pod kube-scheduler knows by itself, and has the owners try again.
        is_told = expected.drawn.ended and expected.seats_of(pod)
        if nodes and pod.uid in state.waiting and not is_told:
            assert pod.uid in order
            assert looking().judge(pod.uid), pod
    wake, gone = looking(), {node: Counter[str]() for node in NODES}
    for effect in [found for uid in order if (found := wake.judge(uid))]:
        pod, is_owner = effect.pod, any(e.is_owned_by(effect.pod) for e, _ in expected.drawn.holds)
        if not isinstance(effect, Nominate) or is_owner:
            continue
        for name, amount in pod.requests.items():
            held = expected.held_for_others(pod, effect.node, name, ())
            room = expected.unused(effect.node, name) - held - gone[effect.node][name]
            assert not amount or room + expected.open_to(pod, effect.node, name, ()) >= amount
        gone[effect.node].update(pod.requests)


def check_elsewhere(expected: Expected, state: State) -> None:
    """Check where pods are sent that were refused on a whole sample."""
    for name in CROWD:
        state.node_seen(Node(name=name, allocatable={"pods": 1, "cpu": 1}))
    every = dict.fromkeys(CROWD, 1)
    state.ledger.put(reservation("crowd", node="", placed=every, slots=len(CROWD), cpu="1"))
    for pod in expected.drawn.asking:
        if expected.seats_of(pod) or expected.awaits(pod):
            continue
        promised = {node: expected.promised(pod, node) for node in NODES}
        room = [n for n in NODES if expected.has_room(pod, n, promised[n])]
        room = [n for n in room if expected.fits(pod, n, (), promised[n])]
        effects = filter_nodes(replace(pod, group=""), CROWD, state, NOW).effects
        assert bool(effects) == bool(room), pod
        for each in effects:
            is_there = isinstance(each, Nominate) and each.node in room
            assert is_there or (pod.nominated_node and isinstance(each, Retry)), pod
