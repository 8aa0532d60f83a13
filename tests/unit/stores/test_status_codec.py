import json
from typing import Any

import pytest

from reserver.errors import InvalidInput
from reserver.reservations.enums import Phase
from reserver.reservations.reservation import Reservation
from reserver.reservations.status import ReservationState
from reserver.stores.configmap.entries import read_key
from reserver.stores.configmap.status_codec import newly_unbacked, show, without_messages
from reserver.stores.entries import Entries, EntryProblem
from reserver.stores.object.status_codec import summary
from tests.builders import NOW, ref, reservation

SPEC = '{"owners": [{"pod": {"name": "a"}}], "node": "n", "resources": {"cpu": 1}, "ttl": 0}'
ACTIVE = {"phase": "Active", "backed": True, "message": ""}


def item(pod: str, cpu: int = 1) -> dict[str, object]:
    return {"pod": pod, "namespace": "shop", "cpu": cpu, "mem": 0, "expire": int(NOW) + 9}


def said(text: str, **unbacked: str) -> Any:
    """Return the status of a value when the named items are not backed."""

    def status(reservation: Reservation) -> ReservationState:
        why = unbacked.get(reservation.ref.item.removeprefix("shop/"), "")
        return ReservationState(Phase.ACTIVE, not why, why)

    return json.loads(show(read_key(ref("worker-1"), text, NOW), status))


def undigested(entry: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name != "digest"}


def test_one_reservation_is_said_with_its_digest() -> None:
    (reservation,) = read_key(ref("worker-1"), SPEC, NOW).reservations
    assert said(SPEC) == ACTIVE | {"digest": reservation.digest}


def test_each_item_of_a_list_is_said_under_its_pod() -> None:
    entries = said(json.dumps([item("a"), item("b")]), b="no room")
    assert entries.keys() == {"shop/a", "shop/b"}
    assert undigested(entries["shop/a"]) == ACTIVE
    assert undigested(entries["shop/b"]) == ACTIVE | {"backed": False, "message": "no room"}


@pytest.mark.parametrize("text", ["", "{", "hello", "node: n", "[", "owners: []"])
def test_a_key_that_cannot_be_read_is_invalid(text: str) -> None:
    entry = said(text)
    (problem,) = read_key(ref("worker-1"), text, NOW).problems
    assert entry == {
        "phase": "Invalid",
        "backed": False,
        "digest": "",
        "message": str(problem.error),
    }


def test_broken_items_are_said_under_their_index_beside_the_others() -> None:
    entries = said(json.dumps([item("a"), item("b", cpu=-1), item("a"), 7]))
    assert list(entries) == ["shop/a", "[1]", "[2]", "[3]"]
    assert undigested(entries["shop/a"]) == ACTIVE
    assert entries["[1]"]["phase"] == entries["[2]"]["phase"] == "Invalid"
    assert entries["[1]"]["message"].startswith("[1].cpu: -1 is negative; write the amount")


def test_a_list_with_one_item_that_is_broken_is_still_a_list() -> None:
    assert list(said("[7]")) == ["[0]"]


def test_of_very_many_broken_items_the_rest_is_counted() -> None:
    problem = EntryProblem(ref("worker-1"), InvalidInput("[0]", "is broken", "mend it"))
    entries = json.loads(show(Entries(problems=(problem,) * 2, more_problems=5), _no_reservation))
    assert entries["[…]"]["message"] == "5 more items are broken"


@pytest.mark.parametrize("text", ["[]", "null"])
def test_a_key_that_holds_nothing_says_nothing(text: str) -> None:
    assert said(text) == {}


def _no_reservation(_: Reservation) -> ReservationState:
    raise AssertionError


SINGLE = '{"phase":"%s","backed":%s,"digest":"d","message":"why"}'
UNBACKED = SINGLE % ("Active", "false")
BACKED = SINGLE % ("Active", "true")
PENDING = SINGLE % ("Pending", "false")
FAILED = SINGLE % ("Failed", "false")
INVALID = SINGLE % ("Invalid", "false")


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (None, UNBACKED, [("", "why")]),
        (BACKED, UNBACKED, [("", "why")]),
        (PENDING, UNBACKED, [("", "why")]),
        (INVALID, UNBACKED, [("", "why")]),
        ('{"backed":false, broken', UNBACKED, [("", "why")]),
        (UNBACKED, UNBACKED, []),
        (without_messages(UNBACKED), UNBACKED, []),
        (UNBACKED, BACKED, []),
        (BACKED, FAILED, [("", "why")]),
        (UNBACKED, FAILED, [("", "why")]),
        (FAILED, UNBACKED, [("", "why")]),
        (FAILED, FAILED, []),
        (None, PENDING, []),
        (None, INVALID, []),
        (BACKED, None, []),
        (f'{{"s/a":{BACKED}}}', f'{{"s/a":{UNBACKED},"s/b":{BACKED}}}', [("s/a", "why")]),
        (f'{{"s/a":{UNBACKED}}}', f'{{"s/a":{UNBACKED},"s/b":{UNBACKED}}}', [("s/b", "why")]),
    ],
)
def test_only_what_turns_unbacked_is_told(
    before: str | None, after: str | None, expected: list[tuple[str, str]]
) -> None:
    reported = newly_unbacked(before, after)
    assert [(item, entry.message) for item, entry in reported] == expected


def test_messages_are_left_out_of_both_forms() -> None:
    short = '{"phase":"Active","backed":false,"digest":"d"}'
    assert without_messages(UNBACKED) == short
    assert without_messages(f'{{"s/a":{UNBACKED}}}') == f'{{"s/a":{short}}}'


def test_what_somebody_else_wrote_is_left_as_it_is() -> None:
    for text in ('{"message": ', '["message"]', 'a "message"'):
        assert without_messages(text) == text


def test_the_columns_of_kubectl_name_all_nodes_and_owners_and_count_those_beyond_five() -> None:
    owners = ["a", "b", "c"]
    three = reservation(
        "r", node="", owners=owners, slots=3, placed={f"w{n}": 1 for n in (1, 2, 3)}
    )
    reported = summary(three, claimed=1)
    assert (reported.nodes, reported.claimed) == ("w1, w2, w3", "1/3")
    assert len(reported.owners.split(", ")) == 3
    seven = reservation("r", node="", slots=7, placed={f"w{n}": 1 for n in range(1, 8)})
    assert summary(seven, claimed=0).nodes == "w1, w2, w3, w4, w5 +2"
