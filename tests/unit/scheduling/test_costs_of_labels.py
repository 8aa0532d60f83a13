"""The cost of labels of pods, selectors and owners for others; work is counted, not timed."""

import json

import pytest

from reserver.cluster import labels as label_tables
from reserver.cluster.labels import UNREAD, LabelTable, Selector, equals
from reserver.cluster.pod import Pod
from reserver.k8s.objects.limits import POD
from reserver.reservations.owner import OwnerRule
from tests.builders import NAMESPACE
from tests.unit.scheduling.counted import Work, Written, selector, written_pod


@pytest.mark.parametrize("operator", ["DoesNotExist", "NotIn"])
def test_a_key_that_no_row_has_costs_nothing(work: Work, operator: str) -> None:
    table = LabelTable(64)
    table.put(3, {"app": "web"})
    asked = selector([f"k{number}" for number in range(1000)], operator, "a")
    assert table.matching(asked).all()
    assert work.columns == 0


@pytest.mark.parametrize("operator", ["Exists", "In", "Gt", "Lt"])
def test_a_demand_for_a_key_that_no_row_has_ends_the_search(work: Work, operator: str) -> None:
    table = LabelTable(64)
    table.put(3, {"app": "web"})
    keys = ["missing", *(f"k{number}" for number in range(1000)), "app"]
    assert not table.matching(selector(keys, operator, "1")).any()
    assert work.columns == 0


def test_once_no_row_is_left_nothing_more_is_asked(work: Work) -> None:
    table = LabelTable(64)
    for row in range(64):
        table.put(row, {f"k{number}": "v" for number in range(50)})
    assert not table.matching(selector([f"k{n}" for n in range(50)], "In", "other")).any()
    assert work.columns == 1


@pytest.mark.parametrize("room", [2**25, 0, 10_000])
def test_columns_of_any_keys_take_no_more_steps_than_there_are_labels(
    work: Work, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    monkeypatch.setattr(label_tables, "_COLUMN_BYTES", room)
    table, given = LabelTable(1000), 0
    for row in range(1000):
        own = {"app": f"a{row % 7}"} | {f"rare-{row}": "x", f"k{row % 300}": "y"}
        table.put(row, own)
        given += len(own)
    keys = [f"k{n}" for n in range(300)] + [f"rare-{n}" for n in range(1000)] + ["app"]
    assert table.matching(selector(keys, "NotIn", "z")).all()
    assert work.filled <= given


def test_columns_are_bounded_by_bytes_and_still_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(label_tables, "_COLUMN_BYTES", 20_000)
    table = LabelTable(100)
    for row in range(100):
        table.put(row, {f"k{number}": str(row) for number in range(row)})
    for _ in range(2):
        for number in range(100):
            rows = table.matching(selector([f"k{number}"], "Exists"))
            assert rows.tolist() == [row > number for row in range(100)]
            assert table._columns.size <= 20_000


def test_a_table_forgets_the_keys_of_rows_that_are_gone() -> None:
    table = LabelTable(10)
    for turn in range(100):
        table.put(turn % 10, {f"k{turn}": "v"})
    for row in range(10):
        table.put(row, None)
    assert table._rows == {}


# A pod with many labels, owners or claims.


@pytest.mark.parametrize(
    "labels",
    [
        {f"k{number}": "v" for number in range(POD.labels + 1)},
        {f"k{number}": "v" * 63 for number in range(10_000)},
        {"k": "v" * POD.part_bytes},
    ],
    ids=["just too many", "very many", "a long one"],
)
@pytest.mark.parametrize(
    "asked",
    [equals({"k1": "v"}), selector(["k1"], "DoesNotExist"), selector(["k2", "k"], "NotIn", "v")],
)
def test_who_has_too_many_labels_owns_nothing_by_its_labels(
    labels: Written, asked: Selector
) -> None:
    crowded = written_pod({}, {"labels": labels})
    assert crowded.labels is UNREAD
    assert not OwnerRule(namespace=NAMESPACE, selector=asked).matches(crowded)
    assert OwnerRule(namespace=NAMESPACE, pod="w").matches(crowded)


def test_as_many_labels_as_are_read_count() -> None:
    labels = {f"k{number}": "v" for number in range(POD.labels)}
    assert written_pod({}, {"labels": labels}).labels == labels


def test_a_crowd_of_owner_references_names_no_controller() -> None:
    others = [{"kind": "Job", "name": f"j{n}", "uid": "u"} for n in range(1000)]
    owners = [*others, {"kind": "Job", "name": "j", "uid": "u", "controller": True}]
    assert written_pod({}, {"ownerReferences": owners}).controller == ("", "")
    assert written_pod({}, {"ownerReferences": owners[-5:]}).controller == ("Job", "j")


def test_a_pod_that_says_it_claimed_thousands_claimed_nothing() -> None:
    def claiming(number: int) -> Pod:
        text = json.dumps([f"shop/r{each}@d" for each in range(number)])
        return written_pod({}, {"annotations": {"reserver.io/claims": text}})

    assert len(claiming(POD.claims).claims) == POD.claims
    assert claiming(POD.claims + 1).claims == frozenset()
