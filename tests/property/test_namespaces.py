"""No action in one namespace changes another namespace, even with equal names.

Each history is played twice: what happens in `a` alone, and beside what happens in `b`, with equal
names throughout. What `a` sees is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st

from reserver.base.pacer import outcome
from reserver.base.schedule import Schedule
from reserver.cluster.constraints import UNCONSTRAINED
from reserver.cluster.labels import equals
from reserver.cluster.pod import NO_CONTROLLER, Controller, Pod, PodName
from reserver.k8s.objects.objects import decode, encode
from reserver.moves.arbitration import MoveLimits, arbitrate
from reserver.moves.groups import Contender
from reserver.moves.index import KnownMove, MoveIndex
from reserver.moves.model import ALONE, GroupMember, Move, MoveGroup, MoveSpec, MoveStatus
from reserver.moves.phases import MovePhase, MoveReason
from reserver.moves.podmove import MoveObject
from reserver.moves.workloads import Workload
from reserver.patches.book import Book, Mark, NewPod
from reserver.patches.model import PatchName, SchedPatch, Scheduling
from reserver.provisioning.codec import RequestObject
from reserver.provisioning.observe import KnownRequests
from reserver.reservations.entry import identified
from reserver.reservations.owner import OwnerRule
from reserver.reservations.quota import Quota
from reserver.reservations.recurrence import Recurrence
from reserver.reservations.reservation import Ref, Reservation
from reserver.scheduling.filter import filter_nodes
from reserver.scheduling.state import State
from reserver.stores.object.codec import ABANDONED, SET_LABEL, UNFINISHED_ANNOTATION, ObjectMetadata
from reserver.stores.object.entries import Sets
from tests.builders import BORROWER, node, pod, reservation, state_of

E = TypeVar("E")

HERE, THERE = "a", "b"
spaces = st.sampled_from([HERE, THERE])
NOW = 1000.0


def same(history: Sequence[tuple[str, E]], play: Callable[[Sequence[tuple[str, E]]], Any]) -> None:
    """Check that `a` sees the same without what the other one does."""
    assert play([each for each in history if each[0] == HERE]) == play(history)


# Moves and their groups.

GROUPS = (
    ALONE,
    MoveGroup("g", 1),
    MoveGroup("g", 2),
    MoveGroup("g", 3),
    MoveGroup("g", 2, across=True),
)
NAMES = ("m-0", "m-1", "m-2")


@st.composite
def contenders(draw: st.DrawFn) -> tuple[str, Contender]:
    space, name = draw(spaces), draw(st.sampled_from(NAMES))
    phase = draw(st.sampled_from(MovePhase))
    source = draw(st.sampled_from(["", "n-1"]))
    after = draw(st.sampled_from(["", "", "m-0"]))
    spec = MoveSpec(
        pod=PodName(space, name),
        uid="" if after else draw(st.sampled_from(["", "uid"])),
        after=after,
        node=draw(st.sampled_from(["", "n-1", "n-2"])),
        group=draw(st.sampled_from(GROUPS)),
        paused=draw(st.booleans()),
    )
    status = MoveStatus(
        phase=phase,
        reason=draw(
            st.none() | st.sampled_from([MoveReason.GROUP_FAILED, MoveReason.NOTHING_TO_FOLLOW])
        ),
        uid=draw(st.sampled_from(["", "uid"])),
        source=source,
        target=draw(st.sampled_from(["", "n-2"])),
        evicted_at=draw(st.none() | st.sampled_from([NOW - 500, NOW])),
    )
    made = Move(
        name=spec.pod,
        uid=f"{space}-{name}",
        created_at=float(draw(st.integers(0, 2))),
        spec=spec,
        status=status,
    )
    leaves = pod(name, namespace=space, uid="uid", node=draw(st.sampled_from(["", "n-1"])))
    controller = draw(st.sampled_from([NO_CONTROLLER, Controller("ReplicaSet", "web")]))
    return space, Contender(
        move=made, pod=draw(st.none() | st.just(leaves)), controller=controller, replicas=2
    )


LISTS_OF_B = {"g": frozenset(GroupMember(PodName(THERE, name), "uid") for name in NAMES)}


@settings(max_examples=150)
@given(st.lists(contenders(), max_size=8, unique_by=lambda each: each[1].move.name))
def test_moves_are_ruled_as_if_no_other_namespace_had_groups_of_their_names(
    history: list[tuple[str, Contender]],
) -> None:
    def rulings(played: Sequence[tuple[str, Contender]]) -> Any:
        moves = [each for _, each in played]
        found = outcome(arbitrate(moves, (), LISTS_OF_B, NOW, MoveLimits(per_node=None)))
        return {name: it for name, it in found.items() if name.namespace == HERE}

    same(history, rulings)
    everywhere = [each for _, each in history]
    for name, it in rulings(history).items():
        assert f"{THERE}/" not in f"{it.turn.why}{it.failed_member}{it.rival}", (name, everywhere)


def move_object(space: str, name: str, phase: str, revision: int) -> MoveObject:
    metadata = {
        "name": name,
        "namespace": space,
        "uid": f"uid-{space}-{name}",
        "resourceVersion": str(revision),
        "creationTimestamp": "2030-01-01T00:00:00Z",
    }
    controller = {"kind": "ReplicaSet", "name": "web"}
    spec = {"pod": {"name": "web"}} if name != "m-1" else {"pod": {"name": "web", "after": "m-0"}}
    status = {"phase": phase, "reason": "WaitsForTurn", "message": "m", "controller": controller}
    return decode(MoveObject, encode({"metadata": metadata, "spec": spec, "status": status}))


move_events = st.tuples(
    spaces,
    st.tuples(st.sampled_from(NAMES), st.sampled_from(["", "Pending", "Landing", "Failed"])),
)


@given(st.lists(move_events, max_size=20))
def test_pod_moves_are_found_by_names_of_their_own_namespace(
    history: list[tuple[str, tuple[str, str]]],
) -> None:
    def shown(played: Sequence[tuple[str, tuple[str, str]]]) -> Any:
        touched: list[PodName] = []
        moves = MoveIndex(touched.append)
        for revision, (space, (name, phase)) in enumerate(played, 1):
            if phase:
                moves.put(move_object(space, name, phase, revision))
            else:
                moves.drop(PodName(space, name))
        known = [each for each in moves if each.name.namespace == HERE]
        seats = [each.move.seat_name for each in known if each.move]
        return (
            [_without_revision(each) for each in known],
            moves.of_pod(PodName(HERE, "web")),
            moves.of_workload(Workload(HERE, Controller("ReplicaSet", "web"))),
            moves.followers(PodName(HERE, "m-0")),
            [moves.of_seat(PodName(HERE, seat)) for seat in seats],
            [name for name in touched if name.namespace == HERE],
        )

    same(history, shown)


def _without_revision(known: KnownMove) -> Any:
    return known.name, known.move, str(known.problem)


# SchedPatches.

patch_events = st.tuples(
    spaces,
    st.tuples(
        st.sampled_from(["put", "drop", "create", "seen", "forged"]),
        st.sampled_from(["p-0", "p-1"]),
        st.integers(1, 3),
    ),
)


@given(st.lists(patch_events, max_size=25))
def test_pods_are_patched_as_if_no_other_namespace_had_patches_of_their_names(
    history: list[tuple[str, tuple[str, str, int]]],
) -> None:
    def patched(played: Sequence[tuple[str, tuple[str, str, int]]]) -> Any:
        changed, told = list[PatchName](), list[Any]()
        book = Book("one", changed.append)
        marks: dict[str, tuple[Mark, ...]] = {HERE: (), THERE: ()}
        for space, (what, name, number) in played:
            if what == "put":
                patch = SchedPatch(
                    name=PatchName(space, name),
                    uid=f"uid-{name}",  # As if a UID could be chosen, too.
                    selector=equals({"app": "web"}),
                    max_count=number,
                    injected=Scheduling(node_selector={f"{name}-{space}": "yes"}),
                )
                slots = book.put(patch).slots
                record = slots.wanted(0.0, is_over=False)
                slots.recorded(record, number, 0.0, inherits=False)
            elif what == "drop":
                book.drop(PatchName(space, name))
            elif what == "create":
                asked = NewPod(namespace=space, name="web", labels={"app": "web"})
                verdict = book.decide(asked, 0.0, is_dry_run=False)
                marks[space] = verdict.marks
                if space == HERE:
                    told.append(verdict)
            elif what == "seen":
                book.pod_seen(space, marks[space])
            else:
                book.pod_seen(space, (Mark(name, f"uid-{name}", number),))
        return told, [name for name in changed if name.namespace == HERE]

    same(history, patched)


# Sets of Reservations.

set_events = st.tuples(
    spaces,
    st.tuples(
        st.sampled_from(["put", "drop", "doom", "abandon", "forget"]),
        st.sampled_from(["r-0", "r-1", "r-2"]),
        st.sampled_from(["", "2", ABANDONED]),
    ),
)


@given(st.lists(set_events, max_size=20))
def test_a_set_is_finished_or_taken_back_as_if_no_other_namespace_had_one_of_its_id(
    history: list[tuple[str, tuple[str, str, str]]],
) -> None:
    def seen(played: Sequence[tuple[str, tuple[str, str, str]]]) -> Any:
        touched: list[Ref] = []
        sets = Sets(touched.append)
        for space, (what, name, said) in played:
            metadata = ObjectMetadata(
                name=name,
                namespace=space,
                labels={SET_LABEL: "one"},
                annotations={UNFINISHED_ANNOTATION: said} if said else None,
            )
            if what == "put":
                sets.put(Ref.of_object(space, name), metadata)
            elif what == "drop":
                sets.drop(Ref.of_object(space, name))
            else:
                getattr(sets, what)(metadata.set_id)
        mine = f"{HERE}/one"
        return (
            [ref for ref in touched if ref.namespace == HERE],
            (sets.has(mine), sets.is_doomed(mine), sets.is_abandoned(mine)),
        )

    same(history, seen)


# ProvisioningRequests.

request_events = st.tuples(
    spaces, st.tuples(st.sampled_from(["q-0", "q-1"]), st.booleans(), st.booleans())
)


@given(st.lists(request_events, max_size=20))
def test_provisioning_requests_are_found_by_names_of_their_own_namespace(
    history: list[tuple[str, tuple[str, bool, bool]]],
) -> None:
    def shown(played: Sequence[tuple[str, tuple[str, bool, bool]]]) -> Any:
        touched: list[PodName] = []
        requests = KnownRequests(touched.append)
        for revision, (space, (name, is_there, is_new)) in enumerate(played, 1):
            if not is_there:
                requests.drop(PodName(space, name))
                continue
            metadata = {
                "name": name,
                "namespace": space,
                "uid": f"uid-{name}-{is_new}",
                "resourceVersion": str(revision),
                "creationTimestamp": "2030-01-01T00:00:00Z",
            }
            spec = {
                "provisioningClassName": "hold.reserver.io",
                "podSets": [{"podTemplateRef": {"name": "t"}, "count": 1}],
            }
            requests.put(decode(RequestObject, encode({"metadata": metadata, "spec": spec})))
        known = [each.request for each in requests if each.request.name.namespace == HERE]
        return (
            known,
            [requests.gone(PodName(HERE, name)) for name in ("q-0", "q-1")],
            [requests.of(Ref.of_object(HERE, name)) for it in known for name in it.reservations()],
            [name for name in touched if name.namespace == HERE],
        )

    same(history, shown)


# Reservations, their owners, quotas and gangs.

NODES = {HERE: ("a-1", "a-2"), THERE: ("b-1", "b-2")}
PODS = ("p-0", "p-1", "p-2")
KEYS = ("r-0", "r-1")
WEB = Controller("ReplicaSet", "web")


@st.composite
def written(draw: st.DrawFn, space: str) -> Reservation:
    """Draw a reservation of a namespace, on a node of its own."""
    made = reservation(
        "any",
        node=draw(st.sampled_from(NODES[space])),
        owners=(),
        slots=draw(st.integers(1, 2)),
        require=draw(st.booleans()),
        reusable=draw(st.booleans()),
        refill_up_to=draw(st.sampled_from([0, 0, 3])),
        lends_below=draw(st.sampled_from([None, None, 10])),
        expires=draw(st.none() | st.just(NOW + 5)),
        cpu=str(draw(st.integers(1, 3))),
    )
    if draw(st.booleans()):
        made = replace(made, recurrence=Recurrence(schedule=Schedule("* * * * *", 60.0)))
    ref = Ref.of_object(space, draw(st.sampled_from(KEYS)))
    if draw(st.booleans()):
        names = draw(st.sets(st.sampled_from(PODS), min_size=1))
        owned = replace(made, ref=ref, owners=tuple(PodName(space, it) for it in sorted(names)))
    else:
        owned = replace(made, ref=ref, rules=(OwnerRule(namespace=space, controller=WEB),))
    return identified(owned)


@st.composite
def events(draw: st.DrawFn) -> tuple[str, tuple[str, Any]]:
    space = draw(spaces)
    kinds = ["put", "put", "drop", "seen", "bound", "gone", "asks", "asks", "asks", "quota", "time"]
    what = draw(st.sampled_from(kinds))
    subject: Any = draw(st.sampled_from(PODS))
    if what == "put":
        subject = draw(written(space))
    elif what == "drop":
        subject = draw(st.sampled_from(KEYS))
    elif what == "quota":
        subject = draw(st.integers(0, 4))
    elif what in {"seen", "asks", "bound"}:
        group = draw(st.sampled_from(["", "", "gang"]))
        cpu = str(draw(st.integers(1, 3)))
        made = pod(subject, namespace=space, uid=f"{space}-{subject}", controller=WEB, cpu=cpu)
        demands = draw(st.sampled_from([UNCONSTRAINED, BORROWER]))
        subject = replace(made, group=group, constraints=demands)
    return space, (what, subject)


class Cluster:
    """A state to which things happen, with nodes of each namespace's own.

    Attributes:
        told: what pods of `a` were answered.
    """

    def __init__(self) -> None:
        nodes = [node(each, cpu="4") for own in NODES.values() for each in own]
        self.state: State = state_of(*nodes, now=NOW)
        self.state.snapshot.lending.is_on = True
        self.now = NOW
        self.told: list[Any] = []

    def happen(self, space: str, what: str, subject: Any) -> None:
        ledger = self.state.ledger
        if what == "put":
            ledger.put(subject)
        elif what == "drop":
            ledger.drop(Ref.of_object(space, subject))
        elif what == "quota":
            quota = Quota(name="limit", hard={"held.cpu": 1000 * subject})
            ledger.quotas.limit(space, [quota])
            tuple(ledger.admit(space))
        elif what == "time":
            self.now += 20 * (space == HERE)  # Else both would not have the same time.
            ledger.advance(self.now)
        elif what == "seen":
            self.state.pod_seen(subject)
        elif what == "gone":
            self.state.pod_gone(PodName(space, subject))
        else:
            self._ask(space, subject, binds=what == "bound")

    def _ask(self, space: str, subject: Pod, *, binds: bool) -> None:
        there = self.state.pods.get(subject.name)
        if there is not None and there.node:
            return
        verdict = filter_nodes(subject, NODES[space], self.state, self.now)
        if space == HERE:
            said = (sorted(verdict.nodes), dict(verdict.refused), verdict.in_the_way)
            self.told.append((*said, verdict.recalled, verdict.effects))
        if binds and verdict.nodes:
            nodes = sorted(verdict.nodes)
            seats = self.state.ledger.seats(subject)
            claims = frozenset(it.identity for it in seats[:1] if it.node == nodes[0])
            self.state.pod_seen(replace(subject, node=nodes[0], claims=claims))

    def seen_by(self, space: str) -> Any:
        ledger, snapshot = self.state.ledger, self.state.snapshot
        rows = [snapshot.row(each) for each in NODES[space]]
        columns = [snapshot.columns[each] for each in ("cpu", "pods")]
        cells = [
            int(layer[row, column])
            for layer in (snapshot.held, snapshot.requested)
            for row in rows
            for column in columns
        ]
        refs = [Ref.of_object(space, key) for key in KEYS]
        return cells, [(ledger.get(ref), ledger.claims(ref)) for ref in refs]


@settings(max_examples=150)
@given(st.lists(events(), max_size=25))
def test_holds_and_pods_go_as_if_no_other_namespace_had_any_of_their_names(
    history: list[tuple[str, tuple[str, Any]]],
) -> None:
    def played(those: Sequence[tuple[str, tuple[str, Any]]]) -> Any:
        cluster = Cluster()
        seen = []
        for space, (what, subject) in those:
            cluster.happen(space, what, subject)
            if space == HERE:
                seen.append(cluster.seen_by(HERE))
        return seen, cluster.told

    same(history, played)
