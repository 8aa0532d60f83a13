"""Reservation objects are judged as the entries of ConfigMaps are."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.promises.tape import NOW, Tape, rfc3339

SPEC: dict[str, Any] = {
    "owners": [{"pod": {"name": "owner"}}],
    "resources": {"cpu": "3"},
    "node": "worker-1",
    "slots": 1,
    "policy": "Prefer",
    "expiresAt": rfc3339(NOW + 600),
}


@pytest.fixture
def tape() -> Tape:
    tape = Tape()
    tape.node("worker-1")
    metadata = {"name": "web", "namespace": "shop", "uid": "uid-web"}
    tape._write("reservations", "shop/web", {"metadata": metadata, "spec": SPEC})
    tape.wait(5)
    return tape


def test_a_claim_of_an_object_is_recognised_and_its_deletion_is_right(tape: Tape) -> None:
    tape.pod("owner", "3")
    tape.bind("owner", "worker-1", "shop/web#uid-web")
    tape._delete("reservations", "shop/web")
    tape.wait(60)
    assert tape.kinds() == []


def test_an_owner_whose_binding_says_nothing_of_its_object_is_caught(tape: Tape) -> None:
    tape.pod("owner", "3")
    tape.bind("owner", "worker-1")
    assert "claim not recorded" in tape.kinds()


def test_room_that_an_object_holds_and_a_stranger_gets_is_caught(tape: Tape) -> None:
    tape.pod("stranger", "3")
    tape.bind("stranger", "worker-1")
    assert "given away" in tape.kinds()


def test_an_object_that_vanishes_is_caught(tape: Tape) -> None:
    tape._delete("reservations", "shop/web")
    tape.wait(60)
    assert tape.kinds() == ["reservation lost"]
