"""Reservation objects enter the ledger, and ended ones are removed."""

import json
from typing import Any

import pytest

from reserver.k8s.objects.limits import MOST_COPIES
from reserver.k8s.objects.objects import Metadata, decode
from reserver.reservations.enums import Phase
from reserver.reservations.reservation import Ref
from reserver.scheduling.state import State
from reserver.stores.edits import Deletion
from reserver.stores.entries import EntryProblem
from reserver.stores.object import entries
from reserver.stores.object.cache import ObjectCache
from reserver.stores.object.codec import ReservationObject
from reserver.stores.object.edits import Abandonment
from tests.builders import NOW, held, node, pod, state_of
from tests.steps import lines

W1 = node("worker-1", cpu="16")
CREATED = "2030-03-17T17:46:40Z"
"""NOW, as the API server says it."""


def made(  # noqa: PLR0913 - the fields of an object
    key: str = "web",
    *,
    namespace: str = "shop",
    uid: str = "",
    revision: int = 1,
    generation: int = 1,
    status: Any = None,
    raw: str = "",
    **changes: Any,
) -> ReservationObject:
    """Return a Reservation as a watch shows it."""
    metadata = {
        "name": key,
        "namespace": namespace,
        "uid": uid or f"uid-{key}",
        "resourceVersion": str(revision),
        "generation": generation,
        "creationTimestamp": CREATED,
    }
    spec = {"owners": [{"pod": {"name": "a"}}], "resources": {"cpu": "2"}, "node": "worker-1"}
    spec |= {name: value for name, value in changes.items() if value is not None}
    text = raw or json.dumps(spec)
    body = f'{{"metadata": {json.dumps(metadata)}, "spec": {text}, "status": {json.dumps(status)}}}'
    return decode(ReservationObject, body.encode())


class World:
    """A store of objects, the state behind it, and its reports."""

    def __init__(self) -> None:
        self.now = NOW
        self.touched: list[Ref] = []
        self.reports: list[str] = []
        self.state: State = state_of(W1, now=0.0)
        self.store = ObjectCache(
            self.state.ledger, lambda: self.now, self._report, self.touched.append, home="home"
        )

    def _report(self, _: Metadata, problem: EntryProblem) -> None:
        self.reports.append(str(problem))

    def put(self, *items: ReservationObject, listed: bool = False) -> None:
        for item in items:
            self.store.put(item, listed=listed)

    @property
    def held(self) -> int:
        return held(self.state, "worker-1") // 1000

    def edit(self, key: str = "web", later: float = 0.0) -> Deletion | None:
        edit = self.store.due_edit(Ref.of_object("shop", key), self.now + later)
        assert not isinstance(edit, Abandonment)
        return edit


def test_an_object_holds_from_when_it_is_seen_until_it_is_gone() -> None:
    world = World()
    world.put(made())
    assert world.held == 2
    world.put(made(revision=2, slots=3))
    assert world.held == 6
    world.store.drop(("shop", "web"))
    assert world.held == 0
    assert world.store.names() == ()


def test_a_ttl_counts_from_the_creation_and_is_a_day_by_default() -> None:
    world = World()
    world.now = NOW + 3000  # Reserver was away.
    world.put(made("hour", ttl="1h"), made("day"), made("ever", ttl=0))
    expiries = {r.ref.key: r.expires_at for r, _ in world.state.ledger}
    assert expiries == {"hour": NOW + 3600, "day": NOW + 86400, "ever": None}
    assert world.edit("day") is None


def test_a_broken_object_costs_no_other() -> None:
    world = World()
    world.put(
        made("good"),
        made("none", owners=[]),
        made("wrong", slots="many"),
        made("list", raw="[]"),
        made("text", raw='"x"'),
        made("null", raw="null"),
    )
    assert world.held == 2
    assert len(list(world.store.problems())) == 5
    assert dict(world.store.problem_counts()) == {("shop", "reservations.reserver.io"): 5}
    assert any("spec.slots" in report for report in world.reports)
    assert all(report.partition(": ")[2].startswith("spec") for report in world.reports)


def test_an_object_without_a_spec_says_so() -> None:
    world = World()
    raw = b'{"metadata": {"name": "web", "namespace": "shop", "uid": "u"}}'
    world.put(decode(ReservationObject, raw))
    assert world.reports == ["web: spec: is missing; write owners and resources"]


def test_owners_elsewhere_are_for_the_home_namespace_alone() -> None:
    world = World()
    owners = [{"pod": {"name": "a", "namespace": "bank"}}]
    world.put(made("theft", owners=owners))
    assert world.held == 0
    assert "spec.owners[0]: namespace 'bank' is not the reservation's own" in world.reports[0]
    world.put(made("right", namespace="home", owners=owners))
    assert world.held == 2


def test_writes_of_the_status_leave_the_ledger_alone() -> None:
    world = World()
    world.put(made())
    world.touched.clear()
    world.put(made(revision=2, status={"phase": "Active"}))
    assert world.touched == []
    known = world.store.known(Ref.of_object("shop", "web"))
    assert known is not None
    assert known.metadata.resource_version == "2"


def test_a_status_that_somebody_broke_hides_nothing() -> None:
    world = World()
    world.put(made(status=["what"]))
    assert world.held == 2


def test_what_is_over_is_deleted_as_it_was_seen() -> None:
    world = World()
    world.put(made(revision=7, ttl="1h"))
    assert world.edit(later=3599) is None
    edit = world.edit(later=3600)
    assert edit is not None
    assert edit.path == "/apis/reserver.io/v1alpha1/namespaces/shop/reservations/web"
    assert edit.options() == {"preconditions": {"uid": "uid-web", "resourceVersion": "7"}}
    assert edit.reason == Phase.EXPIRED


def test_what_is_over_is_looked_at_again_after_a_write_that_forestalled_its_deletion() -> None:
    world = World()
    world.put(made(revision=7, ttl="1h"))
    world.now += 3600
    world.touched.clear()
    world.put(made(revision=8, ttl="1h", status={"phase": "Expired"}))
    assert world.touched == [Ref.of_object("shop", "web")]
    edit = world.edit()
    assert edit is not None
    assert edit.version == "8"


def test_a_claimed_object_is_deleted_once_the_claim_is_written() -> None:
    world = World()
    world.put(made())
    (seat,) = world.state.ledger.seats(pod("a"))
    world.state.assume(pod("a", cpu="1"), "worker-1", (seat.identity,))
    assert world.held == 0
    assert world.edit() is None
    world.state.confirm("uid-a")
    edit = world.edit()
    assert edit is not None
    assert edit.reason == Phase.CLAIMED


def test_another_object_of_that_name_inherits_no_claim() -> None:
    world = World()
    world.put(made(uid="first"))
    (seat,) = world.state.ledger.seats(pod("a"))
    world.state.pod_seen(pod("a", node="worker-1", claims=(seat,), cpu="1"))
    world.store.drop(("shop", "web"))
    world.put(made(uid="second", revision=9))
    assert world.held == 2


def test_the_answer_to_a_write_is_taken_for_what_it_is_about() -> None:
    world = World()
    world.put(made(revision=5))
    world.store.wrote(made(revision=6))
    known = world.store.known(Ref.of_object("shop", "web"))
    assert known is not None
    assert known.metadata.revision == 6
    for item in (made(revision=4), made(revision=9, uid="another"), made(revision=9, slots=4)):
        world.store.wrote(item)
    assert known.metadata.revision == 6
    world.store.drop(("shop", "web"))
    world.store.wrote(made(revision=10))
    assert world.store.names() == ()


def test_a_spec_that_is_not_utf8_is_a_broken_one() -> None:
    world = World()
    raw = b'{"metadata": {"name": "web", "namespace": "shop"}, "spec": {"node": "\xff"}}'
    world.put(decode(ReservationObject, raw))
    assert len(world.reports) == 1


def test_of_too_many_in_a_namespace_no_more_are_read_until_there_is_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(entries, "MOST_OBJECTS", 3)
    world = World()
    world.put(*(made(f"r{number}") for number in range(5)))
    assert world.held == 6
    assert all("are read, and this one is not" in report for report in world.reports)
    assert len(world.reports) == 2
    unread = world.store.known(Ref.of_object("shop", "r4"))
    assert unread is not None
    assert not unread.spec
    world.put(made("r0", revision=7, resources={"cpu": "1"}))  # One that is read stays so.
    world.put(made("r3", revision=8, raw='{"owners": 7}'))  # Nobody looks at it.
    assert world.held == 5
    world.put(*(made(f"home{number}", namespace="home") for number in range(4)))
    assert world.held == 13
    world.store.drop(("shop", "r3"))
    world.store.drop(("shop", "r1"))
    world.put(made("r4", revision=9))
    assert world.held == 13


def test_what_was_read_before_a_start_is_read_again_whatever_is_listed_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(entries, "MOST_OBJECTS", 2)
    world = World()
    reported = {"phase": "Active", "observedGeneration": 1, "claimed": 0}
    status = {**reported, "placements": [], "claims": [], "conditions": []}
    world.put(*(made(f"a{number}") for number in range(3)), made("z", status=status), listed=True)
    assert world.held == 6
    assert world.store.known(Ref.of_object("shop", "z")).is_read  # type: ignore[union-attr]


def test_of_too_many_copies_of_one_reservation_the_last_are_refused() -> None:
    world = World()
    copies = [made(f"copy-{n}", origin="shop/web#1") for n in range(MOST_COPIES + 1)]
    world.put(*copies)
    assert (len(world.state.ledger), world.held) == (MOST_COPIES, 2)
    [report] = world.reports
    assert report.startswith("copy-8: spec.origin: 'shop/web#1' is the origin of 8 others here; ")
    world.put(made("copy-8", revision=2))
    assert world.held == 4


def test_each_copy_of_a_reservation_costs_the_same() -> None:
    world = World()
    costs = [lines(lambda: world.put(made(f"c-{n}", origin="shop/web#1"))) for n in range(40)]  # noqa: B023
    assert costs[-1] <= max(costs[:10])
