"""The archive of ended reservations."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reserver.base.pacer import outcome
from reserver.reservations.entry import EndedClaim
from reserver.reservations.enums import Outcome
from reserver.reservations.outcome import Ending
from reserver.reservations.reservation import Ref
from reserver.stores import archive as module
from reserver.stores.archive import SHARDS, Archive, ArchivedReservation, past
from tests.builders import NOW, reservation

WEEK = 7 * 86_400.0


def ending(key: str, at: float = NOW, namespace: str = "shop", description: str = "") -> Ending:
    one = reservation(key, cpu="1500m", memory="1Gi", expires=NOW + 60)
    ref = Ref(namespace, "store", key)
    claim = EndedClaim("uid-a", "shop/a", "worker-1", at)
    one = replace(one, ref=ref, description=description, author="alice")
    return Ending(one, Outcome.CLAIMED, at, at - 60, (claim,))


def add(
    archive: Archive, key: str, at: float = NOW, namespace: str = "shop", text: str = ""
) -> int:
    return archive.add(past(ending(key, at, namespace, text)), at)


def names(archive: Archive, now: float = NOW) -> list[str]:
    return [one.name for _, one in sorted(archive.all(now), key=lambda each: each[1].ended)]


def restarted(archive: Archive, now: float = NOW) -> Archive:
    """Return the archive that another process reads after all writes."""
    again = Archive(WEEK)
    for number in range(SHARDS):
        changes = archive.pending(number)
        data = {key: text for key, text in changes.items() if text is not None}
        outcome(again.load(number, data, now))
        archive.written(number, changes)
    return again


def test_what_is_kept_says_who_claimed_what_for_whom_and_why() -> None:
    assert past(ending("move", description="for the move")) == ArchivedReservation(
        name="move",
        id="shop/store/move",
        namespace="shop",
        owner_namespace="shop",
        owners="shop/pod/owner",
        outcome=Outcome.CLAIMED,
        since="2030-03-17T17:45:40Z",
        ended="2030-03-17T17:46:40.000000Z",
        expires_at="2030-03-17T17:47:40Z",
        nodes=["worker-1"],
        resources={"cpu": "1500m", "memory": "1Gi", "pods": "1"},
        slots=1,
        claimed=1,
        claims=[module.ArchivedClaim("uid-a", "shop/a", "worker-1", "2030-03-17T17:46:40Z")],
        description="for the move",
        author="alice",
    )


def test_a_restart_finds_it_and_the_last_of_a_name_is_what_became_of_it() -> None:
    archive = Archive(WEEK)
    for key, at in (("a", NOW), ("b", NOW + 20), ("a", NOW + 40)):
        add(archive, key, at)
    again = restarted(archive, NOW + 60)
    assert names(again, NOW + 60) == ["a", "b", "a"]
    for name in ("a", "shop/store/a"):
        found = again.last(name, NOW + 60)
        assert found is not None
        assert found.told == "claimed by shop/a at 2030-03-17T17:47:20Z"
    assert again.last("c", NOW) is None
    assert all(not archive.pending(number) for number in range(SHARDS))


def test_what_several_reservers_see_at_once_is_one() -> None:
    archive = Archive(WEEK)
    add(archive, "a", NOW)
    again = restarted(archive)
    one = past(replace(ending("a", NOW + 0.5), since=NOW - 60))
    again.add(one, NOW)
    assert names(again) == ["a"]


def test_what_is_old_is_forgotten_here_and_where_it_is_written() -> None:
    archive = Archive(WEEK)
    number = add(archive, "old")
    (key,) = archive.pending(number)
    archive = restarted(archive)
    later = NOW + WEEK + 1
    assert names(archive, later) == []
    add(archive, "new", later)
    assert archive.pending(number)[key] is None
    assert names(archive, later) == ["new"]


def test_a_namespace_has_room_for_so_many_and_for_so_much() -> None:
    archive = Archive(WEEK)
    for count in range(module.NAMESPACE_MOST + 3):
        add(archive, f"a-{count}", NOW + 10 * count)
    now = NOW + 10 * count
    assert names(archive, now)[0] == "a-3"
    assert len(names(archive, now)) == module.NAMESPACE_MOST
    archive = Archive(WEEK)
    for count in range(module.NAMESPACE_MOST):
        add(archive, f"a-{count}", NOW + 10 * count, text="ü" * 512)
    left = names(archive, now)
    assert left[-1] == f"a-{count}"
    assert 100 < len(left) < module.NAMESPACE_MOST
    assert max(map(archive.size, range(SHARDS))) <= module.NAMESPACE_BYTES


@pytest.mark.long
def test_who_ends_thousands_pushes_out_their_own_and_what_is_kept_in_all_is_bounded() -> None:
    archive = Archive(WEEK)
    for tenant in range(100):
        add(archive, "quiet", NOW, namespace=f"quiet-{tenant}")
    for tenant in range(60):
        for count in range(250):
            add(archive, f"loud-{count}", NOW + count, namespace=f"loud-{tenant}", text="x" * 200)
    assert names(archive, NOW + 250).count("quiet") == 100
    sizes = [archive.size(number) for number in range(SHARDS)]
    assert max(sizes) <= module.SHARD_BYTES
    assert sum(sizes) > module.SHARD_BYTES


def test_what_somebody_else_wrote_into_it_is_passed_over() -> None:
    archive = Archive(WEEK)
    outcome(archive.load(0, {"x": "{", "y": "[]", "z": '{"name": "a"}'}, NOW))
    assert names(archive) == []


def test_what_is_still_to_be_written_outlives_a_reading() -> None:
    archive = Archive(WEEK)
    number = add(archive, "a")
    changes = archive.pending(number)
    other = restarted(archive)
    (key,) = changes
    text = changes[key] or ""
    add(other, "b", NOW + 20)
    outcome(other.load(number, {key: text}, NOW + 20))
    assert names(other, NOW + 20) == ["a", "b"]
    assert len(other.pending(number)) == 1


def test_what_cannot_be_written_does_not_pile_up() -> None:
    archive = Archive(WEEK)
    for count in range(3 * module.NAMESPACE_MOST):
        number = add(archive, f"a-{count}", NOW + 10 * count)
    assert len(archive.pending(number)) == module.NAMESPACE_MOST


@pytest.mark.parametrize(
    ("became", "text", "spec"),
    [
        (Outcome.REMOVED, '{"node":"w","author":"a","ttl":"1h","origin":"x"}', '{"node":"w"}'),
        (Outcome.IDLE, '{"node":"w","releaseIfIdle":"9m"}', '{"node":"w","releaseIfIdle":"9m"}'),
        (Outcome.CLAIMED, '{"node":"w"}', ""),
        (Outcome.REMOVED, "", ""),
        (Outcome.REMOVED, "{", ""),
        (Outcome.REMOVED, "[1]", ""),
        (Outcome.REMOVED, f'{{"node":"{"w" * 2048}"}}', ""),
        (Outcome.REMOVED, f'{{"node":"w"}}{" " * 9000}', ""),
    ],
)
def test_a_spec_is_kept_of_what_was_removed_or_idle(became: Outcome, text: str, spec: str) -> None:
    assert past(replace(ending("move"), outcome=became, text=text)).spec == spec
