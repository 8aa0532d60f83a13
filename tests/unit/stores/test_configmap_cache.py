import asyncio
import json
from collections.abc import Mapping

import pytest

from reserver.base.pacer import outcome
from reserver.cluster.node import Node
from reserver.cluster.pod import Pod
from reserver.k8s.objects.limits import MOST_KEYS
from reserver.k8s.objects.objects import ConfigMapObject, Metadata
from reserver.reservations.enums import Phase
from reserver.reservations.reservation import Ref
from reserver.scheduling.bind import judge_bind
from reserver.scheduling.state import State
from reserver.stores.cache import Expected
from reserver.stores.configmap.cache import ConfigMapCache
from reserver.stores.entries import Entries, EntryProblem
from tests.builders import NOW, held, node, pod, state_of

W1 = node("worker-1", cpu="16")


class Written:
    """A store, the state behind it, and its reports."""

    def __init__(self, *things: Node | Pod) -> None:
        self.now = NOW
        self.state: State = state_of(W1, *things, now=0.0)
        self.reports: list[tuple[Metadata, EntryProblem]] = []
        self.store = ConfigMapCache(self.state.ledger, lambda: self.now, self._report)

    def _report(self, metadata: Metadata, problem: EntryProblem) -> None:
        self.reports.append((metadata, problem))

    def put(
        self,
        configmap: str = "store",
        *,
        revision: int = 0,
        listed: bool = False,
        data: Mapping[str, str] | None = None,
        **more: str,
    ) -> None:
        metadata = Metadata(
            name=configmap,
            namespace="shop",
            uid=f"uid-{configmap}",
            resource_version=str(revision or ""),
        )
        written = {**(data or {}), **more}
        renamed = {key.replace("_", "-"): text for key, text in written.items()}
        outcome(self.store.put(ConfigMapObject(metadata=metadata, data=renamed), listed=listed))

    @property
    def held(self) -> int:
        return held(self.state, "worker-1") // 1000

    @property
    def said(self) -> list[str]:
        return [str(problem) for _, problem in self.reports]

    def edits(self, later: float = 0.0) -> list[tuple[str, str, str | None]]:
        refs = [Ref(*name, key) for name in self.store.names() for key in self.store.keys(name)]
        edits = (self.store.due_edit(ref, self.now + later) for ref in refs)
        return [(edit.reason, edit.ref.key, edit.value) for edit in edits if edit]


def spec(owner: str = "owner", **changes: object) -> str:
    fields = {
        "owners": [{"pod": {"name": owner}}],
        "resources": {"cpu": "2"},
        "node": "worker-1",
        "ttl": 0,
    }
    return json.dumps(fields | changes)


def item(owner: str, **changes: object) -> dict[str, object]:
    fields = {"pod": owner, "namespace": "shop", "cpu": 2000, "mem": 0, "expire": int(NOW) + 100}
    return fields | changes


@pytest.fixture
def written() -> Written:
    return Written()


# From the store into the ledger.


def test_configmaps_do_not_touch_each_others_reservations(written: Written) -> None:
    written.put("one", r=spec())
    written.put("two", r=spec())
    written.put("one")
    assert [ref.configmap for ref in _refs(written)] == ["two"]
    for _ in range(2):
        outcome(written.store.drop(("shop", "two")))
    assert written.held == 0


def test_items_of_a_list_come_and_go_one_by_one(written: Written) -> None:
    written.put(worker_1=json.dumps([item("a"), item("b")]))
    written.put(worker_1=json.dumps([item("b"), item("c", cpu=3000)]))
    assert written.held == 5
    assert [ref.item for ref in _refs(written)] == ["shop/b", "shop/c"]


def test_a_claim_survives_an_edit_of_the_neighbours_and_of_the_layout(written: Written) -> None:
    written.put(worker_1=json.dumps([item("a"), item("b")]))
    identity = _identity(written, "shop/a")
    written.state.ledger.claim(identity, pod("a", uid="uid-a"))
    written.put(worker_1=json.dumps([item("c"), item("a")], indent=2))
    assert written.held == 2
    assert written.state.ledger.phase(Ref("shop", "store", "worker-1", "shop/a")) is Phase.CLAIMED


def test_a_ttl_counts_from_when_it_was_first_seen(written: Written) -> None:
    written.put(r=spec(ttl="10s"))
    written.now += 9
    written.put(r=spec(ttl="10s"), other=spec())
    assert written.held == 4
    written.now += 1
    written.put(r=spec(ttl="10s"))
    assert written.held == 0


# Reports.


def test_a_problem_is_reported_when_it_is_written_and_not_again(written: Written) -> None:
    for _ in range(3):
        written.put(r="{", fine=spec())
    ((metadata, problem),) = written.reports
    assert (metadata.namespace, metadata.name, metadata.uid) == ("shop", "store", "uid-store")
    assert str(problem).startswith("r: invalid JSON")
    assert dict(written.store.problem_counts()) == {("shop", "store"): 1}
    written.put(fine=spec())
    assert dict(written.store.problem_counts()) == {("shop", "store"): 0}


def test_each_broken_item_of_a_list_is_reported(written: Written) -> None:
    written.put(worker_1=json.dumps([item("a"), {}, item("b", cpu=-1)]))
    assert [said.partition(": ")[2].partition(":")[0] for said in written.said] == [
        "[1].pod",
        "[2].cpu",
    ]


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ({"r": spec(expiresAt="2001-01-01T00:00:00Z")}, "expiresAt"),
        ({"worker_1": json.dumps([item("a", expire=int(NOW))])}, "expire"),
    ],
)
def test_an_entry_that_is_over_when_it_is_written_is_reported(
    written: Written, data: dict[str, str], field: str
) -> None:
    written.put(data=data)
    assert len(written.said) == 1
    assert f"{field}: lies in the past" in written.said[0]
    assert written.held == 0


# Edits for the cleaner.


def test_nothing_is_edited_while_nothing_is_over(written: Written) -> None:
    written.put(r=spec(), worker_1=json.dumps([item("a"), {}]), broken="{")
    assert written.edits() == []


def test_what_expired_is_removed_with_its_key(written: Written) -> None:
    written.put(r=spec(expiresAt="2030-03-17T17:46:50Z"), other=spec())
    assert written.edits(later=9.9) == []
    assert written.edits(later=10) == [("over", "r", None)]


def test_of_a_list_only_what_expired_is_removed(written: Written) -> None:
    items = [item("a"), item("b", expire=int(NOW) + 500), "broken"]
    written.put(worker_1=json.dumps(items))
    ((reason, key, value),) = written.edits(later=100)
    assert (reason, key) == ("over", "worker-1")
    assert json.loads(value or "") == items[1:]


def test_a_ttl_is_written_down_as_a_moment_once(written: Written) -> None:
    written.put(r=spec(ttl="100s"))
    ((reason, key, value),) = written.edits()
    assert (reason, key) == ("stamp", "r")
    before = list(written.state.ledger)
    written.put(r=value or "")
    assert list(written.state.ledger) == before
    assert written.edits() == []


@pytest.mark.parametrize(
    ("data", "edited"),
    [
        ({"r": spec()}, ["r"]),
        ({"worker_1": json.dumps([item("owner"), item("other")])}, ["worker-1"]),
    ],
    ids=["spec", "list"],
)
def test_what_is_claimed_by_a_binding_under_way_is_removed_only_once_that_is_written(
    written: Written, data: dict[str, str], edited: list[str]
) -> None:
    written.put(data=data)
    owner = pod("owner", cpu="2")
    written.state.pod_seen(owner)
    claims = judge_bind(owner, "worker-1", written.state, NOW).claims
    assert claims
    written.state.assume(owner, "worker-1", claims)
    assert written.edits() == []  # The binding may still fail, and then the seat is needed.
    written.state.confirm(owner.uid)
    written.state.pod_seen(pod("owner", node="worker-1", cpu="2"))
    assert [key for _, key, _ in written.edits()] == edited


@pytest.mark.parametrize("ttl", ["999999999h", "9999999h9999999h"])
def test_an_absurd_ttl_does_not_keep_the_store_from_being_tidied(
    written: Written, ttl: str
) -> None:
    written.put(a=spec(ttl=ttl), r=spec(expiresAt="2030-03-17T17:46:50Z"))
    assert ("over", "r", None) in written.edits(later=10)


@pytest.mark.parametrize(
    ("owner", "times"),
    [
        ({"pod": {"name": "web-0"}}, 1),
        ({"selector": {"matchLabels": {"app": "web"}}}, 1),
        ({"controller": {"kind": "Job", "name": "j", "namespace": "blog"}}, 0),
        ({"pod": {"name": "web-0", "namespace": "shop"}}, 0),
    ],
)
def test_an_owner_without_a_namespace_is_told_once_for_each_time_it_is_written(
    written: Written, owner: dict[str, object], times: int
) -> None:
    reported: list[tuple[str, Ref]] = []
    written.store.assumed = lambda metadata, ref: reported.append((metadata.name, ref))
    text = json.dumps({"owners": [owner], "node": "worker-1", "resources": {"cpu": "1"}})
    written.put(r=text)
    written.put(r=text)
    assert reported == [("store", Ref("shop", "store", "r"))] * times


def _refs(written: Written) -> list[Ref]:
    return [reservation.ref for reservation, _ in written.state.ledger]


def _identity(written: Written, wanted: str) -> str:
    return next(r.identity for r, _ in written.state.ledger if r.ref.item == wanted)


@pytest.mark.parametrize("becomes", ["shown", "gone", "never written"])
async def test_whoever_waits_for_a_configmap_goes_on_once_there_is_nothing_to_wait_for(
    becomes: str,
) -> None:
    written = Written()
    ref = Ref("shop", "store", "r")
    if becomes == "never written":
        written.store.expect(ref, Expected("", Entries()))
    else:
        written.put(revision=5)
    waiting = asyncio.create_task(written.store.shown(("shop", "store"), 7))
    await asyncio.sleep(0)
    written.put("another", revision=9)
    await asyncio.sleep(0)
    assert not waiting.done()
    if becomes == "shown":
        written.put(revision=7)
    elif becomes == "gone":
        outcome(written.store.drop(("shop", "store")))
    else:
        written.store.withdraw(ref)
    async with asyncio.timeout(20):
        await waiting


def test_of_too_many_keys_those_that_hold_go_on_and_one_line_tells_of_the_others() -> None:
    written = Written()
    entry = {"owners": [{"pod": {"name": "web"}}], "node": "worker-1", "resources": {"cpu": "2"}}
    held_before = {"z": json.dumps(entry)}
    written.put(data=held_before)
    junk = {f"a{number:06}": "x" for number in range(MOST_KEYS + 5)}
    written.put(data=junk | held_before)
    assert written.held == 2
    about_all = [line for line in written.said if "keys are too many" in line]
    assert len(about_all) == 1
    assert f"{MOST_KEYS + 6} keys" in about_all[0]
    assert len(written.store.keys(("shop", "store"))) == MOST_KEYS
    written.put(data=held_before)
    assert written.held == 2
    assert written.store.keys(("shop", "store")) == ("z",)
