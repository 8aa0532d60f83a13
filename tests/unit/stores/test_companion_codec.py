import pytest

from reserver.k8s.objects.objects import Metadata, decode, encode
from reserver.stores.configmap import companion_codec
from reserver.stores.configmap.companion_codec import SEEN, CompanionObject, Contents, chunks, new

LONG = '{"phase":"Active","backed":false,"digest":"d","message":"why"}'
SHORT = '{"phase":"Active","backed":false,"digest":"d"}'
STORE = Metadata(name="store", namespace="shop", uid="uid-1")


def test_a_companion_is_labelled_and_owned_by_its_store() -> None:
    made = new(STORE, {"a": "{}"}, 0)
    assert made["metadata"]["name"] == "store-status"
    assert made["metadata"]["labels"] == {"reserver.io/status-of": "store"}
    assert decode(CompanionObject, encode(made)).is_owned_by("uid-1")
    assert not decode(CompanionObject, encode(made)).is_owned_by("uid-2")


def test_a_name_that_is_too_long_for_a_label_is_left_out_of_it() -> None:
    made = new(Metadata(name="s" * 64, uid="u"), {}, 0)
    assert made["metadata"]["labels"] == {companion_codec.LABEL: ""}


@pytest.mark.parametrize(
    ("text", "seen"),
    [("17", 17), ("", 0), ("-1", 0), ("1e9", 0), ("٣", 0), ("9" * 5000, 0)],
    ids=["a number", "empty", "negative", "not whole", "not ASCII", "endless"],
)
def test_what_it_says_of_its_store_is_a_resource_version_or_nothing(text: str, seen: int) -> None:
    made = new(STORE, {}, 17)
    assert made["metadata"]["annotations"] == {SEEN: "17"}
    made["metadata"]["annotations"] = {SEEN: text}
    assert decode(CompanionObject, encode(made)).seen == seen


def test_only_what_differs_is_written() -> None:
    written = {"same": LONG, "other": LONG, "gone": LONG}
    wanted = {"same": LONG, "other": SHORT, "gone": None, "never-was": None, "new": SHORT}
    assert Contents(written).changes(wanted, 10_000) == (
        {"other": SHORT, "gone": None, "new": SHORT},
        set(),
    )


@pytest.mark.parametrize(
    ("limit", "changes", "left_out"),
    [
        (2 * (1 + len(LONG)), {"a": LONG, "b": LONG}, set()),
        (2 * (1 + len(LONG)) - 1, {"a": SHORT, "b": SHORT}, set()),
        (2 * (1 + len(SHORT)), {"a": SHORT, "b": SHORT}, set()),
        (2 * (1 + len(SHORT)) - 1, {"a": SHORT}, {"b"}),
        (0, {}, {"a", "b"}),
    ],
)
def test_where_room_is_short_messages_go_first_and_then_keys(
    limit: int, changes: dict[str, str], left_out: set[str]
) -> None:
    assert Contents({}).changes({"a": LONG, "b": LONG}, limit) == (changes, left_out)


def test_what_is_said_already_stays_without_its_message() -> None:
    assert Contents({"a": LONG}).changes({"b": LONG}, 2 * len(SHORT)) == ({"a": SHORT}, {"b"})


def test_a_key_that_does_not_fit_any_more_is_removed_rather_than_wrong() -> None:
    assert Contents({"a": SHORT}).changes({"a": LONG}, 10) == ({"a": None}, {"a"})


def test_what_goes_makes_room_for_what_comes() -> None:
    written, wanted = {"b": LONG}, {"a": LONG, "b": None}
    assert Contents(written).changes(wanted, 1 + len(LONG)) == ({"b": None, "a": LONG}, set())


def test_room_is_kept_count_of_as_it_is_taken_and_given_back() -> None:
    contents = Contents({"a": LONG})
    contents.apply({"b": LONG, "a": SHORT, "gone": None})
    assert contents.texts == {"a": SHORT, "b": LONG}
    room = 2 + len(SHORT) + len(LONG)
    assert contents.changes({"b": None, "c": LONG}, room) == ({"b": None, "c": LONG}, set())
    assert contents.changes({"c": LONG}, room) == ({"b": SHORT}, {"c"})
    contents.apply({"b": None})
    assert contents.changes({"c": LONG}, room) == ({"c": LONG}, set())


def test_room_is_counted_in_bytes() -> None:
    text = LONG.replace("why", "…" * 10)
    assert Contents({}).changes({"a": text}, 1 + len(text)) == ({"a": SHORT}, set())


def test_many_changes_are_a_handful_of_writes() -> None:
    changes = {f"some-longer-key-{number}": LONG for number in range(10_000)} | {"gone": None}
    parts = list(chunks(changes))
    assert len(parts) == 2
    assert {key: text for part in parts for key, text in part.items()} == changes
    assert all(len(encode(part)) <= companion_codec.PATCH_BYTES + 2 for part in parts)
    assert list(chunks({})) == []


def test_a_value_that_is_larger_than_a_write_should_be_is_written_alone() -> None:
    changes = {"a": LONG, "b": "x" * companion_codec.PATCH_BYTES, "c": LONG}
    assert [list(part) for part in chunks(changes)] == [["a"], ["b"], ["c"]]
