"""The store keeps what the manager wrote until it is over."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hack.promises.check import Kind
from tests.unit.promises.tape import LIST_STORE, STORE, Tape, rfc3339

LOST = [Kind.RESERVATION_LOST]


def item(pod: str, **more: Any) -> dict[str, Any]:
    amounts = {"cpu": 1000, "mem": 0, "expire": 1_900_003_600}
    return {"pod": pod, "namespace": "shop", **amounts, **more}


def test_an_entry_that_goes_without_a_reason_is_lost(tape: Tape) -> None:
    ref = tape.reserve("owner")
    tape.edit({"hold-owner": None})
    (violation,) = tape.report().violations
    assert (violation.kind, violation.entry) == (Kind.RESERVATION_LOST, ref)


def test_without_the_managers_account_nobody_can_tell(tape: Tape) -> None:
    tape.reserve("owner")
    tape.edit({"hold-owner": None})
    report = tape.report(account=False)
    assert report.violations == ()
    assert "manager.jsonl" in str(report)


def test_the_manager_may_remove_and_replace(tape: Tape) -> None:
    tape.reserve("owner")
    tape.put("hold-owner", tape.entry("owner", cpu="1"))
    tape.wait(30)
    tape.remove("hold-owner")
    assert tape.kinds() == []


def test_a_removal_of_long_ago_explains_nothing(tape: Tape) -> None:
    tape.reserve("owner")
    tape.remove("hold-owner")
    tape.wait(60)
    tape.reserve("owner")
    tape.wait(60)
    tape.edit({"hold-owner": None})
    assert tape.kinds() == LOST


def test_a_manager_that_learns_after_an_outage_that_its_removal_was_done(tape: Tape) -> None:
    tape.reserve("owner")
    tape.wait(60)
    tape.edit({"hold-owner": None})
    tape.outage(30)
    tape.remove("hold-owner")
    assert tape.kinds() == []


def test_a_key_that_the_cleaner_took_with_the_managers_new_value_in_it_is_lost(tape: Tape) -> None:
    ref = tape.reserve("owner")
    tape.land("owner", "n", ref)
    tape.put("hold-owner", tape.entry("owner", cpu="1"))
    tape.edit({"hold-owner": None})
    tape.wait(5)
    tape.reserve("next", key="hold-owner")
    tape.edit({"hold-owner": None})
    assert LOST[0] in tape.kinds()


def test_what_expired_may_go(tape: Tape) -> None:
    tape.reserve("owner", lives_s=8)
    tape.wait(10)
    tape.edit({"hold-owner": None})
    assert tape.kinds() == []


def test_a_whole_configmap_that_is_deleted_was_not_deleted_by_reserver(tape: Tape) -> None:
    tape.reserve("owner")
    tape.drop_store()
    assert tape.kinds() == []


def test_what_went_while_nobody_looked_is_not_judged(tape: Tape) -> None:
    tape.reserve("owner")
    before = tape.revision
    tape.edit({"hold-owner": None})
    tape.miss("configmaps", before)
    assert tape.kinds() == []


@pytest.mark.parametrize("ttl", [{"ttl": "1h"}, {}], ids=["ttl", "default"])
def test_a_ttl_that_the_cleaner_resolves_is_the_same_reservation(
    tape: Tape, ttl: dict[str, str]
) -> None:
    spec = {"owners": [{"pod": {"name": "owner"}}], "node": "n", "resources": {"cpu": 1}, **ttl}
    tape.put("lasting", json.dumps(spec))
    seconds = 3600 if ttl else 24 * 3600
    moment = rfc3339(int(tape.now + 0.5 + seconds))
    tape.wait(3)
    tape.edit({"lasting": json.dumps({**spec, "expiresAt": moment})})
    assert tape.kinds() == []
    tape.edit({"lasting": json.dumps({**spec, "expiresAt": rfc3339(tape.now + 60)})})
    assert tape.kinds() == LOST


def test_a_list_loses_only_what_is_over(tape: Tape) -> None:
    tape.put("n", json.dumps([item("a"), item("b"), item("c", expire=1_900_000_003)]), LIST_STORE)
    tape.wait(60)
    tape.edit({"n": json.dumps([item("a"), item("b")])}, LIST_STORE)
    assert tape.kinds() == []
    tape.edit({"n": json.dumps([item("a")])}, LIST_STORE)
    (violation,) = tape.report().violations
    assert violation.entry == f"{LIST_STORE}/n[shop/b]"


def test_broken_entries_stay_as_they_are(tape: Tape) -> None:
    tape.put("n", json.dumps([item("a", cpu=-1), item("b", expire=1_900_000_003)]), LIST_STORE)
    tape.wait(60)
    tape.edit({"n": json.dumps([item("a", cpu=-1)])}, LIST_STORE)
    assert tape.kinds() == []
    tape.edit({"n": None}, LIST_STORE)
    assert tape.kinds() == [Kind.EDIT_VANISHED]


def test_an_edit_that_the_store_never_showed_has_vanished(tape: Tape) -> None:
    tape.reserve("owner")
    tape.wait(60)
    line = {"op": "put", "configmap": STORE, "key": "hold-owner"}
    tape.manager.append({**line, "at": tape.now, "value": tape.entry("owner", cpu="1")})
    tape.wait(60)
    assert tape.kinds() == [Kind.EDIT_VANISHED]


def test_an_item_is_put_by_its_own_value(tape: Tape) -> None:
    tape.edit({"n": json.dumps([item("a"), item("b")])}, LIST_STORE)
    line = {"at": tape.now, "op": "put", "configmap": LIST_STORE, "key": "n"}
    tape.manager.append({**line, "item": "shop/b", "value": item("b")})
    tape.manager.append({**line, "item": "shop/c", "value": json.dumps(item("c"))})
    tape.wait(60)
    (violation,) = tape.report().violations
    assert (violation.kind, violation.entry) == (Kind.EDIT_VANISHED, f"{LIST_STORE}/n[shop/c]")


def test_an_entry_that_may_have_been_claimed_in_a_gap_of_the_pods_is_not_missed(tape: Tape) -> None:
    ref = tape.reserve("owner")
    before = tape.revision
    tape.land("owner", "n", ref)
    tape.delete("owner")
    tape.wait(1)
    tape.miss("pods", before)
    tape.edit({"hold-owner": None})
    assert tape.kinds() == []
    tape.reserve("other")
    tape.wait(60)
    tape.edit({"hold-other": None})
    assert tape.kinds() == LOST
