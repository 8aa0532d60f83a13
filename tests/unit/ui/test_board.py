"""A page that reconnects gets all missed events."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reserver.ui import board as boards
from reserver.ui.board import Board, chunks


def test_a_page_gets_what_changed_after_its_version() -> None:
    board = Board()
    board.put("nodes", "a", {"held": 1})
    seen = board.version
    board.put("nodes", "a", {"held": 1})
    assert board.since(seen) == {}  # Nothing has changed.
    board.put("nodes", "a", {"held": 2})
    board.put("nodes", "b", {"held": 3})
    board.put("nodes", "b", None)
    assert board.since(seen) == {"nodes": {"a": {"held": 2}, "b": None}}
    assert board.all() == {"nodes": {"a": {"held": 2}}}


def test_documents_that_a_list_lacks_are_gone() -> None:
    board = Board()
    board.put("moves", "kept", {})
    board.replace("nodes", {"a": {}, "b": {}})
    seen = board.version
    board.replace("nodes", {"b": {}, "c": {}})
    assert board.since(seen) == {"nodes": {"a": None, "c": {}}}
    assert board.get("moves", "kept") == {}


def test_a_version_of_another_time_is_not_known() -> None:
    board = Board()
    board.put("nodes", "a", {})
    assert board.since(board.version + 1) is None
    assert board.since(-1) is None


def test_what_is_gone_is_forgotten_in_the_end() -> None:
    board = Board()
    seen = board.version
    for number in range(boards._MOST_GONE + 1):
        board.put("nodes", str(number), {})
        board.put("nodes", str(number), None)
    assert board.since(seen) is None  # So such a page begins again.
    assert len(board._documents) <= boards._MOST_GONE
    seen = board.version
    board.put("nodes", "a", {})
    assert board.since(seen) == {"nodes": {"a": {}}}


Puts = st.lists(st.tuples(st.sampled_from("abcd"), st.none() | st.integers(0, 3)), max_size=30)


@given(Puts, Puts)
def test_a_page_that_applies_changes_has_all_documents(first: object, second: object) -> None:
    board, page = Board(), dict[str, object]()
    for puts in (first, second):
        since = board.version
        for key, value in puts:  # type: ignore[attr-defined]
            board.put("k", key, None if value is None else {"v": value})
        for part in chunks(board.since(since) or {}, 3):
            for key, document in part.get("k", {}).items():
                page.pop(key, None) if document is None else page.update({key: document})
    assert page == board.all().get("k", {})
