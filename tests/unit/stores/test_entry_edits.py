"""Edits of the store: one key, as it was seen, and nothing else."""

import json
from dataclasses import replace

import pytest

from reserver.k8s.objects.objects import encode
from reserver.reservations.reservation import Ref, Reservation
from reserver.stores.configmap import entry_edits
from reserver.stores.configmap.entries import read_key
from reserver.stores.edits import Edit
from tests.builders import parts
from tests.cpu import MOST_S, least_cpu_s

SEEN = 1_900_000_000.0
LIST = Ref("shop", "store", "worker-1")
SPEC = Ref("shop", "store", "web")


def item(pod: str, **more: object) -> dict[str, object]:
    return {"pod": pod, "namespace": "shop", "cpu": 1, "mem": 1, "expire": 1899999999, **more}


def removed(seen: str, *pods: str) -> Edit | None:
    said = read_key(LIST, seen, SEEN).reservations
    over = [each for each in said if any(owner.name in pods for owner in each.owners)]
    return entry_edits.remove(LIST, seen, over)


def only(ref: Ref, text: str) -> Reservation:
    entries = read_key(ref, text, SEEN)
    assert entries.problems == ()
    (reservation,) = entries.reservations
    return reservation


def stamped(text: str) -> str:
    """Return the text of a spec after its stamp."""
    edit = entry_edits.complete(SPEC, text, only(SPEC, text), ())
    assert edit is not None
    assert edit.value is not None
    return edit.value


def test_a_patch_tests_what_was_seen_and_replaces_it() -> None:
    assert Edit(SPEC, "old", "new", "").patch() == [
        {"op": "test", "path": "/data/web", "value": "old"},
        {"op": "replace", "path": "/data/web", "value": "new"},
    ]


def test_a_patch_without_a_value_removes_the_key() -> None:
    assert Edit(SPEC, "old", None, "").patch() == [
        {"op": "test", "path": "/data/web", "value": "old"},
        {"op": "remove", "path": "/data/web"},
    ]


def test_a_key_is_escaped_in_the_path_of_a_patch() -> None:
    odd = SPEC._replace(key="a/b~c")
    assert {op["path"] for op in Edit(odd, "", None, "").patch()} == {"/data/a~1b~0c"}


def test_what_is_over_is_removed_from_a_list_and_all_else_is_kept() -> None:
    kept = [item("b", comment="für später"), "broken", None, {"pod": 7}, item("c", cpu=-1), [1.5]]
    edit = removed(json.dumps([item("a"), *kept, item("d")]), "a", "d")
    assert edit is not None
    assert edit.ref == LIST
    assert json.loads(edit.value or "") == kept


LONG = {"reservingPod": "a", "reservingPodNamespace": "shop", "cpuMilli": 1, "memMilli": 1}


def dumped(*pods: str) -> str:
    return json.dumps([item(pod) for pod in pods])


@pytest.mark.parametrize(
    ("text", "goes"),
    [
        (json.dumps(item("a", reservingPodNamespace="other")), True),
        (json.dumps(item("a", reservingPodNamespace=5)), True),
        (json.dumps({**LONG, "expireAt": 1899999999, "pod": "b", "namespace": 7}), True),
        (json.dumps(item("a"))[:-1] + ', "odd": 1e999}', True),
        (json.dumps(item("a")).replace('"a"', '"\\u0061"'), True),
        (json.dumps(item("a"))[:-1] + ', "pod": "a"}', False),
        (json.dumps(item("a", cpu=-1)), False),
        (json.dumps(item("b")), False),
    ],
)
def test_an_item_goes_if_it_says_what_is_over_in_whatever_way(text: str, *, goes: bool) -> None:
    said = read_key(LIST, f"[{text}]", SEEN).reservations
    over = [each for each in said if each.ref.item == "shop/a"]
    assert bool(over) is goes
    edit = entry_edits.remove(
        LIST, f"[{text}]", over or read_key(LIST, dumped("a"), SEEN).reservations
    )
    assert (edit is not None and edit.value is None) is goes


def test_what_is_over_is_removed_from_a_mebibyte_in_little_time() -> None:
    """Each item was once read again: 0.4 s of CPU."""

    def seen(number: int) -> tuple[str, list[Reservation]]:
        names = [f"w{number}-{each}" for each in range(12_000)]
        over = read_key(LIST, dumped(*names[: entry_edits.MOST_REMOVED]), SEEN)
        return dumped(*names), [*over.reservations]

    assert least_cpu_s(seen, lambda given: entry_edits.remove(LIST, *given)) < MOST_S


def test_a_list_of_which_nothing_is_left_is_removed_with_its_key() -> None:
    edit = removed(json.dumps([item("a"), item("b")]), "a", "b")
    assert edit is not None
    assert edit.value is None


def test_a_list_of_which_nothing_is_over_is_left_alone() -> None:
    assert removed(json.dumps([item("a"), "broken"]), "z") is None


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param('{"pod": "b", "cpu": 1e400}', id="a number beyond all numbers"),
        pytest.param('{"pod": "b", "cpu": -1e400}', id="a number below all numbers"),
        pytest.param('{"pod": "b", "cpu": 0.1000000000000000055}', id="a number too fine"),
        pytest.param('{"pod": "b", "pod": "b"}', id="a field that is given twice"),
    ],
)
def test_a_broken_item_that_is_kept_costs_no_other_after_the_edit(broken: str) -> None:
    edit = removed(f"[{json.dumps(item('a'))}, {broken}, {json.dumps(item('c'))}]", "a")
    assert edit is not None
    encode(edit.patch())
    assert broken in (edit.value or "")
    entries = read_key(LIST, edit.value or "", SEEN)
    assert [r.ref.item for r in entries.reservations] == ["shop/c"]
    assert len(entries.problems) == 1


YAML = """\
# For the release in March.
owners:
- pod: {name: web-0}   # the first one
resources: {cpu: 2}
node: worker-1
"""


def test_a_stamp_writes_down_when_a_reservation_expires() -> None:
    assert stamped(YAML + "ttl: 1h\n") == YAML + "ttl: 1h\nexpiresAt: 2030-03-17T18:46:40Z\n"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(YAML, id="YAML"),
        pytest.param(YAML + "ttl: 90s", id="YAML without a last line break"),
        pytest.param(YAML + "ttl: 90s\n\n\n# the end", id="YAML that ends in a comment"),
        pytest.param("---\n" + YAML, id="YAML with a marker"),
        pytest.param(YAML + "...\n", id="YAML with an end marker"),
        pytest.param(YAML + "expiresAt:\n", id="YAML with an empty expiry"),
        pytest.param("".join(f"  {line}" for line in YAML.splitlines(True)), id="indented YAML"),  # noqa: FBT003 - keep the line breaks
        pytest.param(
            '{"owners":[{"pod":{"name":"web-0"}}],"resources":{"cpu":"2"},"node":"n"}', id="JSON"
        ),
        pytest.param(
            '\n {"owners":[{"pod":{"name":"web-0"}}],"resources":{"cpu":"2"},"node":"n",'
            '"ttl":"1500ms","expiresAt":null}',
            id="JSON with an empty expiry",
        ),
    ],
)
@pytest.mark.parametrize("seen_at", [SEEN, SEEN + 0.999])
def test_a_stamp_changes_nothing_but_that_it_is_written_down(text: str, seen_at: float) -> None:
    before = read_key(SPEC, text, seen_at)
    edit = entry_edits.complete(SPEC, text, before.reservations[0], ())
    assert edit is not None
    after = read_key(SPEC, edit.value or "", seen_at + 5000)
    assert before.unstamped
    assert not after.unstamped
    assert after.reservations == before.reservations
    assert after.problems == ()


def test_a_stamp_keeps_comments_and_layout_of_yaml() -> None:
    assert stamped(YAML).startswith(YAML)
    assert stamped("---\n" + YAML).startswith("---\n" + YAML)


def test_a_reservation_that_never_expires_is_not_stamped() -> None:
    text = YAML + "ttl: 0\n"
    assert entry_edits.complete(SPEC, text, only(SPEC, text), ()) is None


def test_a_reservation_near_the_limit_of_yaml_is_still_read_after_its_stamp() -> None:
    names = ", ".join(f"{{pod: {{name: web-{number:050}}}}}" for number in range(900))
    text = f"owners: [{names}]\nresources: {{cpu: 1}}\nnode: worker-1\n"
    text += "#" * (65_530 - len(text)) + "\n"
    before = only(SPEC, text)
    edit = entry_edits.complete(SPEC, text, before, ())
    assert edit is None or only(SPEC, edit.value or "") == before


@pytest.mark.parametrize("ttl", ["999999999h", "99999999h" * 50])
def test_a_reservation_with_an_absurd_ttl_is_refused_or_can_be_stamped(ttl: str) -> None:
    entries = read_key(SPEC, YAML + f"ttl: {ttl}\n", SEEN)
    for reservation in entries.reservations:
        entry_edits.complete(SPEC, YAML, reservation, ())
    assert entries.reservations or entries.problems


PLACELESS = "# For the move.\nowners: [{pod: {name: web-0}}]\nresources: {cpu: 2}\n"
PLACED = parts({"worker-1": 1})


@pytest.mark.parametrize(
    "text",
    [
        PLACELESS,
        PLACELESS + "ttl: 1h\n",
        PLACELESS + 'placements: [{"node": "worker-9", "slots": 1}]\n',
        PLACELESS + "placements:\n- node: worker-9\n  slots: 1\n",
        '{"owners": [{"pod": {"name": "web-0"}}], "resources": {"cpu": "2"}}',
    ],
    ids=["yaml", "with a ttl", "moved", "moved, in several lines", "json"],
)
def test_where_it_is_placed_and_when_it_ends_are_written_together(text: str) -> None:
    before = only(SPEC, text)
    edit = entry_edits.complete(SPEC, text, before, PLACED)
    assert edit is not None
    assert edit.value is not None
    after = read_key(SPEC, edit.value, SEEN + 100.0).reservations[0]
    assert after == replace(before, placed=PLACED)
    assert entry_edits.complete(SPEC, edit.value, after, PLACED) is None


def test_comments_stay_where_a_place_is_added_and_changed() -> None:
    first = entry_edits.complete(SPEC, PLACELESS, only(SPEC, PLACELESS), PLACED)
    assert first is not None
    assert first.value is not None
    assert first.value.startswith(PLACELESS)
    moved = entry_edits.complete(
        SPEC, first.value, only(SPEC, first.value), parts({"worker-2": 1, "worker-3": 2})
    )
    assert moved is not None
    assert moved.value is not None
    assert moved.value.startswith(PLACELESS)
    assert moved.value.count("placements") == 1
    gone = entry_edits.complete(SPEC, first.value, only(SPEC, first.value), ())
    assert gone is not None
    assert gone.value is not None
    assert only(SPEC, gone.value).placed == ()
