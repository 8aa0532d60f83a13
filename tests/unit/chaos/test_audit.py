"""The storm's findings about a missing reservation."""

from __future__ import annotations

import time
from typing import Any

import pytest

from hack.chaos.audit import Remains
from hack.chaos.book import Book, Hold, SeenPod
from hack.chaos.forms import FORMS, Terms
from hack.chaos.groups import Groups

OWNER = SeenPod(name="owner", uid="u", node="", cpu=500, claims=frozenset())


class Nothing:
    """Empty stores, and a Reserver that counts nothing."""

    def metric(self, _: str) -> float:
        return 0


@pytest.mark.parametrize(("was_seen", "lost"), [(True, ("owner",)), (False, ())])
def test_a_reservation_is_lost_unless_its_owner_may_have_landed_unseen(
    was_seen: bool,  # noqa: FBT001 - a column of the table
    lost: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hack.chaos.audit.standing", lambda _: ())
    groups = Groups()
    book = Book(["n"], 1.0, groups)
    expires = int(time.time()) + 600
    terms = Terms(node="n", namespace="chaos", owner="owner", cpu=500, expires=expires)
    hold = Hold(form=FORMS[0], terms=terms)
    assert book.add(hold)
    book.await_owner(hold)
    book.pod_seen(OWNER)
    (book.pod_gone if was_seen else book.pod_missed)("owner")
    nothing: Any = Nothing()
    remains = Remains.of(nothing, book, groups, "chaos", nothing)
    assert remains.lost == lost
    assert len([*remains.violations()]) == len(lost)
