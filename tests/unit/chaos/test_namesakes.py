"""The storm's account of room knows the pods of another namespace."""

from __future__ import annotations

from dataclasses import replace

from hack.chaos.book import Book, SeenPod
from hack.chaos.groups import Groups
from hack.chaos.namesakes import Strangers
from hack.chaos.scale import NODE_CPU

WAITS = SeenPod(name="owner", uid="u", node="", cpu=500, claims=frozenset())
BOUND = replace(WAITS, node="n")


def test_a_stranger_takes_room_from_its_binding_until_it_is_gone() -> None:
    book = Book(["n"], 1.0, Groups())
    strangers = Strangers(book)
    for pod, room in [(WAITS, NODE_CPU), (BOUND, NODE_CPU - 500), (BOUND, NODE_CPU - 500)]:
        strangers.pod_seen(pod)
        assert book.has_room("n", room)
        assert not book.has_room("n", room + 1)
    assert book.pod("owner") is None
    strangers.pod_gone("owner")
    assert book.has_room("n", NODE_CPU)


def test_another_stranger_of_the_same_name_gives_back_the_room_of_the_first() -> None:
    book = Book(["n"], 1.0, Groups())
    strangers = Strangers(book)
    strangers.pod_seen(BOUND)
    strangers.pod_seen(replace(WAITS, uid="v"))
    assert book.has_room("n", NODE_CPU)
